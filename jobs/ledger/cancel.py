"""Cancel requests, holds, operator retry and revision: a person's writes on the job row (contract §3, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobs.ledger.session import Session
from jobs.status import JobStatus

# A cancel writes through to children, whatever their depth, in the same transaction.
FAMILY = """
WITH RECURSIVE family(id) AS (
  SELECT {id} FROM {table} WHERE {id} = %(id)s
  UNION
  SELECT c.{id} FROM {table} AS c JOIN family ON c.{parent_id} = family.id)
SELECT id FROM family
"""

REQUEST = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {cancel_requested_at} = t.now
     , {cancel_generation} = j.{cancel_generation} + 1
     , {cancel_requested_by} = %(actor)s
     , {cancel_reason} = %(reason)s
     , {state_version} = j.{state_version} + 1
  FROM t, {rows:ids}
 WHERE j.{id} = r.id
   AND j.{status} IN {in:requestable}
   AND j.{cancel_requested_at} IS NULL
RETURNING {j}{id}, {j}{status}
"""

READ = """
SELECT {id}, {status}, {state_version}, {cancel_requested_at} IS NOT NULL, {parent_id}, {unmet_edges}, {hold_reason},
       {deadline_at}, {open_effects}, {unique_key}, {claim_generation}, {attempt_id}, {wait_reason},
       {revision}, {input_digest}, {cancel_generation}
  FROM {table}
 WHERE {id} {among:ids}
"""


class Row(NamedTuple):
    """A locked job as a person's verb judges it."""

    id: Any
    status: JobStatus
    state_version: int
    cancel_requested: bool
    parent_id: Any
    unmet_edges: int
    hold_reason: str
    deadline_at: Any
    open_effects: int
    unique_key: str | None
    claim_generation: int
    attempt_id: Any
    wait_reason: str
    revision: int
    input_digest: str
    cancel_generation: int


def family(session: Session, job_id: Any) -> list[Any]:
    """Return the job and all its descendants."""
    return [session.key(row[0]) for row in session.run(FAMILY, id=job_id)]


def read(session: Session, ids: Sequence[Any]) -> dict[Any, Row]:
    """Return locked rows by id."""
    found = {}
    for row in session.run(READ, {"ids": [{"id": i} for i in ids]}):
        values = list(row)
        values[0], values[4], values[11] = session.key(row[0]), session.key(row[4]), session.key(row[11])
        values[1] = session.vocabulary.status_of(row[1])
        values[3] = bool(row[3])
        values[7] = session.moment(row[7])
        found[values[0]] = Row(*values)
    return found


def request(session: Session, ids: Sequence[Any], *, actor: str, reason: str) -> dict[Any, JobStatus]:
    """Record the first cancel request on running and uncertain jobs; returns those it landed on."""
    rows = session.run(REQUEST, {"ids": [{"id": i} for i in ids]}, actor=actor, reason=reason)
    return {session.key(row[0]): session.vocabulary.status_of(row[1]) for row in rows}


# Fresh budget, no marks of the last life; generations, attempts and slots are kept (contract §3, Operator retry).
RETRY = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {status} = CASE WHEN j.{unmet_edges} > 0 THEN {:blocked} ELSE {:pending} END
     , {state_version} = j.{state_version} + 1
     , {attempts_excused} = j.{attempt_count}
     , {next_attempt_at} = CASE WHEN j.{unmet_edges} > 0 THEN {no_time} ELSE t.now END
     , {ready_at} = CASE WHEN j.{unmet_edges} > 0 OR j.{hold_reason} <> '' THEN {no_time} ELSE t.now END
     , {deadline_at} = {deadline}
     , {started_at} = NULL, {finished_at} = NULL, {wait_ends_at} = NULL
     , {cancel_requested_at} = NULL, {cancel_requested_by} = '', {cancel_reason} = ''
     , {error_code} = '', {error_message} = ''
  FROM t
 WHERE j.{id} = %(id)s
   AND j.{status} IN {in:retryable}
   AND j.{state_version} = %(state_version)s
   AND ({deadline} IS NULL OR {deadline} > t.now)
   AND NOT EXISTS (SELECT 1 FROM jobs_effectslot s
                    WHERE s.job_id = j.{id} AND s.status = 'abandoned' AND s.grants > 0 AND s.revision = j.{revision})
RETURNING {j}{status}, {j}{state_version}, {j}{queue}
"""

# A new revision: new keys for effects, the holder learns STALE_INPUT, generation and lease untouched.
REVISE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {input} = %(input)s
     , {input_digest} = %(digest)s
     , {revision} = j.{revision} + 1
     , {state_version} = j.{state_version} + 1
     , {next_attempt_at} = CASE WHEN j.{wait_reason} = 'approval' THEN t.now ELSE j.{next_attempt_at} END
     , {wait_reason} = CASE WHEN j.{wait_reason} = 'approval' THEN 'timer' ELSE j.{wait_reason} END
  FROM t
 WHERE j.{id} = %(id)s
   AND j.{status} IN {in:revisable}
   AND j.{state_version} = %(state_version)s
   AND j.{open_effects} = 0
RETURNING {j}{status}, {j}{state_version}, {j}{revision}
"""

CLOSE_UNSENT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'abandoned', version = s.version + 1, changed_at = t.now
  FROM t, {rows:ids}
 WHERE s.job_id = r.id AND s.status IN WORDS
"""

HOLD_MANY = """
UPDATE {table} AS j
   SET {hold_reason} = %(hold)s
     , {ready_at} = NULL
     , {state_version} = j.{state_version} + 1
  FROM {rows:ids}
 WHERE j.{id} = r.id
   AND j.{hold_reason} = ''
   AND j.{status} NOT IN {in:terminal}
RETURNING {key:{j}{id}}, {j}{status}
"""

HOLD = """
UPDATE {table} AS j
   SET {hold_reason} = %(hold)s
     , {ready_at} = NULL
     , {state_version} = j.{state_version} + 1
 WHERE j.{id} = %(id)s
   AND j.{hold_reason} <> %(hold)s
   AND (%(seen)s IS NULL OR j.{state_version} = %(seen)s)
   AND j.{status} NOT IN {in:terminal}
RETURNING {j}{status}, {j}{state_version}
"""


def retry(
    session: Session, job_id: Any, *, state_version: int, deadline: Any = None
) -> tuple[JobStatus, int, str] | None:
    """Bring an ended job back with a fresh budget; None where a guard refused. `deadline` replaces a passed one."""
    text = RETRY.replace("{deadline}", "%(deadline)s" if deadline is not None else "j.{deadline_at}")
    if session.locks_rows:
        text = text.replace("%(deadline)s", "%(deadline)s::timestamptz")
    rows = session.run(text, id=job_id, state_version=state_version, deadline=deadline)
    return (session.vocabulary.status_of(rows[0][0]), rows[0][1], rows[0][2]) if rows else None


def revise(
    session: Session, job_id: Any, *, text: str, digest: str, state_version: int, ruled: bool = False
) -> tuple[JobStatus, int, int] | None:
    """Replace a job's input; returns status, state version and revision, or None where a guard refused.

    `ruled` is for the ruling on a payload conflict: that one revises an uncertain job, and no other.
    """
    statement = REVISE.replace("IN {in:revisable}", "= {:uncertain}") if ruled else REVISE
    rows = session.run(statement, id=job_id, input=text, digest=digest, state_version=state_version)
    return (session.vocabulary.status_of(rows[0][0]), rows[0][1], rows[0][2]) if rows else None


def close_unsent(session: Session, ids: Sequence[Any], *, statuses: Sequence[str] = ("prepared",)) -> None:
    """Abandon slots that were certainly never sent, of jobs that end or are revised."""
    words = "(" + ", ".join(f"'{status}'" for status in statuses) + ")"
    session.run(CLOSE_UNSENT.replace("WORDS", words), {"ids": [{"id": i} for i in ids]})


def hold_many(session: Session, ids: Sequence[Any], hold: str) -> dict[Any, JobStatus]:
    """Hold those of locked jobs that have not ended and are not held; returns the status of each by id."""
    rows = session.run(HOLD_MANY, {"ids": [{"id": session.key(i)} for i in ids]}, hold=hold)
    return {session.key(row[0]): session.vocabulary.status_of(row[1]) for row in rows}


def hold(session: Session, job_id: Any, reason: str, *, seen: int | None) -> tuple[JobStatus, int] | None:
    """Set or (with an empty `reason`) lift a hold; None where it is so already or the row moved on."""
    text = HOLD
    if session.locks_rows:
        text = text.replace("%(seen)s", "%(seen)s::bigint")
    rows = session.run(text, id=job_id, hold=reason, seen=seen)
    return (session.vocabulary.status_of(rows[0][0]), rows[0][1]) if rows else None
