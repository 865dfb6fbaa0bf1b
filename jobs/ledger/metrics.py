"""Readings of the whole installation for metrics and health: small, bounded, and without a write.

No statement counts a large table. Each walks an index that holds abnormal or waiting rows only, and stops at
BOUND rows: "10,000 or more" is as good a reason to look as any larger number.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db import connections

from jobs.ledger.session import Session
from jobs.measures import EVER
from jobs.vocabulary import JOB

BOUND = 10_000
QUEUES = 500
"""More queues than this are not told apart any more."""

# The next name, and the next: one look into the claim index each, however many rows wait under it. Depths are
# counted one by one, or a full queue would hide the rest.
READY = """
WITH RECURSIVE names(queue) AS (
  SELECT (SELECT MIN(j.{queue}) FROM {table} AS j WHERE j.{ready_at} IS NOT NULL)
  UNION ALL
  SELECT (SELECT MIN(j.{queue}) FROM {table} AS j WHERE j.{ready_at} IS NOT NULL AND j.{queue} > names.queue)
    FROM names WHERE names.queue IS NOT NULL)
SELECT n.queue
     , (SELECT COUNT(*) FROM (SELECT 1 FROM {table} AS j
                               WHERE j.{queue} = n.queue AND j.{ready_at} IS NOT NULL LIMIT %(bound)s) AS r)
     , (SELECT MIN(r.due) FROM (SELECT j.{ready_at} AS due FROM {table} AS j
                                 WHERE j.{queue} = n.queue AND j.{ready_at} IS NOT NULL LIMIT %(bound)s) AS r)
  FROM (SELECT queue FROM names WHERE queue IS NOT NULL LIMIT %(queues)s) AS n
"""

# Due, but not promoted yet: all there is to see of a queue while no worker is alive.
DUE = """
WITH t AS (SELECT {clock} AS now)
SELECT r.queue, COUNT(*), MIN(r.due)
  FROM (SELECT j.{queue} AS queue, j.{next_attempt_at} AS due FROM {table} AS j CROSS JOIN t
         WHERE j.{ready_at} IS NULL AND j.{status} IN {in:claimable} AND j.{hold_reason} = ''
           AND j.{next_attempt_at} <= t.now
         ORDER BY j.{next_attempt_at} LIMIT %(bound)s) AS r
 GROUP BY r.queue
"""

RUNNING = """
WITH t AS (SELECT {clock} AS now)
SELECT r.queue, COUNT(*), SUM(r.expired), MIN(CASE WHEN r.expired = 1 THEN r.until END)
  FROM (SELECT j.{queue} AS queue, j.{lease_expires_at} AS until,
               CASE WHEN j.{lease_expires_at} <= t.now OR j.{scheduler_epoch} < s.epoch THEN 1 ELSE 0 END AS expired
          FROM {table} AS j CROSS JOIN t CROSS JOIN jobs_scheduler AS s
         WHERE j.{status} = {:running} AND s.id = 1 LIMIT %(bound)s) AS r
 GROUP BY r.queue
"""

UNCERTAIN = """
SELECT r.kind, COUNT(*)
  FROM (SELECT j.{kind} AS kind FROM {table} AS j
         WHERE j.{status} IN ('blocked', 'cancelled', 'failed', 'skipped', 'uncertain')
           AND j.{status} = {:uncertain} LIMIT %(bound)s) AS r
 GROUP BY r.kind
"""

HELD = """
SELECT r.reason, COUNT(*)
  FROM (SELECT j.{hold_reason} AS reason FROM {table} AS j WHERE NOT (j.{hold_reason} = '') LIMIT %(bound)s) AS r
 GROUP BY r.reason
"""

OPEN_EFFECTS = """
SELECT r.kind, r.replay, COUNT(*), MIN(r.since)
  FROM (SELECT s.kind, s.replay, s.changed_at AS since FROM jobs_effectslot AS s
         WHERE s.status IN ('executing', 'unknown') AND s.status = 'unknown' LIMIT %(bound)s) AS r
 GROUP BY r.kind, r.replay
"""

TOTALS = """
SELECT m.measure, m.queue, m.kind, m.bucket, m.count, m.total FROM jobs_minute AS m WHERE m.minute = %(ever)s
"""

RECENT = """
SELECT m.measure, SUM(m.count)
  FROM jobs_minute AS m
 WHERE m.minute >= %(since)s AND m.measure IN ('claims', 'claims_empty')
 GROUP BY m.measure
"""

SETTINGS = """
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
"""


class Waiting(NamedTuple):
    """A queue's jobs that could be claimed now: how many, at most BOUND, and since when the oldest."""

    queue: str
    depth: int
    oldest_at: datetime | None


class Held(NamedTuple):
    """Leases of one queue: how many, how many of them have run out, and since when the first."""

    queue: str
    running: int
    expired: int
    expired_since: datetime | None


class OpenEffects(NamedTuple):
    """Effects of one kind whose outcome nobody knows."""

    kind: str
    replay: str
    number: int
    oldest_at: datetime | None


class Total(NamedTuple):
    """The running total of one measure, or of one bucket of its histogram."""

    measure: str
    queue: str
    kind: str
    bucket: int
    number: int
    total: float


def ready(session: Session, *, queues: int = QUEUES, bound: int | None = None) -> list[Waiting]:
    """Return the queues that hold jobs which could be claimed now, the first `queues` by name.

    Of each at most `bound` jobs are counted, BOUND without it.
    """
    return [
        Waiting(queue, depth, session.moment(oldest))
        for queue, depth, oldest in session.run(READY, queues=queues, bound=bound or BOUND)
    ]


def waiting(session: Session) -> list[Waiting]:
    """Return every queue in which something is due."""
    found = {queue: (depth, oldest) for queue, depth, oldest in ready(session)}
    for queue, count, oldest in session.run(DUE, bound=BOUND):
        depth, since = found.get(queue, (0, None))
        due = session.moment(oldest)
        found[queue] = min(depth + count, BOUND), min(filter(None, (since, due)), default=None)
    return [Waiting(queue, *found[queue]) for queue in sorted(found)]


def running(session: Session) -> list[Held]:
    """Return the leases that are held, by queue."""
    return [
        Held(queue, count, int(expired), session.moment(since))
        for queue, count, expired, since in session.run(RUNNING, bound=BOUND)
    ]


def uncertain(session: Session) -> dict[str, int]:
    """Return how many jobs of each kind wait for a ruling."""
    return dict(session.run(UNCERTAIN, bound=BOUND))


OPEN_CASES = """
SELECT c.kind, COUNT(*)
  FROM (SELECT c.kind FROM jobs_case AS c WHERE c.closed_at IS NULL ORDER BY c.opened_at LIMIT %(bound)s) AS c
 GROUP BY c.kind
"""


def open_cases(session: Session) -> dict[str, int]:
    """Return how many cases of each kind are open."""
    return dict(session.run(OPEN_CASES, bound=BOUND))


def held(session: Session) -> dict[str, int]:
    """Return how many jobs are on hold, by reason."""
    return dict(session.run(HELD, bound=BOUND))


def open_effects(session: Session) -> list[OpenEffects]:
    """Return the effects whose outcome is unknown."""
    return [
        OpenEffects(kind, replay, count, session.moment(since))
        for kind, replay, count, since in session.run(OPEN_EFFECTS, bound=BOUND)
    ]


def totals(session: Session) -> list[Total]:
    """Return every running total."""
    return [Total(*row) for row in session.run(TOTALS, ever=EVER)]


def recent_claims(session: Session, since: datetime) -> tuple[int, int]:
    """Return how many claims were made since then, and how many of them found nothing."""
    counts = dict(session.run(RECENT, since=since))
    return int(counts.get("claims", 0)), int(counts.get("claims_empty", 0))


def encoding(using: str) -> str:
    """Return the encoding of a server's database; SQLite's always holds every text."""
    session = Session(using, JOB, None)
    return str(session.run("SHOW server_encoding")[0][0]) if session.locks_rows else "UTF8"


def unsafe_settings(using: str) -> dict[str, str]:
    """Return the server's settings that let it forget a commit; none on SQLite, whose own are in our settings."""
    session = Session(using, JOB, None)
    if not session.locks_rows:
        return {}
    return {name: value for name, value in session.run(SETTINGS) if value == "off"}


def server(using: str) -> str:
    """Return the database's name and version."""
    connection = connections[using]
    connection.ensure_connection()
    version = ".".join(str(part) for part in connection.get_database_version())
    return f"{connection.display_name} {version}"
