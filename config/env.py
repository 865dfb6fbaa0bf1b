"""Reads settings from var/env and the environment; a wrong value stops the process with one sentence.

Every reader notes the name, the default and the meaning it was asked for, so that docs/settings.md is
printed from the very calls that use the settings and cannot fall behind them.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = object()


class SettingError(SystemExit):
    """A setting has a value that this product cannot run with."""


@dataclass(frozen=True)
class Declared:
    """One setting as a person sees it in docs/settings.md."""

    name: str
    default: str
    meaning: str


@dataclass
class Environment:
    """The values this process was started with, read by name and type."""

    values: Mapping[str, str]
    declared: list[Declared] = field(default_factory=list)

    def text(self, name: str, default: object, meaning: str, *, least: int = 0, shown: str = "") -> str:
        """Return the value as it stands; `least` is the shortest length that will do."""
        value = self._read(name, default, meaning, shown)
        if len(value) < least:
            _refuse(name, f"must have at least {least} characters, and has {len(value)}")
        return value

    def flag(self, name: str, default: bool, meaning: str, *, shown: str = "") -> bool:
        """Return whether the value says yes."""
        value = self._read(name, "1" if default else "0", meaning, shown).lower()
        if value in ("1", "true", "yes", "on"):
            return True
        if value in ("0", "false", "no", "off"):
            return False
        _refuse(name, f"must be 1 or 0, not {value!r}")

    def number(self, name: str, default: int, meaning: str, *, least: int, most: int) -> int:
        """Return a whole number within its bounds, both included."""
        value = self._read(name, str(default), f"{meaning} {least} to {most}.")
        # int() alone would also take "1_000", " 5 " and digits of other scripts.
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            _refuse(name, f"must be a whole number from {least} to {most}, not {value!r}")
        if not least <= int(value) <= most:
            _refuse(name, f"must be from {least} to {most}, not {value}")
        return int(value)

    def words(self, name: str, default: str, meaning: str) -> list[str]:
        """Return the parts of a comma-separated list, without blanks."""
        return [word.strip() for word in self._read(name, default, meaning).split(",") if word.strip()]

    def choice(self, name: str, default: str, options: list[str], meaning: str, *, shown: str = "") -> str:
        """Return one of the options."""
        value = self._read(name, default, meaning, shown)
        if value not in options:
            _refuse(name, f"must be one of {', '.join(options)}, not {value!r}")
        return value

    def folder(self, name: str, default: str, meaning: str) -> Path:
        """Return an absolute path; a relative one counts from the project's folder."""
        value = self._read(name, default, meaning)
        if not value:
            _refuse(name, "must name a folder")
        return ROOT / value

    def database(self, name: str, default: object, meaning: str) -> dict[str, Any]:
        """Return Django's description of the database that a URL names."""
        return parse_database(name, self._read(name, default, meaning))

    def refuse_strangers(self, prefix: str) -> None:
        """Stop when a variable with our prefix is none of ours: a misspelt limit would silently not apply."""
        known = [setting.name for setting in self.declared]
        for name in sorted(self.values):
            if name.startswith(prefix) and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                _refuse(name, "is not a setting" + (f"; perhaps {near[0]} was meant" if near else ""))

    def _read(self, name: str, default: object, meaning: str, shown: str = "") -> str:
        visible = "required" if default is REQUIRED else shown or str(default)
        self.declared.append(Declared(name, visible, meaning))
        value = self.values.get(name)
        if value is not None and ("\0" in value or "\n" in value or not _is_utf8(value)):
            _refuse(name, "must be one line of plain text in UTF-8")
        if value is None and default is REQUIRED:
            _refuse(name, "is not set: `make setup` writes one to var/env, or set it in the environment")
        return str(default) if value is None else value


def read(environ: Mapping[str, str] = os.environ) -> Environment:
    """Return the settings of this process: what the env file says, overruled by the environment.

    ENV_FILE names another file than var/env, or none at all when it is empty (the tests' choice).
    """
    place = environ.get("ENV_FILE", "var/env")
    from_file = parse_file(ROOT / place, required="ENV_FILE" in environ) if place else {}
    env = Environment({**from_file, **environ})
    env.text("ENV_FILE", "var/env", "File of NAME=value lines read before the environment; empty for none.")
    return env


def parse_file(path: Path, *, required: bool = False) -> dict[str, str]:
    """Return the NAME=value lines of a file; blank lines and lines that start with # do not count."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        if required:
            _refuse("ENV_FILE", f"names {path}, which does not exist")
        return {}
    except (OSError, UnicodeDecodeError) as error:
        _refuse("ENV_FILE", f"names {path}, which cannot be read ({error})")
    values = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise SettingError(f"{path}, line {number}, is not NAME=value.")
        values[name.strip()] = value.strip()
    return values


def parse_database(name: str, url: str) -> dict[str, Any]:
    """Return ENGINE, NAME and what else Django needs to reach the database behind this URL."""
    readers: dict[str, Callable[[str, str], dict[str, Any]]] = {
        "sqlite": _sqlite,
        "postgres": _postgresql,
        "postgresql": _postgresql,
    }
    reader = readers.get(url.partition(":")[0])
    if reader is None:
        _refuse(name, "must start with sqlite:/// or postgresql://")
    return reader(name, url)


def _sqlite(name: str, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not url.startswith("sqlite:///"):
        _refuse(name, "must have three slashes before a relative path and four before an absolute one")
    if parts.query or parts.fragment:
        _refuse(name, "takes no options after ? or # for SQLite")
    # Console and worker are two processes: a database in memory would be two databases.
    if not path or path.endswith("/") or path == ":memory:":
        _refuse(name, "must name a file for SQLite")
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(ROOT / path)}


def _postgresql(name: str, url: str) -> dict[str, Any]:
    """Let libpq itself read the URL: sockets (?host=/folder), several hosts and options mean what it says."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        # `sslmode` and its like stay; a repeated option would silently be the last one.
        options = [key for key, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except (ProgrammingError, ValueError) as error:
        _refuse(name, f"is not a PostgreSQL URL ({str(error).strip()})")
    if repeated := {option for option in options if options.count(option) > 1}:
        _refuse(name, f"gives {min(repeated)} twice")
    if not parts.get("dbname"):
        _refuse(name, "must name a database, as in postgresql://user@host/database")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": parts,
    }


def _is_utf8(value: str) -> bool:
    """Return whether the environment held text: other bytes come as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(name: str, sentence: str) -> NoReturn:
    raise SettingError(f"{name} {sentence}.")
