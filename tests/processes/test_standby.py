"""What a server says of its standbys, asked of a real pair: to its owner all, to a plain role less."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import pytest
from django.db import connection

from jobs.ledger.standby import STANDBYS, Standby, read
from tests import pgtemp

pytestmark = pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database has no server"
)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what servers tell each other; only a test that fails waits so long."""
    end = time.monotonic() + pgtemp.PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def ask(primary: pgtemp.Server, role: str = "postgres") -> Standby:
    with psycopg.connect(f"host={primary.base} user={role} dbname=postgres") as session:
        row = session.execute(STANDBYS).fetchone()
        assert row is not None
        return read(row)


def order(primary: pgtemp.Server, *statements: str) -> None:
    with psycopg.connect(f"host={primary.base} user=postgres dbname=postgres", autocommit=True) as session:
        for statement in statements:
            session.execute(statement)


def test_standby_that_is_in_sync_behind_or_hidden_is_told_apart() -> None:
    with pgtemp.server() as primary:
        order(primary, "CREATE ROLE plain LOGIN")
        assert ask(primary) == ask(primary, "plain") == Standby(False, 0, 0, 0)
        order(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        until(lambda: ask(primary).wanted)
        assert ask(primary).behind
        assert ask(primary, "plain").behind
        with pgtemp.standby(primary):
            until(lambda: ask(primary) == Standby(True, 1, 1, 1))
            hidden = ask(primary, "plain")
            assert hidden == Standby(True, 1, 0, 0)
            assert not hidden.behind
            order(primary, "GRANT pg_monitor TO plain")
            assert ask(primary, "plain").in_sync == 1
        until(lambda: ask(primary).behind)
