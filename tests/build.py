"""Builds coherent rows of any status, by the real verbs, at given instants."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.handlers import Options
from jobs.models import Job
from jobs.outcomes import Lease

T0 = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
"""When built rows begin to live; every other instant is told in seconds after it."""
KIND = "tests.kind"
WORKER = "host:1:a"
RIVAL = "host:2:b"


def at(seconds: float) -> datetime:
    """Return the instant `seconds` after T0."""
    return T0 + timedelta(seconds=seconds)


def enqueue(arguments: dict[str, Any] | None = None, *, now: datetime = T0, **options: Any) -> uuid.UUID:
    """Enqueue a job of KIND and return its id; `options` are those of jobs.handlers.Options."""
    return uuid.UUID(
        str(Job.objects.enqueue(KIND, arguments or {}, options=Options(**options), now=now).job_id)
    )


def claim(
    job_id: uuid.UUID, *, worker: str = WORKER, now: datetime = T0, ttl: int = 60, **more: Any
) -> Lease:
    """Claim a due job by id, or fail."""
    lease = Job.objects.claim_job(job_id, worker_id=worker, ttl=ttl, now=now, **more)
    assert lease is not None, "the job could not be claimed"
    return lease


def running(*, now: datetime = T0, **options: Any) -> Lease:
    """Enqueue and claim one job; returns its lease of sixty seconds."""
    return claim(enqueue(now=now, **options), now=now)
