"""Finding what somebody has to take back: expired leases and passed deadlines (contract §8)."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobs.ledger.fence import EXPIRED
from jobs.ledger.session import Session

PICK_EXPIRED = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
SELECT j.{{id}}
     , j.{{generation}}
     , CASE WHEN j.{{lease_expires_at}} > t.now THEN 1 ELSE 0 END
?attempt_id|     , j.{{attempt_id}}
?!attempt_id|     , NULL
     , j.{{lease_expires_at}}
     , t.now
  FROM {{table}} AS j CROSS JOIN t
 WHERE true
{EXPIRED}
?hold_reason|   AND j.{{hold_reason}} <> 'quarantine'
ONLY
 ORDER BY j.{{id}}
 LIMIT %(limit)s {{skip_locked}}
"""

PICK_PAST_DEADLINE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT j.{id}, j.{generation}, 0
?attempt_id|     , j.{attempt_id}
?!attempt_id|     , NULL
     , j.{deadline_at}
     , t.now
  FROM {table} AS j CROSS JOIN t
 WHERE j.{deadline_at} IS NOT NULL AND j.{status} IN {in:idle} AND j.{deadline_at} <= t.now
?hold_reason|   AND j.{hold_reason} <> 'quarantine'
ONLY
 ORDER BY j.{deadline_at}
 LIMIT %(limit)s {skip_locked}
"""

COUNT_RUNNING = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT COUNT(*), COALESCE(SUM(CASE WHEN j.{lease_expires_at} <= t.now THEN 1 ELSE 0 END), 0)
  FROM {table} AS j CROSS JOIN t
 WHERE j.{status} = {:running}
"""


class Lapsed(NamedTuple):
    """An expired running row, or an idle one past its deadline, locked."""

    id: Any
    generation: int
    by_raise: bool
    attempt_id: Any
    overdue: float
    """Seconds since it might have been taken back; negative where a raise came before the lease's end."""


def pick_expired(session: Session, *, limit: int, only: Any = None) -> list[Lapsed]:
    """Lock a page of expired rows that nobody else works on; `only` asks for one job."""
    return _lapsed(session, session.run(_only(PICK_EXPIRED, only), limit=limit, only=only))


def pick_past_deadline(session: Session, *, limit: int, only: Any = None) -> list[Lapsed]:
    """Lock a page of idle rows whose deadline has passed; `only` asks for one job."""
    if not session.vocabulary.has("deadline_at"):
        return []
    return _lapsed(session, session.run(_only(PICK_PAST_DEADLINE, only), limit=limit, only=only))


def _only(text: str, only: Any) -> str:
    return text.replace("ONLY", "   AND j.{id} = %(only)s" if only is not None else "")


def count_running(session: Session) -> tuple[int, int]:
    """Return how many leases are held, and how many of them have run out by the clock."""
    row = session.run(COUNT_RUNNING)[0]
    return int(row[0]), int(row[1])


def _lapsed(session: Session, rows: list[Any]) -> list[Lapsed]:
    return [
        Lapsed(session.key(r[0]), r[1], bool(r[2]), session.key(r[3]), _seconds(session, r[4], r[5]))
        for r in rows
    ]


def _seconds(session: Session, since: Any, now: Any) -> float:
    start, end = session.moment(since), session.moment(now)
    return (end - start).total_seconds() if start and end else 0.0
