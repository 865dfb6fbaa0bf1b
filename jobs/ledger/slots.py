"""Effect slots: every write of one, a compare-and-set under its job's row lock (contract §3, §6).

The caller has locked the job row first, so what is read of a slot afterwards cannot change before it is written;
each write asks for what it rests on all the same, and rowcount decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobs.ledger import fence
from jobs.ledger.session import Session

# Open stays open, so the counter on the job row does not change.
TO_UNKNOWN = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'unknown', version = s.version + 1, changed_at = t.now
  FROM t, {rows:ids}
 WHERE s.job_id = r.id AND s.status = 'executing'
"""

WITHOUT_OPEN = """
SELECT j.{id}, j.{claim_generation}, j.{revision}, j.{input}, j.{input_digest}, j.{attempt_id},
       CASE j.{label} WHEN '' THEN j.{kind} ELSE j.{label} END
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
    {false}, '', {false}, {false}, %(label)s, '', '', '', %(payload)s, %(digest)s,
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


def without_open_slot(session: Session, ids: Sequence[Any]) -> list[dict[str, Any]]:
    """Return those jobs that have no open slot, with what one that stands for the whole run says of it."""
    rows = session.run(WITHOUT_OPEN, {"ids": [{"id": i} for i in ids]})
    names = ("job_id", "generation", "revision", "payload", "digest", "attempt_id", "label")
    return [
        dict(zip(names, (session.key(r[0]), *r[1:5], session.key(r[5]), r[6]), strict=True)) for r in rows
    ]


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
    being_asked: bool
    """Whether some process is asking the provider about it just now."""

    @property
    def is_open(self) -> bool:
        return self.status in ("executing", "unknown")


COLUMNS = [
    name for name in Slot._fields if name not in ("key_expired", "settled", "settles_in", "being_asked")
]

FIND = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
SELECT {", ".join(f"s.{name}" for name in COLUMNS)}, COALESCE(s.key_valid_until <= t.now, {{false}}), s.sender_ended_at,
       s.settle_seconds, COALESCE(s.inquiring_until > t.now, {{false}}), t.now
  FROM jobs_effectslot AS s CROSS JOIN t
 WHERE s.id = %(id)s
"""


def find(session: Session, effect_id: str) -> Slot | None:
    """Return a slot as it is now, or None."""
    rows = session.run(FIND, id=effect_id)
    if not rows:
        return None
    *values, expired, ended, settle, asked, now = rows[0]
    named = dict(zip(COLUMNS, values, strict=True))
    for name in ("job_id", "granted_attempt_id", "grant_id"):
        named[name] = session.key(named[name])
    for name in ("inquirable", "in_conflict", "use_recorded", "earlier_unresolved"):
        named[name] = bool(named[name])
    left = None
    ended, now = session.moment(ended), session.moment(now)
    if ended is not None and settle is not None and now is not None:
        left = settle - (now - ended).total_seconds()
    return Slot(
        **named,
        key_expired=bool(expired),
        settled=left is not None and left <= 0,
        settles_in=left,
        being_asked=bool(asked),
    )


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
RETURNING {s}version
"""


def insert(session: Session, values: dict[str, Any]) -> bool:
    """Bind a payload to a new slot; False where the slot is there already."""
    return bool(session.run(INSERT, **values))


def reopen(session: Session, values: dict[str, Any], version: int) -> bool:
    """Bind a payload anew to a slot that was closed without having been sent."""
    names = ("id", "payload", "digest", "label", "target", "amount", "currency", "etag")
    return bool(session.run(REOPEN, version=version, **{name: values[name] for name in names}))


CONFLICT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET in_conflict = true, conflict_payload = %(payload)s, conflict_digest = %(digest)s, version = s.version + 1
     , changed_at = t.now
  FROM t
 WHERE s.id = %(id)s AND NOT s.in_conflict AND s.payload_digest <> %(digest)s
RETURNING {s}version
"""


def conflict(session: Session, effect_id: str, *, payload: str, digest: str) -> bool:
    """Keep the other payload that was brought for a slot's key; a person rules which one stands."""
    return bool(session.run(CONFLICT, id=effect_id, payload=payload, digest=digest))


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
RETURNING {s}version
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
        USE_APPROVAL,
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
    done = session.run(text, id=slot.id, version=slot.version, attempt=token["attempt_id"], grant=grant_id)
    if not done:
        raise NotGranted
    return True


class NotGranted(Exception):
    """A grant that cannot be: what was written for it is rolled back."""
