"""How many jobs there are of each status, in one statement that reads a bounded number of rows along each index."""

from __future__ import annotations

from django.db import connections

from jobs.ledger.indexed import ABNORMAL, IS_ABNORMAL, IS_CLAIMABLE, IS_FREE, IS_HELD, IS_RUNNING

PART = """
SELECT '{source}', p.status, COUNT(*)
  FROM (SELECT {status} AS status FROM jobs_job {where} LIMIT {limit}) AS p GROUP BY p.status
"""
READY = "WHERE ready_at IS NOT NULL"
DUE = f"WHERE {IS_FREE % 'hold_reason'} AND {IS_CLAIMABLE % 'status'} AND ready_at IS NULL"
HELD = f"WHERE {IS_HELD % 'hold_reason'}"
NEWEST = "ORDER BY id DESC"


def by_status(using: str, *, claimable: int, newest: int, most: int) -> dict[str, dict[str, int]]:
    """Return rows by status as found along each of these: `ready`, `due` and `held` (at most `claimable` rows of
    each), `newest` (so many, whatever their status), and the ready ones and every other status by its own
    name (at most `most` of each).
    """
    parts = [
        _part("ready", READY, claimable),
        _part("due", DUE, claimable),
        _part("held", HELD, claimable),
        _part("newest", NEWEST, newest),
        _part("all ready", READY, most, status="'pending'"),
        _part("running", f"WHERE {IS_RUNNING % 'status'}", most),
        *(
            _part(status, f"WHERE {IS_ABNORMAL % 'status'} AND status = '{status}'", most)
            for status in ABNORMAL
        ),
    ]
    found: dict[str, dict[str, int]] = {}
    with connections[using].cursor() as cursor:
        cursor.execute("UNION ALL".join(parts))
        for source, status, count in cursor.fetchall():
            found.setdefault(source, {})[status] = count
    return found


def _part(source: str, where: str, limit: int, *, status: str = "status") -> str:
    return PART.format(source=source, where=where, limit=int(limit), status=status)
