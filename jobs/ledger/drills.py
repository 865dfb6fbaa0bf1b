"""The rows of drills: begun once, completed once."""

from __future__ import annotations

from typing import Any

from jobs.ledger.session import Session

BEGIN = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_drill (kind, by, started_at, verdict, tried, passed, record)
SELECT %(kind)s, %(by)s, t.now, '', 0, 0, 'null' FROM t WHERE true
RETURNING id
"""

FINISH = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_drill
   SET finished_at = (SELECT now FROM t), verdict = %(verdict)s, tried = %(tried)s, passed = %(passed)s,
       record = %(record)s
 WHERE id = %(id)s AND finished_at IS NULL
RETURNING id
"""


def begin(session: Session, *, kind: str, by: str) -> int:
    """Write that a drill has begun; returns its number."""
    number: int = session.run(BEGIN, kind=kind, by=by[:150])[0][0]
    return number


def finish(session: Session, number: int, **values: Any) -> bool:
    """Write how a drill ended; False when that is written already."""
    return bool(session.run(FINISH, id=number, **values))
