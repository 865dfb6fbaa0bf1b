"""Who holds the scheduler up: the transactions that a raise, a pause or a fence waits for (contract §12)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import OperationalError, connections

from jobs.ledger.clock import clock

LIMIT = 10

# Only ROW SHARE and stronger conflict with EXCLUSIVE. Texts of statements stay out: they may hold inputs.
HOLDERS = """
SELECT DISTINCT a.pid, COALESCE(a.application_name, ''), COALESCE(a.usename, ''), COALESCE(host(a.client_addr), ''),
       COALESCE(a.state, ''), a.xact_start
  FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'relation' AND l.relation = 'jobs_scheduler'::regclass AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND l.mode <> 'AccessShareLock' AND l.pid <> pg_backend_pid()
 ORDER BY a.xact_start
 LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """One transaction: the database's process number, who opened it from where, and for how long it has run."""

    pid: int
    application: str
    user: str
    address: str
    state: str
    seconds: float


def holders(using: str) -> list[Holder]:
    """Return the transactions that hold the scheduler now, the longest first; none where nobody can tell."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(HOLDERS, [LIMIT])
        rows = cursor.fetchall()
    now = clock(using)
    return [
        Holder(pid, application, user, address, state, (now - since).total_seconds() if since else 0.0)
        for pid, application, user, address, state, since in rows
    ]


def held_up(error: OperationalError) -> bool:
    """Whether an error says that a lock was not to be had in time, rather than that the database is away."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state == "55P03" or "database is locked" in str(error)
