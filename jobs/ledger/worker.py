"""Worker rows, minutes, changes and refusals: small writes beside the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.ledger.session import Session
from jobs.measures import EVER, HOURLY, hour_of

REGISTER = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_worker (id, host, pid, boot_id, pid_namespace, pid_started, version, queues, kinds, concurrency,
                         scheduler_epoch, started_at, beat_at, fenced_by, running, passes)
SELECT %(id)s, %(host)s, %(pid)s, %(boot_id)s, %(pid_namespace)s, %(pid_started)s, %(version)s, QUEUES, KINDS, %(concurrency)s, %(epoch)s, t.now,
       t.now, '', 0, EMPTY FROM t
"""

BEAT = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_worker
   SET beat_at = (SELECT now FROM t), running = %(running)s, scheduler_epoch = %(epoch)s, passes = PASSES,
       stopping_at = CASE WHEN %(stopping)s THEN COALESCE(stopping_at, (SELECT now FROM t)) ELSE stopping_at END,
       stopped_at = CASE WHEN %(stopped)s THEN COALESCE(stopped_at, (SELECT now FROM t)) ELSE stopped_at END
 WHERE id = %(id)s
RETURNING fenced_at
"""

# A remote worker is registered by its first claim, and heard of with later ones.
HEAR = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_worker (id, host, pid, boot_id, pid_namespace, version, queues, kinds, concurrency, scheduler_epoch,
                         started_at, beat_at, fenced_by, running, passes)
SELECT %(id)s, %(host)s, 0, '', '', %(version)s, QUEUES, KINDS, %(concurrency)s, %(epoch)s, t.now, t.now, '', 0, EMPTY
  FROM t WHERE true
ON CONFLICT (id) DO UPDATE
   SET beat_at = excluded.beat_at, queues = excluded.queues, kinds = excluded.kinds, version = excluded.version
     , concurrency = excluded.concurrency, scheduler_epoch = excluded.scheduler_epoch
"""

# Old rows of stopped workers are only clutter; their jobs are found by their leases. A fenced one's row is what
# refuses it: without it, a process that slept for a day would register again under its old name and claim.
PRUNE = """
WITH t AS (SELECT {clock} AS now)
DELETE FROM jobs_worker WHERE beat_at < (SELECT {plus:now+-86400} FROM t)
   AND (fenced_at IS NULL OR stopped_at IS NOT NULL)
RETURNING id
"""

FENCE = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_worker SET fenced_at = (SELECT now FROM t), fenced_by = %(actor)s
 WHERE id = %(id)s AND fenced_at IS NULL
RETURNING id
"""

FENCED = """
SELECT fenced_at, fenced_by FROM jobs_worker WHERE id = %(id)s
"""

# Under the exclusive lock no claim or renewal is under way, so these are all the leases that it holds. T is the
# one that the worker was fenced at. A lease may shrink under any epoch; nothing else of the row changes, and so
# its state_version stays.
END_LEASES = """
WITH t AS MATERIALIZED (SELECT w.fenced_at AS now FROM jobs_worker w WHERE w.id = %(worker)s),
held AS MATERIALIZED (SELECT j.{id} AS id FROM {table} AS j WHERE j.{status} = {:running})
UPDATE {table} AS j
   SET {lease_expires_at} = t.now
  FROM t, held
 WHERE j.{id} = held.id
   AND j.{status} = {:running}
   AND j.{worker_id} = %(worker)s
   AND j.{lease_expires_at} > t.now
RETURNING {key:{j}{id}}
"""

ADD_MINUTES = """
INSERT INTO jobs_minute (minute, queue, kind, measure, bucket, count, total)
SELECT r.minute, r.queue, r.kind, r.measure, r.bucket, r.count, r.total FROM {rows:minutes} WHERE true
ON CONFLICT (minute, measure, queue, kind, bucket)
DO UPDATE SET count = jobs_minute.count + excluded.count, total = jobs_minute.total + excluded.total
"""

ADD_CHANGE = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_change (at, writer, verb, jobs, actor, reason)
SELECT t.now, {xid}, %(verb)s, JOBS, %(actor)s, %(reason)s FROM t
"""

ADD_REFUSAL = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_fencerefusal (at, job_id, point, reason, worker_id, attempt_id, presented, found)
SELECT t.now, %(job_id)s, %(point)s, %(reason)s, %(worker)s, %(attempt_id)s, PRESENTED, FOUND FROM t
"""

PRUNE_REFUSALS = """
DELETE FROM jobs_fencerefusal
 WHERE job_id = %(job_id)s
   AND id < (SELECT MIN(id) FROM (SELECT id FROM jobs_fencerefusal WHERE job_id = %(job_id)s
                                   ORDER BY id DESC LIMIT %(keep)s) AS kept)
"""


def _json(session: Session, text: str, **values: Any) -> tuple[str, dict[str, Any]]:
    """Place JSON values: PostgreSQL wants the cast said."""
    params: dict[str, Any] = {}
    for marker, value in values.items():
        name = f"json_{marker.lower()}"
        text = text.replace(marker, f"%({name})s::jsonb" if session.locks_rows else f"%({name})s")
        params[name] = json.dumps(value)
    return text, params


def register(session: Session, **values: Any) -> None:
    """Write the row of a worker that has just started."""
    text, params = _json(session, REGISTER, QUEUES=values.pop("queues"), KINDS=values.pop("kinds"), EMPTY={})
    session.run(text, **values, **params)


def hear(session: Session, **values: Any) -> None:
    """Write the row of a remote worker, or move its beat on and keep what it says of itself now."""
    text, params = _json(session, HEAR, QUEUES=values.pop("queues"), KINDS=values.pop("kinds"), EMPTY={})
    session.run(text, **values, **params)


def beat(session: Session, *, passes: dict[str, str], **values: Any) -> Any:
    """Move a worker's beat on; returns its `fenced_at`. Raises LookupError when the row was pruned."""
    text, params = _json(session, BEAT, PASSES=passes)
    rows = session.run(text, **values, **params)
    if not rows:
        raise LookupError(values["id"])
    return rows[0][0]


def prune(session: Session) -> int:
    """Delete rows of workers not heard of for a day; those of fenced ones that did not stop stay."""
    return len(session.run(PRUNE))


def fence(session: Session, worker_id: str, *, actor: str) -> bool:
    """Refuse every claim and renewal of a worker from now on; False when it is unknown or fenced already."""
    return bool(session.run(FENCE, id=worker_id, actor=actor))


def fenced(session: Session, worker_id: str) -> dict[str, str | None] | None:
    """Return since when and by whom a worker is fenced, in words; None when there is no such worker."""
    rows = session.run(FENCED, id=worker_id)
    if not rows:
        return None
    since = session.moment(rows[0][0])
    return {"fenced_at": since and since.isoformat(), "fenced_by": rows[0][1]}


def end_leases(session: Session, worker_id: str) -> list[Any]:
    """End every lease that a fenced worker held then; returns the ids of their jobs."""
    return [session.key(row[0]) for row in session.run(END_LEASES, worker=worker_id)]


def add_minutes(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Add counts to their minutes, and to the running totals that /metrics reads: those never fall.

    What is told by queue is also added up under no queue, in its minute and in its hour: charts read that, and
    not a row for each queue and kind.
    """
    whole = [row | {"queue": "", "kind": ""} for row in rows if row["queue"]]
    hours = [
        row
        | {
            "queue": "",
            "kind": "",
            "minute": hour_of(row["minute"]),
            "measure": HOURLY + row["measure"],
        }
        for row in rows
    ]
    rows = _added([*rows, *whole, *hours]) + _added(row | {"minute": EVER} for row in rows)
    if rows:
        # One order for all writers, so that two flushes never wait for each other in a circle.
        ordered = sorted(
            rows, key=lambda r: (str(r["minute"]), r["measure"], r["queue"], r["kind"], r["bucket"])
        )
        session.run(ADD_MINUTES, {"minutes": ordered})


def _added(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each key, with the sums."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("minute", "measure", "queue", "kind", "bucket"))
        total = sums.setdefault(key, row | {"count": 0, "total": 0.0})
        total["count"] += row["count"]
        total["total"] += row["total"]
    return list(sums.values())


def add_change(
    session: Session, verb: str, jobs: list[list[str]], *, actor: str = "", reason: str = ""
) -> None:
    """Append one row to the feed for one statement's work."""
    text, params = _json(session, ADD_CHANGE, JOBS=jobs)
    session.run(text, verb=verb, actor=actor, reason=reason, **params)


def add_refusal(
    session: Session, *, presented: dict[str, Any], found: dict[str, Any], keep: int, **values: Any
) -> None:
    """Keep a refused write for people to read; only the newest `keep` per job are kept."""
    text, params = _json(session, ADD_REFUSAL, PRESENTED=presented, FOUND=found)
    session.run(text, **values, **params)
    session.run(PRUNE_REFUSALS, job_id=values["job_id"], keep=keep)
