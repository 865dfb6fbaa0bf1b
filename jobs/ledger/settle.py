"""Endings: the commit, the stage, and every other way an attempt ends (contract §3, §4).

One set-based statement each; one job is a list of one. The row locks are taken by the statement before,
so what these statements read of the locked rows cannot change under them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from jobs.ledger import fence
from jobs.ledger.session import Encoded, Session
from jobs.ledger.slots import needs_person
from jobs.status import JobStatus

COMMIT = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
UPDATE {{table}} AS j
   SET {{status}} = {{:succeeded}}
     , {{lease_expires_at}} = NULL
?result_commit_id|     , {{result_commit_id}} = r.attempt_id
?finished_at|     , {{finished_at}} = t.now
?worker_id|     , {{worker_id}} = NULL
?heartbeat_at|     , {{heartbeat_at}} = NULL
?state_version|     , {{state_version}} = j.{{state_version}} + 1
?next_attempt_at|     , {{next_attempt_at}} = NULL
?error_code|     , {{error_code}} = ''
?error_message|     , {{error_message}} = ''
  FROM t, {{rows:leases}}
 WHERE j.{{id}} = r.id
{fence.fence("commit")}
?result_commit_id|   AND (r.result IS NOT NULL OR EXISTS (SELECT 1 FROM jobs_attempt a
?result_commit_id|                  WHERE a.id = r.attempt_id AND a.staged_at IS NOT NULL AND a.result_digest = r.result_digest))
RETURNING {{key:{{j}}{{id}}}}
"""

STAGE = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
SELECT j.{{id}}
  FROM {{table}} AS j CROSS JOIN t, {{rows:leases}}
 WHERE j.{{id}} = r.id
{fence.fence("stage")}
"""

# *Endings*, line by line; `cause` is the line that applied. Each line is emitted for a table that can say it;
# the last WHEN never applies, and is there for a table that can say none.
END = """
WITH t AS MATERIALIZED (SELECT {clock} AS now),
judged AS MATERIALIZED (
  SELECT r.*,
         CASE
?open_effects|           WHEN k.{open_effects} > 0 AND (k.{cancel_requested_at} IS NOT NULL OR r.forced = 1
?open_effects|                  OR k.{deadline_at} <= t.now
?open_effects|                  OR k.{attempt_count} - k.{attempts_excused} - r.excused >= k.{max_attempts}
?open_effects|                  OR r.wish IN ('failed', 'skipped', 'cancelled', 'uncertain')
?open_effects,wait_ends_at|                  OR r.wish = 'waiting' AND k.{wait_ends_at} <= t.now
?open_effects|                  OR NEEDS_PERSON) THEN 'open'
?cancel_requested_at|           WHEN k.{cancel_requested_at} IS NOT NULL OR r.forced = 1 THEN 'cancel'
?deadline_at|           WHEN k.{deadline_at} <= t.now THEN 'deadline'
?max_attempts|           WHEN r.retry = 1 AND k.{attempt_count} - k.{attempts_excused} - r.excused >= k.{max_attempts} THEN 'budget'
?wait_ends_at|           WHEN r.wish = 'waiting' AND k.{wait_ends_at} <= t.now THEN 'waited'
           WHEN r.wish IS NULL THEN 'asked'
           ELSE 'asked' END AS cause
    FROM {rows:endings} JOIN {table} AS k ON k.{id} = r.id CROSS JOIN t),
e AS MATERIALIZED (
  SELECT judged.*,
         CASE cause WHEN 'open' THEN 'uncertain' WHEN 'cancel' THEN 'cancelled' WHEN 'deadline' THEN 'failed'
                    WHEN 'budget' THEN 'failed' WHEN 'waited' THEN 'failed' ELSE wish END AS target
    FROM judged)
UPDATE {table} AS j
   SET {status} = {word:r.target}
     , {lease_expires_at} = NULL
?claim_generation|     , {claim_generation} = j.{claim_generation} + r.bump
?worker_id|     , {worker_id} = NULL
?heartbeat_at|     , {heartbeat_at} = NULL
?state_version|     , {state_version} = j.{state_version} + 1
?attempts_excused|     , {attempts_excused} = j.{attempts_excused} + r.excused
?wait_reason|     , {wait_reason} = CASE WHEN r.target = 'waiting' THEN r.wait_reason ELSE '' END
?wait_ends_at|     , {wait_ends_at} = CASE WHEN r.target = 'waiting' THEN COALESCE(j.{wait_ends_at}, {after:r.wait_total}) ELSE j.{wait_ends_at} END
?next_attempt_at|     , {next_attempt_at} = CASE r.target WHEN 'pending' THEN {after:r.delay}
?next_attempt_at,wait_ends_at|             WHEN 'waiting' THEN CASE WHEN r.delay IS NOT NULL THEN
?next_attempt_at,wait_ends_at|               {least}({after:r.delay}, COALESCE(j.{wait_ends_at}, {after:r.wait_total})) END END
?next_attempt_at,!wait_ends_at|             WHEN 'waiting' THEN {after:r.delay} END
?ready_at|     , {ready_at} = CASE WHEN r.target = 'pending' AND r.at_once = 1 AND j.{hold_reason} = '' THEN {after:r.delay} END
?finished_at|     , {finished_at} = CASE WHEN r.target IN ('failed', 'cancelled', 'skipped') THEN t.now END
?cancel_requested_at|     , {cancel_requested_at} = CASE WHEN r.forced = 1 THEN COALESCE(j.{cancel_requested_at}, t.now) ELSE j.{cancel_requested_at} END
?cancel_generation|     , {cancel_generation} = j.{cancel_generation} + CASE WHEN r.forced = 1 AND j.{cancel_requested_at} IS NULL THEN 1 ELSE 0 END
?cancel_requested_by|     , {cancel_requested_by} = CASE WHEN r.forced = 1 AND j.{cancel_requested_at} IS NULL THEN r.actor ELSE j.{cancel_requested_by} END
?cancel_reason|     , {cancel_reason} = CASE WHEN r.forced = 1 AND j.{cancel_requested_at} IS NULL THEN r.reason ELSE j.{cancel_reason} END
?error_code|     , {error_code} = CASE r.cause WHEN 'deadline' THEN 'JOB_DEADLINE_EXCEEDED' WHEN 'budget' THEN r.spent_code
?error_code|                                   WHEN 'waited' THEN 'JOB_WAIT_EXCEEDED' WHEN 'cancel' THEN 'JOB_CANCELLED' ELSE r.error_code END
?error_message|     , {error_message} = r.error_message
?open_effects|     , {open_effects} = CASE WHEN r.cause = 'asked' AND r.target = 'uncertain' AND j.{open_effects} = 0
?open_effects|                                   AND COALESCE(r.matter, 0) = 0 THEN 1 ELSE j.{open_effects} END
  FROM t, e AS r
 WHERE j.{id} = r.id
FENCE
RETURNING {key:{j}{id}}, {j}{status}
?attempt_id|        , {key:{j}{attempt_id}}
?queue|        , {j}{queue}
?kind|        , {j}{kind}
"""

EXPIRED = f"""
{fence.EXPIRED}
   AND j.{{generation}} = r.generation
?hold_reason|   AND j.{{hold_reason}} <> 'quarantine'
"""
IDLE = """
   AND j.{status} IN {in:idle}
"""
PAST_DEADLINE = """
   AND j.{status} IN {in:idle}
   AND j.{deadline_at} <= t.now
"""
UNFINISHED = """
   AND j.{status} NOT IN {in:terminal}
   AND j.{state_version} = r.state_version
"""

FENCES = {
    "end": fence.fence("end"),
    "acknowledge_cancel": fence.fence("acknowledge_cancel"),
    "expired": EXPIRED,
    "idle": IDLE,
    "past_deadline": PAST_DEADLINE,
    "unfinished": UNFINISHED,
}


class Ended(NamedTuple):
    """One job that an ending landed on."""

    id: Any
    status: JobStatus
    attempt_id: Any = None
    queue: str = ""
    kind: str = ""
    overdue: float = 0.0
    """Seconds between the end of a recovered lease and its recovery."""


@cache
def end_text(fenced_by: str) -> str:
    """Return the ending statement under one of `FENCES`."""
    return END.replace("NEEDS_PERSON", needs_person("k")).replace("FENCE", FENCES[fenced_by].strip("\n"))


def commit(session: Session, leases: Encoded) -> set[Any]:
    """Make each result of an encoded row list canonical where the full fence holds; returns what landed."""
    return {row[0] for row in session.run(COMMIT, {"leases": leases})}


def may_stage(session: Session, leases: Sequence[dict[str, Any]]) -> set[Any]:
    """Return the ids whose fence permits a staged result now, under the locks that are held."""
    return {session.key(row[0]) for row in session.run(STAGE, {"leases": leases})}


def end(session: Session, endings: Sequence[dict[str, Any]], *, fenced_by: str) -> list[Ended]:
    """End attempts (or idle jobs) where the named fence holds, each as *Endings* says; returns what landed."""
    if not endings:
        return []
    landed = []
    for row in session.run(end_text(fenced_by), {"endings": endings}):
        values = list(row)
        names = ["id", "status", *(n for n in ("attempt_id", "queue", "kind") if session.vocabulary.has(n))]
        entry = dict(zip(names, values, strict=True))
        entry["status"] = session.vocabulary.status_of(entry["status"])
        landed.append(Ended(**entry))
    return landed


# -- attempts -------------------------------------------------------------------------------------------

OPEN_ATTEMPTS = """
INSERT INTO jobs_attempt (id, job_id, generation, revision, worker_id, scheduler_epoch, status, started_at,
                          error_code, error_message, traceback, beats, progress_note, log, traceparent)
SELECT j.attempt_id, j.id, j.claim_generation, j.revision, j.worker_id, j.scheduler_epoch, 'running', j.started_at,
       '', '', '', 0, '', '', COALESCE(NULLIF(%(traceparent)s, ''), j.traceparent)
  FROM jobs_job AS j
 WHERE j.id {among:ids}
"""

CLOSE_COMMITTED = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_attempt AS a
   SET status = 'committed'
     , finished_at = t.now
     , result = COALESCE(r.result, a.result)
     , result_digest = r.result_digest
     , log = COALESCE(r.log, a.log)
  FROM t, {rows:leases}
 WHERE a.id = r.attempt_id AND COALESCE(a.status = 'running', false)
"""

CLOSE_ATTEMPTS = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_attempt AS a
   SET status = r.status
     , finished_at = t.now
     , result = COALESCE(r.result, a.result)
     , result_digest = COALESCE(r.result_digest, a.result_digest)
     , error_code = COALESCE(r.error_code, '')
     , error_message = COALESCE(r.error_message, '')
     , traceback = COALESCE(r.traceback, '')
     , log = COALESCE(r.log, a.log)
  FROM t, {rows:closings}
 WHERE a.id = r.attempt_id AND COALESCE(a.status = 'running', false)
"""

STAGE_ATTEMPTS = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_attempt AS a
   SET staged_at = t.now
     , result = r.result
     , result_digest = r.result_digest
  FROM t, {rows:closings}
 WHERE a.id = r.attempt_id AND COALESCE(a.status = 'running', false)
"""

# Beats, progress and log lines authorise nothing, so they ask only that the attempt has not ended.
NOTE_ATTEMPTS = """
UPDATE jobs_attempt AS a
   SET beats = a.beats + r.beats
     , progress_done = COALESCE(r.progress_done, a.progress_done)
     , progress_total = COALESCE(r.progress_total, a.progress_total)
     , progress_note = COALESCE(r.progress_note, a.progress_note)
     , log = COALESCE(r.log, a.log)
  FROM {rows:notes}
 WHERE a.id = r.attempt_id AND COALESCE(a.status = 'running', false)
"""

FIND_COMMIT = """
SELECT a.result_digest FROM jobs_attempt AS a WHERE a.id = %(attempt)s AND a.status = 'committed'
"""


def open_attempts(session: Session, ids: Sequence[Any], *, traceparent: str = "") -> None:
    """Write the attempt rows of jobs just claimed, in the claim's transaction and its trace."""
    session.run(OPEN_ATTEMPTS, {"ids": [{"id": i} for i in ids]}, traceparent=traceparent)


def close_committed(session: Session, leases: Encoded) -> None:
    """Close the attempts of an encoded row list as committed, in the commit's transaction."""
    session.run(CLOSE_COMMITTED, {"leases": leases})


def close_attempts(session: Session, closings: Sequence[dict[str, Any]]) -> None:
    """Close attempt rows in the transaction of their ending; an attempt that has ended stays as it is."""
    if closings:
        session.run(CLOSE_ATTEMPTS, {"closings": closings})


def stage_attempts(session: Session, closings: Sequence[dict[str, Any]]) -> None:
    """Keep results on running attempts; `may_stage` has judged the fence."""
    session.run(STAGE_ATTEMPTS, {"closings": closings})


def note_attempts(session: Session, notes: Sequence[dict[str, Any]]) -> None:
    """Write beats, progress and log lines of running attempts."""
    session.run(NOTE_ATTEMPTS, {"notes": notes})


def committed_digest(session: Session, attempt_id: Any) -> str | None:
    """Return the digest that `attempt_id` committed, or None: tells a replay from a conflict."""
    rows = session.run(FIND_COMMIT, attempt=attempt_id)
    return rows[0][0] if rows else None


CLOSED_AS = """
SELECT a.status, a.error_code FROM jobs_attempt AS a WHERE a.id = %(attempt)s AND a.status <> 'running'
"""


def closed_as(session: Session, attempt_id: Any) -> tuple[str, str] | None:
    """Return how an attempt ended and with which code, or None while it runs: tells a replayed ending."""
    rows = session.run(CLOSED_AS, attempt=attempt_id)
    return (rows[0][0], rows[0][1]) if rows else None
