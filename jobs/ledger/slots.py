"""Effect slots: every write of one, a compare-and-set under its job's row lock (contract §3, §6).

The caller has locked the job row first, so what is read of a slot afterwards cannot change before it is written;
each write asks for what it rests on all the same, and rowcount decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from jobs.ledger import fence
from jobs.ledger.session import Session
from jobs.status import JobStatus

# Open stays open, so the counter on the job row does not change.
TO_UNKNOWN = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'unknown', version = s.version + 1, changed_at = t.now
  FROM t, {rows:ids}
 WHERE s.job_id = r.id AND s.status = 'executing'
"""

WITHOUT_OPEN = """
SELECT j.{id}, j.{claim_generation}, j.{revision}, j.{input}, j.{input_digest}, j.{attempt_id}
  FROM {table} AS j
 WHERE j.{id} {among:ids}
   AND NOT EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = j.{id}
                      AND (s.status IN ('executing', 'unknown') OR s.in_conflict))
"""

INSERT_IMPLICIT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_effectslot (id, job_id, revision, node_id, slot, kind, replay, inquirable, status, version,
    in_conflict, conflict_digest, use_recorded, ruled_abandon, label, target, currency, etag, payload, payload_digest,
    granted_attempt_id, grants, earlier_unresolved, inquiries, reference, created_at, changed_at)
SELECT %(effect_id)s, %(job_id)s, %(revision)s, '', %(slot)s, 'job', 'non_replayable', {false}, 'unknown', 1,
    {false}, '', {false}, {false}, '', '', '', '', %(payload)s, %(digest)s,
    %(attempt_id)s, 1, {false}, 0, %(reference)s, t.now, t.now
  FROM t
"""


def needs_person(job: str) -> str:
    """Return the test whether an open effect of the row aliased `job` can be settled by a person only.

    Read under the job's lock, which every slot write takes first.
    """
    return (
        f"EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = {job}.{{id}}"
        " AND s.status IN ('executing', 'unknown')"
        " AND (s.replay = 'non_replayable' OR s.in_conflict OR s.key_valid_until <= t.now"
        " OR (s.replay = 'queryable' AND NOT s.inquirable)))"
    )


def executing_to_unknown(session: Session, ids: Sequence[Any]) -> None:
    """Turn what an ended attempt was sending into `unknown`: found by anyone else it means just that."""
    if ids:
        session.run(TO_UNKNOWN, {"ids": [{"id": i} for i in ids]})


def without_open_slot(session: Session, ids: Sequence[Any]) -> list[tuple[Any, int, int, str, str, Any]]:
    """Return id, generation, revision, input, digest and attempt of those jobs that have no open slot."""
    rows = session.run(WITHOUT_OPEN, {"ids": [{"id": i} for i in ids]})
    return [(session.key(r[0]), r[1], r[2], r[3], r[4], session.key(r[5])) for r in rows]


def insert_implicit(session: Session, **values: Any) -> None:
    """Open the slot `job.<generation>`, so that an uncertain job always has something to rule on."""
    session.run(INSERT_IMPLICIT, **values)


# -- reading ----------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """One slot, read under its job's lock."""

    id: str
    job_id: Any
    revision: int
    slot: str
    kind: str
    replay: str
    inquirable: bool
    status: str
    version: int
    in_conflict: bool
    use_recorded: bool
    payload: str
    payload_digest: str
    etag: str
    amount: Any
    granted_attempt_id: Any
    grant_id: Any
    grants: int
    earlier_unresolved: bool
    response: str | None
    reference: str
    conflict_payload: str | None
    conflict_digest: str
    key_expired: bool
    settled: bool
    """Whether an inquiry sent now that finds nothing proves that nothing happened."""
    settles_in: float | None
    """Seconds until that is so; None is never, as things are."""

    @property
    def is_open(self) -> bool:
        return self.status in ("executing", "unknown")


COLUMNS = [name for name in Slot._fields if name not in ("key_expired", "settled", "settles_in")]

FIND = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
SELECT {", ".join(f"s.{name}" for name in COLUMNS)}, COALESCE(s.key_valid_until <= t.now, {{false}}), s.sender_ended_at,
       s.settle_seconds, t.now
  FROM jobs_effectslot AS s CROSS JOIN t
 WHERE s.id = %(id)s
"""


def find(session: Session, effect_id: str) -> Slot | None:
    """Return a slot as it is now, or None."""
    rows = session.run(FIND, id=effect_id)
    if not rows:
        return None
    *values, expired, ended, settle, now = rows[0]
    named = dict(zip(COLUMNS, values, strict=True))
    for name in ("job_id", "granted_attempt_id", "grant_id"):
        named[name] = session.key(named[name])
    for name in ("inquirable", "in_conflict", "use_recorded", "earlier_unresolved"):
        named[name] = bool(named[name])
    left = None
    ended, now = session.moment(ended), session.moment(now)
    if ended is not None and settle is not None and now is not None:
        left = settle - (now - ended).total_seconds()
    return Slot(**named, key_expired=bool(expired), settled=left is not None and left <= 0, settles_in=left)


def job_of(session: Session, effect_id: str) -> Any:
    """Return the id of the job that a slot belongs to, which never changes; None where there is no such slot."""
    rows = session.run("SELECT s.job_id FROM jobs_effectslot s WHERE s.id = %(id)s", id=effect_id)
    return session.key(rows[0][0]) if rows else None


def may(session: Session, verb: str, token: dict[str, Any]) -> bool:
    """Return whether the fence of `verb` holds for a token now, under the lock that is held."""
    return bool(session.run(MAY.replace("FENCE", FENCES[verb]), {"leases": [token]}))


FENCES = {verb: fence.fence(verb) for verb in ("prepare", "grant")}

MAY = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT j.{id}
  FROM {table} AS j CROSS JOIN t, {rows:leases}
 WHERE j.{id} = r.id
FENCE
"""

# -- prepare ----------------------------------------------------------------------------------------------

INSERT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_effectslot (id, job_id, revision, node_id, slot, kind, replay, inquirable, status, version,
    in_conflict, conflict_digest, use_recorded, ruled_abandon, label, target, amount, currency, etag, payload,
    payload_digest, grants, earlier_unresolved, key_seconds, settle_seconds, inquiries, reference, created_at,
    changed_at)
SELECT %(id)s, %(job_id)s, %(revision)s, %(node_id)s, %(slot)s, %(kind)s, %(replay)s, %(inquirable)s, 'prepared', 1,
    {false}, '', {false}, {false}, %(label)s, %(target)s, CAST(%(amount)s AS numeric), %(currency)s, %(etag)s,
    %(payload)s, %(digest)s, 0, {false}, %(key_seconds)s, %(settle_seconds)s, 0, '', t.now, t.now
  FROM t
 WHERE true
ON CONFLICT DO NOTHING
RETURNING id
"""

# Abandoned and never sent: an earlier life of the job ended before it got there.
REOPEN = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'prepared', version = s.version + 1, changed_at = t.now, payload = %(payload)s
     , payload_digest = %(digest)s, label = %(label)s, target = %(target)s, amount = CAST(%(amount)s AS numeric)
     , currency = %(currency)s, etag = %(etag)s
  FROM t
 WHERE s.id = %(id)s AND s.status = 'abandoned' AND s.grants = 0 AND s.version = %(version)s
   AND NOT s.ruled_abandon
RETURNING s.version
"""


def insert(session: Session, values: dict[str, Any]) -> bool:
    """Bind a payload to a new slot; False where the slot is there already."""
    return bool(session.run(INSERT, **values))


def reopen(session: Session, values: dict[str, Any], version: int) -> bool:
    """Bind a payload anew to a slot that was closed without having been sent."""
    names = ("id", "payload", "digest", "label", "target", "amount", "currency", "etag")
    return bool(session.run(_own(session, REOPEN), version=version, **{name: values[name] for name in names}))


CONFLICT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET in_conflict = true, conflict_payload = %(payload)s, conflict_digest = %(digest)s, version = s.version + 1
     , changed_at = t.now
  FROM t
 WHERE s.id = %(id)s AND NOT s.in_conflict AND s.payload_digest <> %(digest)s
RETURNING s.version
"""


def conflict(session: Session, effect_id: str, *, payload: str, digest: str) -> bool:
    """Keep the other payload that was brought for a slot's key; a person rules which one stands."""
    return bool(session.run(_own(session, CONFLICT), id=effect_id, payload=payload, digest=digest))


# -- grant ------------------------------------------------------------------------------------------------

OPEN_JOB = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {open_effects} = j.{open_effects} + %(more)s
     , {state_version} = j.{state_version} + 1
  FROM t, {rows:leases}
 WHERE j.{id} = r.id
FENCE
RETURNING {j}{id}
"""

GRANT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'executing'
     , version = s.version + 1
     , granted_attempt_id = %(attempt)s
     , grant_id = %(grant)s
     , granted_at = t.now
     , grants = s.grants + 1
     , earlier_unresolved = s.earlier_unresolved OR s.status = 'unknown'
     , key_valid_until = COALESCE(s.key_valid_until, {plus:t.now+s.key_seconds})
     , sender_ended_at = NULL
     , inquiring_until = NULL
     , changed_at = t.now
  FROM t
 WHERE s.id = %(id)s
   AND s.version = %(version)s
   AND NOT s.in_conflict
   AND (s.status IN ('prepared', 'absent') OR s.status = 'unknown' AND s.replay = 'idempotent')
   AND (s.key_valid_until IS NULL OR s.key_valid_until > t.now OR APPROVED)
RETURNING s.version
"""

# An approval binds slot, payload and version, lasts a day and is used up by one grant.
USE_APPROVAL = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_proposal
   SET grant_id = %(grant)s
 WHERE effect_id = %(id)s AND verdict = 'send' AND decision = 'approved' AND grant_id IS NULL
   AND slot_version = %(version)s AND payload_digest = %(digest)s
   AND expires_at > (SELECT now FROM t)
RETURNING decided_by
"""


def grant(
    session: Session, token: dict[str, Any], slot: Slot, *, grant_id: Any, needs_approval: bool
) -> bool:
    """Permit one attempt to send, fenced; False, with nothing written, where a guard refused.

    The only permission to send. It counts when the transaction has been committed, before the call leaves. Raises
    NotGranted, for the caller to roll back, where the job's row was free and the slot's was not.
    """
    if needs_approval and not session.run(
        _own(session, USE_APPROVAL),
        id=slot.id,
        grant=grant_id,
        version=slot.version,
        digest=slot.payload_digest,
    ):
        return False
    opened = OPEN_JOB.replace("FENCE", FENCES["grant"])
    if not session.run(opened, {"leases": [token]}, more=0 if slot.is_open else 1):
        raise NotGranted
    text = GRANT.replace("APPROVED", "true" if needs_approval else "false")
    done = session.run(
        _own(session, text), id=slot.id, version=slot.version, attempt=token["attempt_id"], grant=grant_id
    )
    if not done:
        raise NotGranted
    return True


class NotGranted(Exception):
    """A grant that cannot be: what was written for it is rolled back."""


# -- what came of it -----------------------------------------------------------------------------------------

# By the holder of the current grant only, and while the slot is open: information is never refused, but only
# this one decides. A refusal proves nothing of an earlier sending that is unresolved.
REPORT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = CASE WHEN %(status)s = 'absent' AND s.earlier_unresolved THEN 'unknown' ELSE %(status)s END
     , version = s.version + 1
     , response = COALESCE(%(response)s, s.response)
     , reference = CASE WHEN %(reference)s = '' THEN s.reference ELSE %(reference)s END
     , earlier_unresolved = s.earlier_unresolved AND %(status)s <> 'committed'
     , sender_ended_at = t.now
     , changed_at = t.now
  FROM t
 WHERE s.id = %(id)s
   AND s.status IN ('executing', 'unknown')
   AND s.granted_attempt_id = %(attempt)s
   AND s.grant_id = %(grant)s
RETURNING s.status
"""

# By an inquiry, against the version that was read before it was sent.
FOUND = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'committed', version = s.version + 1, response = %(response)s, earlier_unresolved = {false}
     , reference = CASE WHEN %(reference)s = '' THEN s.reference ELSE %(reference)s END, changed_at = t.now
     , inquiring_until = NULL
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status = 'unknown'
RETURNING s.status
"""

# `asked` is the instant, by the database's clock, at which the inquiry was sent.
MISSED = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'absent', version = s.version + 1, changed_at = t.now, earlier_unresolved = {false}
     , inquiring_until = NULL
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status = 'unknown'
   AND s.settle_seconds IS NOT NULL AND s.sender_ended_at IS NOT NULL
   AND {plus:s.sender_ended_at+s.settle_seconds} <= %(asked)s
RETURNING s.status
"""

RULE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET version = s.version + 1, changed_at = t.now, SETS
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND GUARD
RETURNING s.status
"""

HAPPENED = (
    "status = 'committed', response = %(response)s, earlier_unresolved = {false},"
    " reference = CASE WHEN %(reference)s = '' THEN s.reference ELSE %(reference)s END"
)
ABANDON = (
    "status = CASE WHEN s.status = 'committed' THEN s.status ELSE 'abandoned' END, ruled_abandon = true,"
    " in_conflict = {false}"
)
# A key that may have reached the provider is never bound to another payload.
REBIND = (
    "in_conflict = {false}, payload = s.conflict_payload, payload_digest = s.conflict_digest, label = %(label)s,"
    " target = %(target)s, amount = CAST(%(amount)s AS numeric), currency = %(currency)s"
)
# The job goes on under another revision, so what this key was for is not sent; a record stays a record.
SUPERSEDED = (
    "status = CASE WHEN s.status = 'committed' THEN s.status ELSE 'abandoned' END, in_conflict = {false}"
)
RULINGS: dict[str, tuple[str, str]] = {
    "happened": (HAPPENED, "s.status = 'unknown'"),
    "did_not_happen": ("status = 'absent', earlier_unresolved = {false}", "s.status = 'unknown'"),
    "abandon": (
        ABANDON,
        "(s.status IN ('unknown', 'prepared', 'absent') OR s.in_conflict AND s.status <> 'executing')",
    ),
    "use_recorded": ("in_conflict = {false}, use_recorded = true", "s.in_conflict"),
    "rebind": (REBIND, "s.in_conflict AND s.grants = 0 AND s.status IN ('prepared', 'absent')"),
    "revise": (SUPERSEDED, "s.in_conflict AND s.status NOT IN ('executing', 'unknown')"),
}
"""What each ruling writes on a slot, and what it rests on besides the version."""

# Late and against what was recorded: the key may have been sent after all, and nobody holds the grant any more.
DOUBTED = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'unknown', version = s.version + 1, granted_attempt_id = NULL, grant_id = NULL, changed_at = t.now
     , sender_ended_at = NULL
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status = 'absent'
RETURNING s.status
"""

# The same of a job that has ended: a retry must answer from the record.
RECORDED_LATE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'committed', version = s.version + 1, response = COALESCE(%(response)s, 'null'), changed_at = t.now
     , reference = CASE WHEN %(reference)s = '' THEN s.reference ELSE %(reference)s END
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status IN ('absent', 'abandoned')
RETURNING s.status
"""

COUNT_OPEN = """
UPDATE {table} AS j
   SET {open_effects} = (SELECT COUNT(*) FROM jobs_effectslot s
                          WHERE s.job_id = j.{id} AND s.status IN ('executing', 'unknown'))
     , {state_version} = j.{state_version} + 1
 WHERE j.{id} = %(id)s
"""


def report(session: Session, effect_id: str, *, attempt: Any, grant_id: Any, **values: Any) -> str | None:
    """Record what the sender says; returns the slot's status, or None where it decides nothing any more."""
    return _one(session, REPORT, id=effect_id, attempt=attempt, grant=grant_id, **values)


def found(session: Session, effect_id: str, version: int, *, response: str, reference: str) -> str | None:
    """Record that an inquiry found the effect; None where the slot is not as it was when it was asked."""
    return _one(session, FOUND, id=effect_id, version=version, response=response, reference=reference)


def missed(session: Session, effect_id: str, version: int, *, asked: Any) -> str | None:
    """Record that an inquiry found nothing, if that proves anything; None where it does not."""
    return _one(session, MISSED, id=effect_id, version=version, asked=asked)


def rule(session: Session, effect_id: str, version: int, verdict: str, **values: Any) -> str | None:
    """Write a person's ruling on a slot; None where its version or status is another by now."""
    sets, guard = RULINGS[verdict]
    text = RULE.replace("SETS", sets).replace("GUARD", guard)
    return _one(session, text, id=effect_id, version=version, **values)


def doubt(session: Session, effect_id: str, version: int) -> str | None:
    """Turn an `absent` slot `unknown` without a grantee; None where it is not absent any more."""
    return _one(session, DOUBTED, id=effect_id, version=version)


def record_late(
    session: Session, effect_id: str, version: int, *, response: str | None, reference: str
) -> str | None:
    """Make a slot of an ended job `committed` after all."""
    return _one(session, RECORDED_LATE, id=effect_id, version=version, response=response, reference=reference)


def count_open(session: Session, job_id: Any) -> None:
    """Bring the job row's counter up to what its slots say, under its lock."""
    session.run(COUNT_OPEN, id=job_id)


def _one(session: Session, text: str, **values: Any) -> str | None:
    rows = session.run(_own(session, text), **values)
    return rows[0][0] if rows else None


def _own(session: Session, text: str) -> str:
    """SQLite knows no alias in RETURNING, and compares times as text."""
    if session.locks_rows:
        return text.replace("%(response)s", "%(response)s::text")
    return text.replace("RETURNING s.", "RETURNING ")


# -- inquiries ------------------------------------------------------------------------------------------------

# Two workers must not ask at once, and no transaction is open while one asks.
BEGIN_INQUIRY = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET inquiring_until = {plus:t.now+%(seconds)s}, inquiries = s.inquiries + 1, inquired_at = t.now
  FROM t
 WHERE s.id = %(id)s AND s.status = 'unknown' AND (s.inquiring_until IS NULL OR s.inquiring_until <= t.now)
RETURNING s.version
"""

END_INQUIRY = """
UPDATE jobs_effectslot SET inquiring_until = NULL WHERE id = %(id)s
"""

PROVE_GONE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET sender_ended_at = t.now, changed_at = t.now
  FROM t
 WHERE s.id = %(id)s AND s.status = 'unknown' AND s.sender_ended_at IS NULL AND s.granted_attempt_id = %(attempt)s
RETURNING s.id
"""


# Whoever runs the job asks for himself; so do these two when nobody does.
TO_ASK = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT s.id, s.kind
  FROM jobs_effectslot s JOIN {table} j ON j.{id} = s.job_id CROSS JOIN t
 WHERE s.status = 'unknown'
   AND s.inquirable
   AND NOT s.in_conflict
   AND j.{status} <> {:running}
   AND (s.inquiring_until IS NULL OR s.inquiring_until <= t.now)
   AND (s.inquired_at IS NULL OR {plus:s.inquired_at+%(every)s} <= t.now
        OR s.inquired_at < {plus:s.sender_ended_at+s.settle_seconds}
           AND {plus:s.sender_ended_at+s.settle_seconds} <= t.now)
 ORDER BY s.changed_at
 LIMIT %(limit)s
"""


def to_ask(session: Session, *, every: int, limit: int) -> list[tuple[str, str]]:
    """Return slots, with their kinds, that the provider should be asked about now; the longest unknown first."""
    return [(row[0], row[1]) for row in session.run(TO_ASK, every=every, limit=limit)]


def begin_inquiry(session: Session, effect_id: str, *, seconds: int) -> bool:
    """Take the turn to ask the provider for up to `seconds`; False while somebody else asks."""
    return bool(session.run(_own(session, BEGIN_INQUIRY), id=effect_id, seconds=seconds))


def end_inquiry(session: Session, effect_id: str) -> None:
    """Give the turn back."""
    session.run(END_INQUIRY, id=effect_id)


def clock(session: Session) -> datetime:
    """Return T: an inquiry that is sent later than this was sent after it."""
    now = session.moment(session.run("SELECT {clock}")[0][0])
    assert now is not None  # noqa: S101
    return now


def prove_gone(session: Session, effect_id: str, attempt: Any) -> bool:
    """Record that the sender's process is proven gone, as of now: the proof's time, not the lease's end."""
    return bool(session.run(_own(session, PROVE_GONE), id=effect_id, attempt=attempt))


# -- the job of a settled slot ---------------------------------------------------------------------------------

# The first that applies: cancel requested; a ruling to abandon, or an abandoned slot that was ever granted;
# deadline passed; else pending, with one more attempt excused if none is left.
RESOLVE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now),
e AS MATERIALIZED (
  SELECT k.{id} AS id
       , CASE WHEN k.{cancel_requested_at} IS NOT NULL THEN 'cancelled'
              WHEN EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = k.{id} AND s.revision = k.{revision}
                              AND (s.ruled_abandon OR s.status = 'abandoned' AND s.grants > 0)) THEN 'abandoned'
              WHEN k.{deadline_at} <= t.now THEN 'late' ELSE 'pending' END AS cause
    FROM {table} AS k CROSS JOIN t WHERE k.{id} = %(id)s)
UPDATE {table} AS j
   SET {status} = CASE e.cause WHEN 'abandoned' THEN 'failed' WHEN 'late' THEN 'failed' ELSE e.cause END
     , {claim_generation} = j.{claim_generation} + 1
     , {state_version} = j.{state_version} + 1
     , {next_attempt_at} = CASE WHEN e.cause = 'pending' THEN t.now END
     , {ready_at} = CASE WHEN e.cause = 'pending' AND j.{hold_reason} = '' THEN t.now END
     , {finished_at} = CASE WHEN e.cause <> 'pending' THEN t.now END
     , {attempts_excused} = j.{attempts_excused}
         + CASE WHEN e.cause = 'pending' AND j.{attempt_count} - j.{attempts_excused} >= j.{max_attempts} THEN 1 ELSE 0 END
     , {error_code} = CASE e.cause WHEN 'cancelled' THEN 'JOB_CANCELLED' WHEN 'abandoned' THEN 'EFFECT_ABANDON_FAILED'
                                   WHEN 'late' THEN 'JOB_DEADLINE_EXCEEDED' ELSE '' END
     , {error_message} = ''
  FROM t, e
 WHERE j.{id} = e.id
   AND j.{status} = {:uncertain}
   AND j.{open_effects} = 0
   AND NOT EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = j.{id} AND s.in_conflict)
RETURNING {j}{status}, {j}{queue}
"""


def resolve_job(session: Session, job_id: Any) -> tuple[JobStatus, str] | None:
    """Move an uncertain job on whose last open matter is closed; None where there is one left, or it is not."""
    rows = session.run(RESOLVE, id=job_id)
    return (session.vocabulary.status_of(rows[0][0]), rows[0][1]) if rows else None


# -- evidence ---------------------------------------------------------------------------------------------------

ADD_EVIDENCE = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_evidence (at, effect_id, source, outcome, decisive, reference, body, attempt_id, actor)
SELECT t.now, %(effect_id)s, %(source)s, %(outcome)s, %(decisive)s, %(reference)s, %(body)s, %(attempt_id)s, %(actor)s
  FROM t
"""


def add_evidence(
    session: Session,
    effect_id: str,
    *,
    source: str,
    outcome: str,
    decisive: bool,
    reference: str = "",
    body: str = "",
    attempt_id: Any = None,
    actor: str = "",
) -> None:
    """Keep one thing that was learnt; never changed, never removed."""
    session.run(
        ADD_EVIDENCE,
        effect_id=effect_id,
        source=source,
        outcome=outcome,
        decisive=decisive,
        reference=reference[:200],
        body=body,
        attempt_id=attempt_id,
        actor=actor[:200],
    )
