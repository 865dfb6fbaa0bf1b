"""The scheduler row: raising the epoch, opening and closing claims, the clock's high-water mark (contract §5, §12)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from jobs import canon
from jobs.ledger.session import Session

READ = """
SELECT epoch, claims_open, timeline, clock_high_water, changed_at, changed_by, reason
  FROM jobs_scheduler WHERE id = 1
"""

# Under LOCK TABLE … EXCLUSIVE: every fenced transaction under way has ended, none begins before this commits.
RAISE = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_scheduler
   SET epoch = {greatest}(epoch, %(floor)s) + 1, claims_open = COALESCE(%(claims_open)s, claims_open),
       timeline = COALESCE(%(timeline)s, timeline),
       changed_at = (SELECT now FROM t), changed_by = %(actor)s, reason = %(reason)s
 WHERE id = 1 AND epoch = %(expected)s
RETURNING epoch
"""

SET_CLAIMS = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_scheduler
   SET claims_open = %(claims_open)s, changed_at = (SELECT now FROM t), changed_by = %(actor)s, reason = %(reason)s,
       clock_high_water = CASE WHEN %(forget_clock)s THEN NULL ELSE clock_high_water END
 WHERE id = 1
   AND (claims_open <> %(claims_open)s
        OR (%(forget_clock)s AND clock_high_water > (SELECT {plus:now+1} FROM t)))
RETURNING id
"""

# The mark never falls. A clock that went back more than a second closes claims; renewals and commits go on,
# because leases only look longer.
MARK = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_scheduler
   SET clock_high_water = CASE WHEN clock_high_water IS NULL OR clock_high_water < (SELECT now FROM t)
                               THEN (SELECT now FROM t) ELSE clock_high_water END
 WHERE id = 1
RETURNING clock_high_water > (SELECT {plus:now+1} FROM t)
"""

PAUSE = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_queue (name, paused_at, paused_until, paused_by, pause_reason)
SELECT %(name)s, t.now, %(until)s, %(actor)s, %(reason)s FROM t WHERE %(until)s IS NULL OR %(until)s > t.now
ON CONFLICT (name) DO UPDATE SET
    paused_at = CASE WHEN jobs_queue.paused_until <= excluded.paused_at THEN excluded.paused_at
                     ELSE COALESCE(jobs_queue.paused_at, excluded.paused_at) END,
    paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
RETURNING name
"""

RESUME = """
UPDATE jobs_queue SET paused_at = NULL, paused_until = NULL, paused_by = %(actor)s, pause_reason = %(reason)s
 WHERE name = %(name)s AND paused_at IS NOT NULL
RETURNING name
"""

PAUSED = """
WITH t AS (SELECT {clock} AS now)
SELECT q.paused_by, q.paused_at, q.paused_until, q.pause_reason FROM jobs_queue AS q CROSS JOIN t
 WHERE q.name = %(name)s AND q.paused_at IS NOT NULL AND (q.paused_until IS NULL OR q.paused_until > t.now)
"""

PAUSES = """
SELECT paused_at, paused_until, paused_by FROM jobs_queue WHERE name = %(name)s
"""


class SchedulerState(NamedTuple):
    """The scheduler row as read."""

    epoch: int
    claims_open: bool
    timeline: str
    clock_high_water: Any
    changed_at: Any
    changed_by: str
    reason: str


def read(session: Session) -> SchedulerState:
    """Return the scheduler row."""
    row = list(session.run(READ)[0])
    row[1] = bool(row[1])
    row[3], row[4] = session.moment(row[3]), session.moment(row[4])
    return SchedulerState(*row)


def mark(*facts: datetime | str | None) -> str:
    """Return by what a pause, or who closed claims, is told from another, also from one of the same person."""
    said = [fact.astimezone(UTC).isoformat() if isinstance(fact, datetime) else fact for fact in facts]
    return canon.digest(canon.canonical(said))[:20]


def raise_epoch(
    session: Session,
    *,
    expected: int,
    floor: int,
    claims_open: bool | None,
    actor: str,
    reason: str,
    timeline: str | None = None,
) -> int | None:
    """Raise the epoch above both `expected` and `floor`; None when the epoch is not `expected` any more.

    `timeline` says which database claims are made in from now on; None leaves that as it is.
    """
    text = RAISE
    if session.locks_rows:
        text = text.replace("%(claims_open)s", "%(claims_open)s::boolean")
        text = text.replace("%(timeline)s", "%(timeline)s::text")
    rows = session.run(
        text,
        expected=expected,
        floor=floor,
        claims_open=claims_open,
        actor=actor,
        reason=reason,
        timeline=timeline,
    )
    return int(rows[0][0]) if rows else None


def set_claims(session: Session, *, claims_open: bool, actor: str, reason: str) -> bool:
    """Open or close claims; False when they are so already.

    Opening also forgets a clock mark that lies ahead, which keeps claims closed whatever `claims_open` says.
    """
    return bool(
        session.run(SET_CLAIMS, claims_open=claims_open, forget_clock=claims_open, actor=actor, reason=reason)
    )


def mark_clock(session: Session) -> bool:
    """Move the high-water mark on; True when the clock has gone back by more than a second."""
    return bool(session.run(MARK)[0][0])


def pause(session: Session, name: str, *, until: Any, actor: str, reason: str) -> bool:
    """Close one queue to claims; False where `until` is no instant to come. What goes on keeps its begin."""
    text = PAUSE.replace("%(until)s", "%(until)s::timestamptz") if session.locks_rows else PAUSE
    return bool(session.run(text, name=name, until=until, actor=actor, reason=reason))


def paused(session: Session, name: str) -> tuple[str, str]:
    """Return who has paused a queue that is paused at this moment, and the pause's mark; empty: nobody has."""
    for by, since, until, reason in session.run(PAUSED, name=name):
        return by, mark(by, session.moment(since), session.moment(until), reason)
    return "", ""


def pauses(session: Session, name: str, *, hold: bool = False) -> dict[str, str | None]:
    """Return how a queue is paused, in words; `hold` locks its row first. Empty where nobody ever paused it."""
    rows = session.run(PAUSES + ("{lock}\n" if hold else ""), name=name)
    if not rows:
        return {}
    since, until = (moment and moment.isoformat() for moment in map(session.moment, rows[0][:2]))
    return {"paused_at": since, "paused_until": until, "paused_by": rows[0][2]}


def resume(session: Session, name: str, *, actor: str, reason: str) -> bool:
    """Open one queue again; False when it was open."""
    return bool(session.run(RESUME, name=name, actor=actor, reason=reason))
