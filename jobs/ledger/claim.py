"""The claim: the one statement that hands out work, and the promotion that feeds it (contract §5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jobs.ledger import fence
from jobs.ledger.session import Session, attempt_prefix
from jobs.ledger.slots import needs_person
from jobs.outcomes import Lease

READY = """
?queue|       AND j.{queue} = %(queue)s
?kind|       AND j.{kind} = %(kind_NUMBER)s
       AND j.{status} IN {in:claimable}
?ready_at|       AND j.{ready_at} IS NOT NULL AND j.{ready_at} <= t.now
?next_attempt_at,!ready_at|       AND (j.{next_attempt_at} IS NULL OR j.{next_attempt_at} <= t.now)
?cancel_requested_at|       AND j.{cancel_requested_at} IS NULL
?hold_reason|       AND j.{hold_reason} = ''
?deadline_at|       AND (j.{deadline_at} IS NULL OR j.{deadline_at} > t.now)
     ORDER BY
?priority|              j.{priority} DESC,
?ready_at|              j.{ready_at},
?next_attempt_at,!ready_at|              j.{next_attempt_at},
              j.{id}
"""

# Of one kind the ready rows stand in the claim index in claim order: lock the first ones that are free.
PICK_KIND = """
  SELECT j.{id} AS id
    FROM {table} AS j CROSS JOIN t
   WHERE true
READY
   LIMIT %(limit)s {skip_locked}
"""

# Of several kinds, one branch each, so that a backlog of unknown kinds, other queues or far-future jobs is
# never stepped over. The head is read without locks and is longer than what is asked for: rows that another
# claim holds are skipped, not waited for.
HEAD = """
  SELECT * FROM (
    SELECT j.{id} AS id
?priority|         , j.{priority} AS priority
?!priority|         , 0 AS priority
?ready_at|         , j.{ready_at} AS due
?next_attempt_at,!ready_at|         , j.{next_attempt_at} AS due
?!ready_at,!next_attempt_at|         , {no_time} AS due
      FROM {table} AS j CROSS JOIN t
     WHERE true
READY
     LIMIT %(scan)s) AS head_NUMBER
"""

PICK_HEAD = """
  SELECT j.{id} AS id
    FROM head JOIN {table} AS j ON j.{id} = head.id CROSS JOIN t
   WHERE j.{status} IN {in:claimable}
?ready_at|     AND j.{ready_at} IS NOT NULL AND j.{ready_at} <= t.now
?next_attempt_at,!ready_at|     AND (j.{next_attempt_at} IS NULL OR j.{next_attempt_at} <= t.now)
?cancel_requested_at|     AND j.{cancel_requested_at} IS NULL
?hold_reason|     AND j.{hold_reason} = ''
   ORDER BY head.priority DESC, head.due, head.id
   LIMIT %(limit)s {skip_locked}
"""

# The row is locked by the statement before this one; ?-lines keep what the table can say.
PICK_ID = """
  SELECT j.{id} AS id FROM {table} AS j WHERE j.{id} = %(id)s
"""

FREE = """
   AND j.{status} IN {in:claimable}
?ready_at|   AND j.{ready_at} IS NOT NULL AND j.{ready_at} <= t.now
?next_attempt_at,!ready_at|   AND (j.{next_attempt_at} IS NULL OR j.{next_attempt_at} <= t.now)
"""

# A direct takeover: expired, and *Endings* would give `pending` (the other endings were performed before).
EXPIRED = f"""
{fence.EXPIRED}
?max_attempts|   AND j.{{attempt_count}} - j.{{attempts_excused}} - CASE WHEN j.{{lease_expires_at}} > t.now THEN 1 ELSE 0 END
?max_attempts|       < j.{{max_attempts}}
?open_effects|   AND (j.{{open_effects}} = 0 OR NOT NEEDS_PERSON)
"""

# The pick is materialised because a bare `IN (... LIMIT ... SKIP LOCKED)` was seen to claim 5,000 rows for a
# limit of 1; the update tests every predicate again.
CLAIM = """
WITH t AS MATERIALIZED (SELECT {clock} AS now),
HEADSpick AS MATERIALIZED (PICK),
picked AS MATERIALIZED (SELECT id, row_number() OVER () AS number FROM pick LIMIT %(limit)s)
UPDATE {table} AS j
   SET {status} = {:running}
?ready_at|     , {ready_at} = NULL
?wait_reason|     , {wait_reason} = ''
     , {generation} = j.{generation} + 1
?attempt_count,claim_generation|     , {attempt_count} = j.{attempt_count} + 1
?attempts_excused|     , {attempts_excused} = j.{attempts_excused} + CASE WHEN j.{lease_expires_at} > t.now THEN 1 ELSE 0 END
?attempt_id|     , {attempt_id} = {attempt_uuid}
?worker_id|     , {worker_id} = %(worker)s
?scheduler_epoch|     , {scheduler_epoch} = %(epoch)s
?state_version|     , {state_version} = j.{state_version} + 1
?heartbeat_at|     , {heartbeat_at} = t.now
?started_at|     , {started_at} = t.now
?lease_seconds,deadline_at|     , {lease_expires_at} = {least}({plus:t.now+{least}(j.{lease_seconds}, %(ttl)s)}, COALESCE(j.{deadline_at}, {far}))
?!lease_seconds,deadline_at|     , {lease_expires_at} = {least}({plus:t.now+%(ttl)s}, COALESCE(j.{deadline_at}, {far}))
?lease_seconds,!deadline_at|     , {lease_expires_at} = {plus:t.now+{least}(j.{lease_seconds}, %(ttl)s)}
?!lease_seconds,!deadline_at|     , {lease_expires_at} = {plus:t.now+%(ttl)s}
  FROM t, picked
 WHERE j.{id} = picked.id
   AND EXISTS (SELECT 1 FROM jobs_scheduler s
                WHERE s.id = 1 AND s.epoch = %(epoch)s AND s.claims_open
                  AND (s.clock_high_water IS NULL OR s.clock_high_water <= (SELECT {plus:t.now+1} FROM t)))
   AND NOT EXISTS (SELECT 1 FROM jobs_worker w WHERE w.id = %(worker)s AND w.fenced_at IS NOT NULL)
?queue|   AND NOT EXISTS (SELECT 1 FROM jobs_queue q WHERE q.name = THE_QUEUE AND q.paused_at IS NOT NULL
?queue|                      AND (q.paused_until IS NULL OR q.paused_until > (SELECT t.now FROM t)))
?cancel_requested_at|   AND j.{cancel_requested_at} IS NULL
?hold_reason|   AND j.{hold_reason} = ''
?deadline_at|   AND (j.{deadline_at} IS NULL OR j.{deadline_at} > t.now)
WHERE_FREE
RETURNING {key:{j}{id}}
        , {j}{generation}
        , {micros:{j}{lease_expires_at}}
RETURNED
"""

RETURNED = {
    "attempt_id": ("{key:{j}{attempt_id}}", "NULL"),
    "deadline_at": ("{micros:{j}{deadline_at}}", "NULL"),
    "created_at": ("{micros:{j}{created_at}}", "NULL"),
    "started_at": ("{micros:{j}{started_at}}", "NULL"),
    "next_attempt_at": ("{micros:{j}{next_attempt_at}}", "NULL"),
    "lease_seconds": ("{j}{lease_seconds}", "NULL"),
    "cancel_generation": ("{j}{cancel_generation}", "0"),
    "revision": ("{j}{revision}", "1"),
    "input_digest": ("{j}{input_digest}", "''"),
    "input": ("{j}{input}", "'{}'"),
    "kind": ("{j}{kind}", "''"),
    "queue": ("{j}{queue}", "''"),
    "label": ("{j}{label}", "''"),
    "priority": ("{j}{priority}", "0"),
    "attempt_count": ("{j}{attempt_count}", "1"),
    "attempts_excused": ("{j}{attempts_excused}", "0"),
    "max_attempts": ("{j}{max_attempts}", "1"),
    "traceparent": ("{j}{traceparent}", "''"),
}
"""What a lease holds, and what stands for it where the table has no such column; read by `_leases` in this order."""


@cache
def claim_text(kinds: int, *, takeover: bool = False) -> str:
    """Return the claim for `kinds` kinds known to the worker; 0 is a claim by id, of an expired row for
    `takeover`."""
    heads, pick = "", PICK_ID
    if kinds == 1:
        pick = PICK_KIND.replace("READY", READY.strip("\n")).replace("NUMBER", "0")
    elif kinds:
        head = HEAD.strip("\n").replace("READY", READY.strip("\n"))
        branches = "\n  UNION ALL\n".join(head.replace("NUMBER", str(number)) for number in range(kinds))
        heads, pick = f"head AS MATERIALIZED (\n{branches}\n),\n", PICK_HEAD
    returned = [
        line
        for name, (column, otherwise) in RETURNED.items()
        for line in (f"?{name}|        , {column}", f"?!{name}|        , {otherwise}")
    ]
    return (
        CLAIM.replace("HEADS", heads)
        .replace("PICK", pick)
        .replace("THE_QUEUE", "%(queue)s" if kinds else "j.{queue}")
        .replace("WHERE_FREE", (EXPIRED if takeover else FREE).strip("\n"))
        .replace("NEEDS_PERSON", needs_person("j"))
        .replace("RETURNED", "\n".join(returned))
    )


def claim_queue(
    session: Session, *, queue: str, kinds: Sequence[str], worker: str, epoch: int, limit: int, ttl: int
) -> list[Lease]:
    """Take up to `limit` ready jobs of one queue for `worker`; `ttl` is the longest lease wanted, in seconds.

    An empty list means "nothing for me now". Never takes more than `limit`, whatever the plan.
    """
    named = kinds if session.vocabulary.has("kind") else [""]
    params: dict[str, Any] = {f"kind_{number}": kind for number, kind in enumerate(named)}
    rows = session.run(
        claim_text(len(named)),
        queue=queue,
        worker=worker,
        epoch=epoch,
        limit=limit,
        scan=limit + HEAD_SLACK,
        ttl=ttl,
        prefix=attempt_prefix(),
        **params,
    )
    return sorted(_leases(session, rows, worker, epoch, ttl), key=_claim_order)


HEAD_SLACK = 256
"""Rows of a head beyond what is asked for: what other claims may hold at the same instant."""


def claim_id(
    session: Session, job_id: Any, *, worker: str, epoch: int, ttl: int, takeover: bool = False
) -> list[Lease]:
    """Take one locked job: a due one, or with `takeover` an expired one whose ending would be `pending`."""
    rows = session.run(
        claim_text(0, takeover=takeover),
        id=job_id,
        worker=worker,
        epoch=epoch,
        limit=1,
        ttl=ttl,
        prefix=attempt_prefix(),
    )
    return _leases(session, rows, worker, epoch, ttl)


def _claim_order(lease: Lease) -> tuple[int, datetime, str]:
    return (-lease.priority, lease.due_at or NO_TIME, str(lease.job_id))


NO_TIME = datetime.min.replace(tzinfo=UTC)


def _leases(session: Session, rows: Sequence[Any], worker: str, epoch: int, ttl: int) -> list[Lease]:
    moment = session.moment
    return [
        Lease(
            job_id,
            attempt_id,
            generation,
            worker,
            epoch,
            moment(expires),
            min(ttl, longest or ttl),
            cancel,
            revision,
            digest,
            text,
            kind,
            queue,
            label,
            priority,
            moment(deadline),
            count,
            excused,
            most,
            moment(created),
            moment(started),
            moment(due),
            trace,
        )
        for (
            job_id, generation, expires, attempt_id, deadline, created, started, due, longest, cancel, revision,
            digest, text, kind, queue, label, priority, count, excused, most, trace,
        ) in rows
    ]  # fmt: skip


# A row is in the claim index only while it is due: delays, back-offs and polls are promoted when their time
# comes, by one guarded statement for a page, so that nothing is lost or doubled if the process dies here.
PROMOTE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now),
pick AS MATERIALIZED (
  SELECT j.{id} AS id FROM {table} AS j CROSS JOIN t
   WHERE j.{ready_at} IS NULL AND j.{status} IN {in:claimable} AND j.{hold_reason} = ''
     AND j.{next_attempt_at} <= t.now
   ORDER BY j.{next_attempt_at}
   LIMIT %(limit)s {skip_locked})
UPDATE {table} AS j
   SET {ready_at} = j.{next_attempt_at}
  FROM t
 WHERE j.{id} IN (SELECT id FROM pick LIMIT %(limit)s)
   AND j.{ready_at} IS NULL AND j.{status} IN {in:claimable} AND j.{hold_reason} = ''
   AND j.{next_attempt_at} <= t.now
RETURNING {j}{queue}
"""


def promote(session: Session, *, limit: int) -> list[str]:
    """Make up to `limit` jobs claimable whose time has come; returns the queues they are in."""
    if not session.vocabulary.has("ready_at"):
        return []
    return [row[0] for row in session.run(PROMOTE, limit=limit)]


PROMOTE_ID = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE {table} AS j
   SET {ready_at} = j.{next_attempt_at}
  FROM t
 WHERE j.{id} = %(id)s
   AND j.{ready_at} IS NULL AND j.{status} IN {in:claimable} AND j.{hold_reason} = ''
   AND j.{next_attempt_at} <= t.now
"""


def promote_id(session: Session, job_id: Any) -> None:
    """Make one locked job claimable if its time has come."""
    if session.vocabulary.has("ready_at"):
        session.run(PROMOTE_ID, id=job_id)
