"""What there is to do, in one reading statement: an idle worker asks nothing else (contract §8).

It decides nothing: each verb judges again under its own locks. So it may be slightly wrong, and may run
outside a transaction. Counts and minima instead of EXISTS, because a planner that hopes to find a row early
would read a large table from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from jobs.ledger.session import Session
from jobs.outcomes import Lease

PAIRS = 100
"""Pairs of a queue and a kind that one statement looks at: each is a branch of it."""

READY = """
      (SELECT COUNT(*) FROM (SELECT 1 FROM {table} AS j
        WHERE j.{queue} = %(queue_N)s AND j.{kind} = %(kind_N)s AND j.{ready_at} IS NOT NULL AND j.{ready_at} <= t.now
        ORDER BY j.{priority} DESC, j.{ready_at}, j.{id} LIMIT 1) AS ready_N)
"""

MORE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT READY FROM t
"""

PROBE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT s.epoch
     , s.claims_open
     , s.clock_high_water > {plus:t.now+1}
     , (SELECT w.fenced_at IS NOT NULL FROM jobs_worker w WHERE w.id = %(worker)s)
     , (SELECT MIN(j.{next_attempt_at}) FROM {table} AS j
         WHERE j.{ready_at} IS NULL AND j.{status} IN {in:claimable} AND j.{hold_reason} = '')
     , (SELECT MIN(j.{deadline_at}) FROM {table} AS j
         WHERE j.{deadline_at} IS NOT NULL AND j.{status} IN {in:idle}
           AND j.{hold_reason} <> 'quarantine')
     , r.running, r.expired, r.mine, r.cancels
     , READY
     , t.now
  FROM jobs_scheduler AS s CROSS JOIN t CROSS JOIN
       (SELECT COUNT(CASE WHEN j.{queue} IN (QUEUES) THEN 1 END) AS running
             , COUNT(CASE WHEN j.{hold_reason} <> 'quarantine' AND (j.{lease_expires_at} <= t.now
                     OR j.{scheduler_epoch} < (SELECT e.epoch FROM jobs_scheduler e WHERE e.id = 1)) THEN 1 END) AS expired
             , COUNT(CASE WHEN j.{worker_id} = %(worker)s AND j.{hold_reason} <> 'quarantine' THEN 1 END) AS mine
             , COUNT(CASE WHEN j.{worker_id} = %(worker)s AND j.{cancel_requested_at} IS NOT NULL THEN 1 END) AS cancels
          FROM {table} AS j CROSS JOIN t
         WHERE j.{status} = {:running}) AS r
 WHERE s.id = 1
"""


class Findings(NamedTuple):
    """What a probe saw.

    `due_in` is seconds until the next delayed job comes due, None when there is none; `running` counts the
    asked queues only; `mine` is what the worker holds itself, `cancels` the requests on those.
    """

    epoch: int
    claims_open: bool
    clock_went_back: bool
    fenced: bool
    registered: bool
    due_in: float | None
    past_deadline: bool
    running: int
    expired: int
    mine: int
    cancels: int
    ready: bool


@cache
def probe_text(queues: int, pairs: int) -> str:
    """Return the probe for that many queues and pairs."""
    names = ", ".join(f"%(served_{n})s" for n in range(queues)) or "NULL"
    return PROBE.replace("READY", _branches(pairs)).replace("QUEUES", names)


@cache
def more_text(pairs: int) -> str:
    """Return the statement that looks at that many further pairs."""
    return MORE.replace("READY", _branches(pairs))


def _branches(pairs: int) -> str:
    return " + ".join(READY.strip().replace("_N", f"_{n}") for n in range(pairs)) or "0"


def _named(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    named: dict[str, Any] = {f"queue_{n}": queue for n, (queue, _) in enumerate(pairs)}
    return named | {f"kind_{n}": kind for n, (_, kind) in enumerate(pairs)}


def probe(session: Session, *, worker: str, queues: Sequence[str], kinds: Sequence[str]) -> Findings:
    """Look for work of `queues` and `kinds`, for leases to take back, and for news about `worker`.

    One statement; where there are more than PAIRS of them, others look at the rest until one finds something.
    """
    pairs = [(queue, kind) for queue in queues for kind in kinds]
    served: dict[str, Any] = {f"served_{n}": queue for n, queue in enumerate(queues)}
    first = pairs[:PAIRS]
    row = session.run(probe_text(len(queues), len(first)), worker=worker, **served, **_named(first))[0]
    ready = row[10] > 0 or any(
        session.run(more_text(len(page)), **_named(page))[0][0]
        for page in (pairs[start : start + PAIRS] for start in range(PAIRS, len(pairs), PAIRS))
    )
    now, due, deadline = (session.moment(row[index]) for index in (11, 4, 5))
    assert isinstance(now, datetime)  # noqa: S101
    return Findings(
        epoch=row[0],
        claims_open=bool(row[1]),
        clock_went_back=bool(row[2]),
        fenced=bool(row[3]),
        registered=row[3] is not None,
        due_in=None if due is None else (due - now).total_seconds(),
        past_deadline=deadline is not None and deadline <= now,
        running=row[6],
        expired=row[7],
        mine=row[8],
        cancels=row[9],
        ready=ready,
    )


HELD_BY = """
SELECT {key:j.{id}}, {key:j.{attempt_id}}, j.{generation}, j.{scheduler_epoch}, j.{lease_seconds},
       j.{cancel_generation}, j.{revision}, j.{input_digest}, j.{kind}, j.{queue}
  FROM {table} AS j
 WHERE j.{status} = {:running} AND j.{worker_id} = %(worker)s AND j.{hold_reason} <> 'quarantine'
"""


def held_by(session: Session, worker: str) -> list[Lease]:
    """Return every lease that the database says `worker` holds, without its input: good for giving it back."""
    return [
        Lease(
            job_id=row[0],
            attempt_id=row[1],
            generation=row[2],
            worker_id=worker,
            epoch=row[3],
            lease_expires_at=None,
            ttl_seconds=row[4],
            cancel_generation=row[5],
            revision=row[6],
            input_digest=row[7],
            kind=row[8],
            queue=row[9],
        )
        for row in session.run(HELD_BY, worker=worker)
    ]
