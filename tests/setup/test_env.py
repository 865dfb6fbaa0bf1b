"""A wrong setting stops the process with one sentence that names it."""

import os
import runpy
import subprocess
import sys

import pytest

from config import describe
from config import env as environment
from config.env import ROOT, Environment, SettingError, parse_database, parse_file

GOOD = {
    "PATH": os.environ.get("PATH", ""),
    "ENV_FILE": "",
    "SECRET_KEY": "s" * 50,
    "AUDIT_KEY": "a" * 50,
    "DATABASE_URL": "sqlite:///var/never-made.sqlite3",
}

WRONG = [
    ("SECRET_KEY", None, "SECRET_KEY is not set: `make setup` writes one to var/env"),
    ("SECRET_KEY", "short", "SECRET_KEY must have at least 32 characters, and has 5."),
    ("AUDIT_KEY", None, "AUDIT_KEY is not set"),
    ("AUDIT_KEY", "a" * 40 + "\udcfc", "AUDIT_KEY must be one line of plain text in UTF-8."),
    ("ALLOWED_HOSTS", "caf\udce9.example", "ALLOWED_HOSTS must be one line of plain text in UTF-8."),
    ("AUDIT_KEY", "a" * 40 + ",", "AUDIT_KEY must hold no comma"),
    ("AUDIT_KEY", "a" * 40 + " ", "AUDIT_KEY must hold no comma, and no blank"),
    ("AUDIT_OLD_KEYS", "a" * 40 + ",short", "AUDIT_OLD_KEYS must hold keys of at least 32 characters."),
    ("DATABASE_URL", None, "DATABASE_URL is not set"),
    ("CSRF_TRUSTED_ORIGINS", "https://a.example,b.example", "CSRF_TRUSTED_ORIGINS must hold origins that"),
    ("INTERLOCK_SPOOL", "", "INTERLOCK_SPOOL must name a folder."),
    ("DATABASE_URL", "sqlite:////dev/null/x.sqlite3", "DATABASE_URL names /dev/null/x.sqlite3, whose folder"),
    ("DATABASE_URL", "mysql://here/there", "DATABASE_URL must start with sqlite:/// or postgresql://."),
    ("DATABASE_URL", "sqlite:///:memory:", "DATABASE_URL must name a file for SQLite."),
    ("DATABASE_DIRECT_URL", "postgresql:///there", "DATABASE_DIRECT_URL is for PostgreSQL"),
    ("DEBUG", "perhaps", "DEBUG must be 1 or 0, not 'perhaps'."),
    ("WEB_PORT", "http", "WEB_PORT must be a whole number from 1 to 65535, not 'http'."),
    ("WEB_PORT", "70000", "WEB_PORT must be from 1 to 65535, not 70000."),
    ("LOG_LEVEL", "LOUD", "LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, not 'LOUD'."),
    ("MEDIA_ROOT", "", "MEDIA_ROOT must name a folder."),
    ("SECRET_KEY", "s" * 50 + "\n", "SECRET_KEY must be one line of plain text in UTF-8."),
    ("ENV_FILE", "var/no-such-file", "ENV_FILE names "),
    ("INTERLOCK_DEPTH", "-1", "INTERLOCK_DEPTH must be a whole number from 1 to 200, not '-1'."),
    ("INTERLOCK_DEPT", "9", "INTERLOCK_DEPT is not a setting; perhaps INTERLOCK_DEPTH was meant."),
    ("INTERLOCK_LEASE_SECONDS", "44", "INTERLOCK_HEARTBEAT_SECONDS must be at most a third of "),
]


@pytest.fixture
def load_settings(monkeypatch):
    """Read the settings file anew, in an environment that has these variables and no other."""

    def load(environ):
        with monkeypatch.context() as patch:
            for name in list(os.environ):
                patch.delenv(name)
            for name, value in environ.items():
                patch.setenv(name, value)
            return runpy.run_path(str(ROOT / "config/settings.py"))

    return load


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_wrong_value_is_refused_with_a_sentence(load_settings, name, value, sentence):
    with pytest.raises(SettingError) as refused:
        load_settings({key: text for key, text in {**GOOD, name: value}.items() if text is not None})
    said = str(refused.value)
    assert said.startswith(sentence)
    assert said.endswith(".")
    assert "\n" not in said


def test_wrong_value_stops_the_process_and_prints_nothing_else():
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "DEBUG": "perhaps"},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "DEBUG must be 1 or 0, not 'perhaps'.\n"


def test_settings_need_no_more_than_what_is_required(load_settings):
    settings = load_settings(GOOD)
    assert settings["DEBUG"] is False
    assert settings["DEMO"] is True
    assert settings["INTERLOCK"]["LEASE_SECONDS"] == 60


def test_postgresql_is_reached_without_session_state(load_settings):
    """A transaction pooler would refuse start-up options and lend what is SET to strangers."""
    there = {"DATABASE_URL": "postgresql://me@h/db", "DATABASE_DIRECT_URL": "postgresql://me@h:1/db"}
    settings = load_settings({**GOOD, **there})
    database = settings["DATABASES"]["default"]
    assert "options" not in database["OPTIONS"]
    assert "pool" not in database["OPTIONS"]
    assert database["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert settings["DEMO"] is False


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("sqlite://var/x.sqlite3", "three slashes"),
        ("sqlite:///x.sqlite3?mode=ro", "no options"),
        ("sqlite:///", "must name a file"),
        ("sqlite:///var/", "must name a file"),
        ("postgresql://host", "must name a database"),
        ("postgresql://host/db?hos=/tmp", "invalid URI query parameter"),
        ("postgresql://host/db?sslmode=require&sslmode=disable", "gives sslmode twice"),
        ("", "must start with"),
    ],
)
def test_wrong_database_url_says_what_is_wrong(url, fault):
    with pytest.raises(SettingError, match=fault):
        parse_database("DATABASE_URL", url)


def test_relative_sqlite_path_counts_from_the_project():
    assert parse_database("X", "sqlite:///var/a%20b.sqlite3")["NAME"] == str(ROOT / "var/a b.sqlite3")
    assert parse_database("X", "sqlite:////srv/x.sqlite3")["NAME"] == "/srv/x.sqlite3"


def test_postgresql_url_means_what_libpq_says():
    parsed = parse_database(
        "X", "postgresql://me:p%40ss@a:1,b:2/db?sslmode=require&target_session_attrs=read-write"
    )
    assert (parsed["NAME"], parsed["USER"], parsed["PASSWORD"]) == ("db", "me", "p@ss")
    assert (parsed["HOST"], parsed["PORT"]) == ("a,b", "1,2")
    assert parsed["OPTIONS"] == {"sslmode": "require", "target_session_attrs": "read-write"}
    assert parse_database("X", "postgresql://me@/db?host=/run/pg")["HOST"] == "/run/pg"


def test_environment_overrules_the_file(tmp_path):
    file = tmp_path / "env"
    file.write_text("# ours\n\nWEB_PORT=1234\nDEBUG = 1\n", "utf-8")
    env = environment.read({"ENV_FILE": str(file), "WEB_PORT": "4321"})
    assert env.values["WEB_PORT"] == "4321"
    assert env.flag("DEBUG", False, "")


def test_line_that_is_no_setting_is_named(tmp_path):
    (tmp_path / "env").write_text("DEBUG=1\nnonsense\n", "utf-8")
    with pytest.raises(SettingError, match=r"env, line 2, is not NAME=value"):
        parse_file(tmp_path / "env")


@pytest.mark.parametrize("value", ["1_000", " 5", "٥", "5.0", "1e3", "", "9" * 5000])
def test_number_takes_plain_digits_only(value):
    with pytest.raises(SettingError):
        Environment({"N": value}).number("N", 1, "", least=0, most=10_000)


def test_settings_page_says_what_the_settings_file_reads():
    """When it does not: python -m config.describe > docs/settings.md"""
    assert (ROOT / "docs/settings.md").read_text("utf-8") == describe.table()
