"""Enqueue: an INSERT in the caller's own transaction, which is the outbox (contract §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobs.ledger.session import Session

# Held until the caller commits, so that a parent's cancel and a child's birth cannot pass each other.
LOCK_PARENTS = """
SELECT {id}, {status}, {cancel_requested_at} IS NOT NULL
  FROM {table} WHERE {id} {among:ids} ORDER BY {id} {share}
"""

# The loser of a key waits for the holder's transaction; if that rolls back, the loser's row goes in.
INSERT = """
INSERT INTO {table} (id, kind, queue, label, status, wait_reason, hold_reason, priority, state_version, input,
    input_digest, revision, unique_key, unique_scope, concurrency_key, parent_id, unmet_edges, enqueued_by, created_at,
    ready_at, next_attempt_at, deadline_at, claim_generation, scheduler_epoch, lease_seconds, attempt_count,
    attempts_excused, max_attempts, open_effects, cancel_generation, cancel_requested_by, cancel_reason, error_code,
    error_message, traceparent, tags)
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT r.id, r.kind, r.queue, r.label, 'pending', '', '', r.priority, 1, r.input,
    r.input_digest, 1, r.unique_key, r.unique_scope, r.concurrency_key, r.parent_id, 0, r.enqueued_by, t.now,
    CASE WHEN COALESCE(r.due_at, {after:r.delay}, t.now) <= t.now THEN COALESCE(r.due_at, {after:r.delay}, t.now) END,
    COALESCE(r.due_at, {after:r.delay}, t.now), COALESCE(r.deadline_at, {after:r.deadline}), 0, 0, r.lease_seconds, 0,
    0, r.max_attempts, 0, 0, '', '', '',
    '', r.traceparent, r.tags
  FROM t CROSS JOIN {rows:jobs}
 WHERE true
ON CONFLICT DO NOTHING
"""

WENT_IN = """
SELECT {key:id} FROM {table} WHERE {id} {among:ids}
"""

FIND_KEYS = """
SELECT {id}, {kind}, {input_digest}, {unique_key}, {status}
  FROM {table}
 WHERE {unique_key} IN (SELECT r.unique_key FROM {rows:jobs})
   AND (unique_scope = 'ever' OR {finished_at} IS NULL)
"""


class Holder(NamedTuple):
    """The job that holds a unique key."""

    id: Any
    kind: str
    input_digest: str
    unique_key: str
    status: str


def lock_parents(session: Session, ids: Sequence[Any]) -> dict[Any, tuple[str, bool]]:
    """Hold parents still and return their status and whether a cancel was requested."""
    rows = session.run(LOCK_PARENTS, {"ids": [{"id": i} for i in ids]})
    return {session.key(row[0]): (row[1], bool(row[2])) for row in rows}


def insert(session: Session, jobs: Sequence[dict[str, Any]]) -> set[Any]:
    """Insert jobs whose unique key is free; returns the ids that went in."""
    # One order of keys for all, so that two batches never wait for each other in a circle.
    ordered = sorted(jobs, key=lambda job: job["unique_key"] or "")
    tagged = any(job["tags"] for job in ordered)
    # Without any, no list of nothings is sent and taken apart.
    text = INSERT if tagged else INSERT.replace("r.tags", "''")
    if session.write(text, {"jobs": ordered}, prepare=True) == len(ordered):
        return {job["id"] for job in jobs}
    # Asked only then: having a thousand ids returned took a twentieth of the whole.
    return {row[0] for row in session.run(WENT_IN, {"ids": [{"id": job["id"]} for job in jobs]})}


def holders(session: Session, jobs: Sequence[dict[str, Any]]) -> dict[str, Holder]:
    """Return who holds the unique keys of `jobs`, by key."""
    found = {}
    for row in session.run(FIND_KEYS, {"jobs": jobs}):
        holder = Holder(session.key(row[0]), *row[1:])
        found[holder.unique_key] = holder
    return found
