"""Raises of the epoch that wait for a second person: asked for, decided, void (console.md, Epoch and drain)."""

from __future__ import annotations

from typing import Any

from uuid_utils.compat import uuid7

from jobs.ledger.session import Session

# What nobody can approve any more stands in nobody's way: it ran out, or the epoch is another one.
VOID = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_raiseproposal
   SET decision = 'void', decided_at = (SELECT now FROM t)
 WHERE decision = ''
   AND (expires_at <= (SELECT now FROM t) OR epoch <> (SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1))
"""

PROPOSE = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_raiseproposal (id, epoch, floor, close_claims, reason, price, by, account, at, expires_at, decided_by,
                                decision, note)
SELECT %(id)s, s.epoch, CAST(%(floor)s AS bigint), CAST(%(close_claims)s AS boolean), %(reason)s, %(price)s, %(by)s, %(account)s, t.now,
       {plus:t.now+CAST(%(seconds)s AS integer)}, '', '', ''
  FROM t CROSS JOIN jobs_scheduler s
 WHERE s.id = 1 AND s.epoch = %(expected)s
ON CONFLICT DO NOTHING
RETURNING id
"""

DECIDE = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_raiseproposal
   SET decision = %(decision)s, decided_by = %(by)s, decided_at = (SELECT now FROM t), note = %(note)s
 WHERE id = %(id)s AND decision = '' AND expires_at > (SELECT now FROM t)
RETURNING id
"""


def propose(
    session: Session,
    *,
    expected: int,
    floor: int,
    close_claims: bool,
    reason: str,
    price: str,
    by: str,
    account: str,
    seconds: int,
) -> Any:
    """Write down that a raise of the epoch `expected` is asked for; returns its id.

    None where the epoch is another one, or one that can still be approved is open.
    """
    session.run(VOID)
    proposal_id = uuid7()
    rows = session.run(
        PROPOSE,
        id=proposal_id,
        expected=expected,
        floor=floor,
        close_claims=close_claims,
        reason=reason,
        price=price,
        by=by,
        account=account,
        seconds=seconds,
    )
    return proposal_id if rows else None


def decide(session: Session, proposal_id: Any, decision: str, *, by: str, note: str) -> bool:
    """Answer one that is open; False where it was answered before, or has run out."""
    return bool(session.run(DECIDE, id=proposal_id, decision=decision, by=by, note=note))
