"""What became of a sending, by whoever tells it: its sender, an inquiry, a person (contract §4 Late reports, §6).

Each write is a compare-and-set on the slot under its job's row lock; the last of a job's open matters moves the
job on.
"""

from __future__ import annotations

from typing import Any

from jobs.ledger.session import Session
from jobs.status import JobStatus

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
RETURNING {s}status
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
RETURNING {s}status
"""

# `asked` is the instant, by the database's clock, at which the inquiry was sent. Where no time to settle is
# declared, or the sender may still send, the sum is null and nothing is proven.
MISSED = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'absent', version = s.version + 1, changed_at = t.now, earlier_unresolved = {false}
     , inquiring_until = NULL
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status = 'unknown'
   AND {plus:s.sender_ended_at+s.settle_seconds} <= %(asked)s
RETURNING {s}status
"""

RULE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET version = s.version + 1, changed_at = t.now, SETS
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND GUARD
RETURNING {s}status
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
RETURNING {s}status
"""

# The same of a job that has ended: a retry must answer from the record.
RECORDED_LATE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'committed', version = s.version + 1, response = COALESCE(%(response)s, 'null'), changed_at = t.now
     , reference = CASE WHEN %(reference)s = '' THEN s.reference ELSE %(reference)s END
  FROM t
 WHERE s.id = %(id)s AND s.version = %(version)s AND s.status IN ('absent', 'abandoned')
RETURNING {s}status
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
    rows = session.run(text, **values)
    return rows[0][0] if rows else None


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
