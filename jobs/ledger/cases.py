"""Cases, proposals and rulings, as far as they stand and fall with a ledger transaction (contract §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uuid_utils.compat import uuid7

from jobs import effect_kinds
from jobs.ledger.session import Session

# What of these jobs is open and only a person can close: each such slot without a case of that kind.
UNTOLD = """
SELECT s.id, s.job_id, s.kind, s.label, s.amount, s.currency, CASE WHEN s.in_conflict THEN 'conflict' ELSE 'unknown' END
  FROM jobs_effectslot s
 WHERE s.job_id {among:ids} AND (s.status = 'unknown' OR s.in_conflict)
   AND NOT EXISTS (SELECT 1 FROM jobs_case c WHERE c.effect_id = s.id AND c.closed_at IS NULL
                      AND c.kind = CASE WHEN s.in_conflict THEN 'conflict' ELSE 'unknown' END)
 ORDER BY s.id
"""

ONE = """
SELECT s.id, s.job_id, s.kind, s.label, s.amount, s.currency, '' FROM jobs_effectslot s WHERE s.id = %(id)s
"""

INSERT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_case (id, kind, job_id, effect_id, effect_kind, label, amount, currency, opened_at, sla_due_at,
                       closed_as, owner, version)
SELECT %(id)s, %(kind)s, %(job_id)s, %(effect_id)s, %(effect_kind)s, %(label)s, CAST(%(amount)s AS numeric),
       %(currency)s, t.now, {plus:t.now+CAST(%(sla)s AS integer)}, '', '', 1
  FROM t
 WHERE true
ON CONFLICT DO NOTHING
RETURNING id
"""

CLOSE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_case
   SET closed_at = (SELECT now FROM t), closed_as = %(how)s, version = version + 1
 WHERE closed_at IS NULL AND effect_id = %(effect_id)s AND kind = %(kind)s
RETURNING id
"""

# Nothing depends any more on what was asked of an ended job; a contradiction stays until somebody has read it.
CLOSE_MOOT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_case
   SET closed_at = (SELECT now FROM t), closed_as = 'moot', version = version + 1
 WHERE closed_at IS NULL AND job_id {among:ids} AND kind <> 'contradiction'
RETURNING id
"""

TOUCH = """
UPDATE jobs_case SET version = version + 1 WHERE closed_at IS NULL AND effect_id = %(effect_id)s
"""

VOID = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_proposal
   SET decision = 'void', decided_at = (SELECT now FROM t)
 WHERE decision = '' AND effect_id = %(effect_id)s
"""

PROPOSE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_proposal (id, case_id, effect_id, verdict, asked, by, at, expires_at, snapshot, slot_version,
                           payload_digest, decided_by, decision, note)
SELECT %(id)s, %(case_id)s, s.id, %(verdict)s, %(asked)s, %(by)s, t.now, {plus:t.now+CAST(%(seconds)s AS integer)},
       %(snapshot)s, s.version, s.payload_digest, '', '', ''
  FROM t CROSS JOIN jobs_effectslot s
 WHERE s.id = %(effect_id)s
"""


def open_for(session: Session, job_ids: Sequence[Any]) -> None:
    """Open a case for every open matter of uncertain jobs, in the transaction that made them so."""
    for row in session.run(UNTOLD, {"ids": [{"id": i} for i in job_ids]}):
        _insert(session, row, row[6])


def open_one(session: Session, effect_id: str, kind: str) -> Any:
    """Open a case of `kind` for one slot; returns its id, or that of the one that is open already."""
    (row,) = session.run(ONE, id=effect_id)
    return _insert(session, row, kind) or _open_id(session, effect_id, kind)


def _insert(session: Session, row: Any, kind: str) -> Any:
    effect_id, job_id, effect_kind, label, amount, currency, _ = row
    declared = effect_kinds.find(effect_kind)
    case_id = uuid7()
    rows = session.run(
        INSERT,
        id=case_id,
        kind=kind,
        job_id=session.key(job_id),
        effect_id=effect_id,
        effect_kind=effect_kind,
        label=label,
        amount=None if amount is None else str(amount),
        currency=currency,
        sla=declared.sla if declared else None,
    )
    return case_id if rows else None


def _open_id(session: Session, effect_id: str, kind: str) -> Any:
    rows = session.run(
        "SELECT c.id FROM jobs_case c WHERE c.effect_id = %(effect_id)s AND c.kind = %(kind)s AND c.closed_at IS NULL",
        effect_id=effect_id,
        kind=kind,
    )
    return rows[0][0] if rows else None


def close(session: Session, effect_id: str, kind: str, how: str) -> bool:
    """Close the open case of a kind for a slot: `ruled`, `resolved` or `moot`."""
    return bool(session.run(CLOSE, effect_id=effect_id, kind=kind, how=how))


def close_moot(session: Session, job_ids: Sequence[Any]) -> None:
    """Close what was asked about jobs that have ended meanwhile."""
    session.run(CLOSE_MOOT, {"ids": [{"id": i} for i in job_ids]})


def touch(session: Session, effect_id: str) -> None:
    """Count what a person who is about to rule would want to have seen."""
    session.run(TOUCH, effect_id=effect_id)


def void(session: Session, effect_id: str) -> None:
    """Withdraw what waits for a second person: the slot is not as it was when it was asked."""
    session.run(VOID, effect_id=effect_id)


def propose(
    session: Session,
    case_id: Any,
    effect_id: str,
    verdict: str,
    *,
    by: str,
    seconds: int | None,
    asked: str = "{}",
    snapshot: str = "",
) -> Any:
    """Ask for a second person's word on a slot as it is now; an earlier question about it is void."""
    void(session, effect_id)
    proposal_id = uuid7()
    session.run(
        PROPOSE,
        id=proposal_id,
        case_id=case_id,
        effect_id=effect_id,
        verdict=verdict,
        asked=asked,
        by=by,
        seconds=seconds,
        snapshot=snapshot,
    )
    return proposal_id


def ask_approval(session: Session, effect_id: str, job_id: Any) -> None:
    """Open the case in which a person other than the requester approves one sending."""
    (requester,) = session.run("SELECT j.enqueued_by FROM jobs_job j WHERE j.id = %(id)s", id=job_id)[0]
    case_id = open_one(session, effect_id, "approval")
    propose(session, case_id, effect_id, "send", by=requester, seconds=None)
