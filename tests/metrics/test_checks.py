"""System checks: settings and servers that would break a promise are named before anything runs."""

import sqlite3

import pytest
from django.conf import settings as configured
from django.core.checks import registry
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs import checks, handlers


@pytest.fixture
def configure(monkeypatch):
    """A function that makes the database look as if it were configured otherwise."""

    def change(engine, options):
        monkeypatch.setitem(connection.settings_dict, "ENGINE", f"django.db.backends.{engine}")
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)

    return change


def ids(found):
    """Return what was found, each once: another database that a test left configured says the same again."""
    return sorted({message.id for message in found})


def test_all_are_registered():
    known = registry.registry.get_checks(include_deployment_checks=True)
    assert {checks.leases, checks.sqlite, checks.isolation, checks.durability} <= set(known)
    assert checks.durability not in registry.registry.get_checks()


def test_our_own_settings_pass():
    assert checks.leases() + checks.sqlite() + checks.isolation() == []


def test_lease_below_three_beats_is_named_by_kind():
    beat = configured.INTERLOCK["HEARTBEAT_SECONDS"]

    @handlers.job("tests.enough", lease=3 * beat)
    def enough():
        pass

    assert checks.leases() == []

    @handlers.job("tests.short", lease=3 * beat - 1)
    def short():
        pass

    [message] = checks.leases()
    assert (message.id, message.obj) == ("interlock.E001", "tests.short")


def test_kind_without_a_lease_of_its_own_is_judged_by_the_standard(settings):
    @handlers.job("tests.standard")
    def standard():
        pass

    settings.INTERLOCK = {**configured.INTERLOCK, "LEASE_SECONDS": 1}
    assert "interlock.E001" in ids(checks.leases())


SAFE = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys=ON",
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SAFE, []),
        (SAFE | {"transaction_mode": "immediate"}, []),
        (SAFE | {"transaction_mode": "DEFERRED"}, ["interlock.E002"]),
        ({"init_command": SAFE["init_command"]}, ["interlock.E002"]),
        (SAFE | {"init_command": "PRAGMA synchronous=EXTRA"}, []),
        (SAFE | {"init_command": "PRAGMA synchronous=2;"}, []),
        (SAFE | {"init_command": "PRAGMA synchronous=NORMAL"}, ["interlock.E003"]),
        (SAFE | {"init_command": "PRAGMA journal_mode=WAL"}, ["interlock.E003"]),
        ({}, ["interlock.E002", "interlock.E003"]),
    ],
    ids=str,
)
def test_sqlite_must_lock_at_begin_and_keep_commits(configure, options, expected):
    configure("sqlite3", options)
    assert ids(checks.sqlite()) == expected


def test_sqlite_without_returning_is_refused(configure, monkeypatch):
    configure("sqlite3", SAFE)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert ids(checks.sqlite()) == ["interlock.E004"]


@pytest.mark.parametrize(("level", "expected"), [(2, []), (3, ["interlock.I001"]), (4, ["interlock.I001"])])
def test_higher_isolation_is_noted(configure, level, expected):
    configure("postgresql", {"isolation_level": level})
    assert ids(checks.isolation()) == expected


@pytest.fixture
def server(transactional_db):
    """A database that is a server with settings of its own; SQLite's are in ours."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has no server")


@pytest.fixture
def latin(server):
    """Be connected with a database of the same server that holds the letters of western Europe only."""
    ours = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE checks_latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    connection.close()
    connection.settings_dict["NAME"] = "checks_latin"
    yield
    connection.close()
    connection.settings_dict["NAME"] = ours
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE checks_latin")


def test_database_that_does_not_hold_every_text_is_refused_at_deployment(latin):
    assert ids(checks.encoding()) == ["interlock.E006"]


def test_server_that_may_forget_a_commit_is_refused_at_deployment(server):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = local")
        assert "Set synchronous_commit = on." not in [message.hint for message in checks.durability()]
        cursor.execute("SET LOCAL synchronous_commit = off")
        found = checks.durability()
    assert "Set synchronous_commit = on." in [message.hint for message in found]
    assert set(ids(found)) == {"interlock.E005"}
    assert all(message.is_serious() for message in found)


def test_server_that_cannot_be_asked_is_a_warning(server, monkeypatch):
    def gone(*_args, **_kwargs):
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "_cursor", gone)
        found = checks.durability()
    assert ids(found) == ["interlock.W001"]
