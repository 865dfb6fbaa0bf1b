"""Cases, proposals and rulings, as far as they stand and fall with a ledger transaction (contract §6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from uuid_utils.compat import uuid7

from jobs import effect_kinds
from jobs.ledger.session import Session

# What of these jobs is open and only a person can close: each such slot without a case of that kind.
UNTOLD = """
SELECT s.id, s.job_id, s.kind, s.label, s.amount, s.currency, CASE WHEN s.in_conflict THEN 'conflict' ELSE 'unknown' END,
       (SELECT e.body FROM jobs_evidence e WHERE e.effect_id = s.id AND e.source = 'report' ORDER BY e.id DESC LIMIT 1)
  FROM jobs_effectslot s
 WHERE s.job_id {among:ids} AND (s.status = 'unknown' OR s.in_conflict)
   AND NOT EXISTS (SELECT 1 FROM jobs_case c WHERE c.effect_id = s.id AND c.closed_at IS NULL
                      AND c.kind = CASE WHEN s.in_conflict THEN 'conflict' ELSE 'unknown' END)
 ORDER BY s.id
"""

ONE = """
SELECT s.id, s.job_id, s.kind, s.label, s.amount, s.currency, '', '' FROM jobs_effectslot s WHERE s.id = %(id)s
"""

INSERT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_case (id, kind, job_id, effect_id, effect_kind, label, amount, currency, cause, opened_at,
                       sla_due_at, closed_as, owner, parked_why, version)
SELECT %(id)s, %(kind)s, %(job_id)s, %(effect_id)s, %(effect_kind)s, %(label)s, CAST(%(amount)s AS numeric),
       %(currency)s, %(cause)s, t.now, {plus:t.now+CAST(%(sla)s AS integer)}, '', '', '', 1
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
    effect_id, job_id, effect_kind, label, amount, currency, _, said = row
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
        cause=_cause(said),
        sla=declared.sla if declared else None,
    )
    return case_id if rows else None


def _cause(said: str | None) -> str:
    """Return the name of the error that a sender told of, the same for all that one outage hits."""
    name = (said or "").partition(":")[0].strip()
    return name[:80] if name.isidentifier() else ""


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


# -- decisions ------------------------------------------------------------------------------------------------

ADD_RULING = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_ruling (at, case_id, effect_id, verdict, by, approved_by, reason_code, reason, reference, response,
                         compensate, attested, snapshot, slot_version)
SELECT t.now, %(case_id)s, %(effect_id)s, %(verdict)s, %(by)s, %(approved_by)s, %(reason_code)s, %(reason)s,
       %(reference)s, CAST(%(response)s AS text), %(compensate)s, %(attested)s, %(snapshot)s, %(slot_version)s
  FROM t
"""

# An approved sending may be used for a day; what is decided otherwise keeps the time it had.
DECIDE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_proposal
   SET decision = CAST(%(decision)s AS text), decided_by = %(by)s, decided_at = (SELECT now FROM t), note = %(note)s
     , expires_at = CASE WHEN CAST(%(decision)s AS text) = 'approved' AND verdict = 'send'
                         THEN (SELECT {plus:now+86400} FROM t) ELSE expires_at END
 WHERE id = %(id)s AND decision = ''
   AND (expires_at IS NULL OR expires_at > (SELECT now FROM t))
RETURNING id
"""

# Whoever waits for an approval asks again at the gate, whatever was said: the gate knows the slot.
COMES_DUE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {next_attempt_at} = t.now
     , {wait_reason} = 'timer'
     , {state_version} = j.{state_version} + 1
  FROM t
 WHERE j.{id} = %(id)s
   AND j.{status} = {:waiting}
   AND j.{wait_reason} = 'approval'
RETURNING {j}{queue}
"""


def add_ruling(session: Session, **values: Any) -> None:
    """Keep a person's decision that took effect."""
    session.run(ADD_RULING, **values)


def decide(session: Session, proposal_id: Any, decision: str, *, by: str, note: str) -> bool:
    """Answer an open question to a second person; False where it was answered before, or is too old."""
    return bool(session.run(DECIDE, id=proposal_id, decision=decision, by=by, note=note))


def come_due(session: Session, job_id: Any) -> str | None:
    """Let a job that waits for an approval run now; returns its queue, or None where it waits for none."""
    rows = session.run(COMES_DUE, id=job_id)
    return rows[0][0] if rows else None


def contradicted(session: Session, job_id: Any) -> bool:
    """Return whether evidence about a job contradicts what was recorded, and nobody has said so yet."""
    text = "SELECT 1 FROM jobs_case c WHERE c.job_id = %(id)s AND c.kind = 'contradiction' AND c.closed_at IS NULL"
    return bool(session.run(text, id=job_id))


# -- what is no ruling ------------------------------------------------------------------------------------------

TAKE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_case
   SET owner = CAST(%(by)s AS text), owned_until = (SELECT {plus:now+CAST(%(seconds)s AS integer)} FROM t)
 WHERE id = %(id)s AND closed_at IS NULL
   AND (owner IN ('', CAST(%(by)s AS text)) OR owned_until <= (SELECT now FROM t))
RETURNING owned_until
"""

GIVE_BACK = """
UPDATE jobs_case SET owner = '', owned_until = NULL WHERE id = %(id)s AND owner = %(by)s RETURNING id
"""

PARK = """
UPDATE jobs_case SET parked_until = CAST(%(until)s AS timestamptz), parked_why = %(why)s
 WHERE id = %(id)s AND closed_at IS NULL
RETURNING id
"""

COMMENT = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_comment (at, case_id, by, text) SELECT t.now, %(id)s, %(by)s, %(body)s FROM t
"""

COUNT_UP = """
UPDATE jobs_case SET version = version + 1 WHERE id = %(id)s
"""


def take(session: Session, case_id: Any, *, by: str, seconds: int) -> datetime | None:
    """Make somebody the case's owner for a while; returns until when, None where another one is."""
    rows = session.run(TAKE, id=case_id, by=by, seconds=seconds)
    return session.moment(rows[0][0]) if rows else None


def give_back(session: Session, case_id: Any, *, by: str) -> bool:
    """Let others take a case again; False where it was not the giver's."""
    return bool(session.run(GIVE_BACK, id=case_id, by=by))


def park(session: Session, case_id: Any, until: Any, why: str = "") -> bool:
    """Put a case out of sight until then (None: bring it back); its time limit goes on. False where closed."""
    text = PARK if session.locks_rows else PARK.replace("CAST(%(until)s AS timestamptz)", "%(until)s")
    return bool(session.run(text, id=case_id, until=until, why=why))


def comment(session: Session, case_id: Any, *, by: str, text: str) -> None:
    """Keep what somebody wrote; whoever is about to rule should have seen it."""
    session.run(COMMENT, id=case_id, by=by, body=text)
    session.run(COUNT_UP, id=case_id)
