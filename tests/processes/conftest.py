"""`installation`: a database made from a migrated template, gone with its processes after the test."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.core.management import call_command
from django.db import connections

from tests.processes.installation import Installation


def _add_alias(alias: str, name: str) -> None:
    settings = {**connections.databases["default"], "NAME": name, "CONN_HEALTH_CHECKS": True}
    connections.databases[alias] = settings


def _run(statement: str) -> None:
    """Run one statement on the server's maintenance database: a database is made outside of transactions."""
    import psycopg

    parameters = connections["default"].get_connection_params()
    wanted = ("host", "port", "user", "password")
    options = {name: parameters[name] for name in wanted if parameters.get(name)}
    with psycopg.connect(dbname="postgres", autocommit=True, **options) as server:
        server.execute(statement)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def template(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any) -> Iterator[str]:
    """A migrated database that each installation is a copy of."""
    alias = "processes_template"
    file = connections["default"].vendor == "sqlite"
    name = (
        str(tmp_path_factory.mktemp("template") / "db.sqlite3")
        if file
        else f"processes_{uuid.uuid4().hex[:12]}"
    )
    with django_db_blocker.unblock():
        if not file:
            _run(f'CREATE DATABASE "{name}"')
        _add_alias(alias, name)
        call_command("migrate", database=alias, verbosity=0)
        connections[alias].close()
        del connections.databases[alias]
        yield name
        if not file:
            _run(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def installation(template: str, django_db_blocker: Any, tmp_path: Path) -> Iterator[Installation]:
    """A whole installation of its own; see tests/processes/installation.py."""
    alias = "installation"
    settings = connections.databases["default"]
    file = connections["default"].vendor == "sqlite"
    if file:
        name = str(tmp_path / "db.sqlite3")
        shutil.copy(template, name)
        url = f"sqlite:///{name}"
    else:
        name = f"processes_{uuid.uuid4().hex[:12]}"
        _run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        host = {key: settings[key.upper()] for key in ("host", "port") if settings.get(key.upper())}
        who = quote(settings["USER"]) + (
            f":{quote(settings['PASSWORD'])}" if settings.get("PASSWORD") else ""
        )
        url = f"postgresql://{who}@/{name}?{urlencode(host)}"
    with django_db_blocker.unblock():
        _add_alias(alias, name)
        made = Installation(alias, url, tmp_path)
        try:
            yield made
        finally:
            made.close()
            del connections.databases[alias]
            del connections[alias]
            if not file:
                _run(f'DROP DATABASE "{name}" WITH (FORCE)')
