"""Databases for whole installations: made from a migrated template, in a folder or on a server."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from django.core.management import call_command
from django.db import connections

from tests.processes.installation import Installation
from tests.processes.warm import Warm


class Ground(Protocol):
    """A place where databases are made."""

    def create(self, name: str, template: str = "") -> None: ...
    def drop(self, name: str) -> None: ...
    def settings(self, name: str) -> dict[str, Any]: ...
    def url(self, name: str) -> str: ...


class Folder:
    """Databases that are files."""

    def __init__(self, base: dict[str, Any], path: Path) -> None:
        self.base = base
        self.path = path

    def create(self, name: str, template: str = "") -> None:
        if template:
            shutil.copy(self.path / template, self.path / name)

    def drop(self, name: str) -> None:
        for path in self.path.glob(f"{name}*"):
            path.unlink()

    def settings(self, name: str) -> dict[str, Any]:
        return {**self.base, "NAME": str(self.path / name)}

    def url(self, name: str) -> str:
        return f"sqlite:///{self.path / name}"


class Server:
    """Databases on a PostgreSQL server; `base` are Django's settings for one of them."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base

    def create(self, name: str, template: str = "") -> None:
        self.run(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))

    def drop(self, name: str) -> None:
        self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def settings(self, name: str) -> dict[str, Any]:
        return {**self.base, "NAME": name}

    def url(self, name: str) -> str:
        who = quote(self.base["USER"])
        if self.base.get("PASSWORD"):
            who += f":{quote(self.base['PASSWORD'])}"
        where = {key.lower(): self.base[key] for key in ("HOST", "PORT") if self.base.get(key)}
        return f"postgresql://{who}@/{name}?{urlencode(where)}"

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement beside everybody else, on the server's maintenance database."""
        import psycopg

        named = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
        options: dict[str, Any] = {
            option: self.base[key] for option, key in named.items() if self.base.get(key)
        }
        with psycopg.connect(dbname="postgres", autocommit=True, **options) as server:
            cursor = server.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []


def ground_of(alias: str, folder: Path) -> Ground:
    """Return the place where the databases of an alias of the test run are."""
    base = {**connections.databases[alias], "CONN_HEALTH_CHECKS": True}
    return Server(base) if connections[alias].features.has_select_for_update else Folder(base, folder)


@contextmanager
def database(ground: Ground, template: str = "") -> Iterator[str]:
    """Make a database for the length of the block; yields its name, which is its alias here too."""
    name = f"processes_{uuid.uuid4().hex[:12]}"
    ground.create(name, template)
    connections.databases[name] = ground.settings(name)
    try:
        yield name
    finally:
        connections[name].close()
        del connections[name]
        del connections.databases[name]
        ground.drop(name)


@contextmanager
def migrated(ground: Ground) -> Iterator[str]:
    """Make a database with all tables, to make others from; yields its name."""
    with database(ground) as name:
        call_command("migrate", database=name, verbosity=0)
        connections[name].close()
        yield name


@contextmanager
def installed(ground: Ground, template: str, folder: Path, warm: Warm) -> Iterator[Installation]:
    """Make an installation, and end its processes with the block."""
    with database(ground, template) as name:
        made = Installation(name, ground.url(name), folder, warm)
        try:
            with made.kinds():
                yield made
        finally:
            made.close()
