"""What the scenes stand on: jobs made anew for each schedule, and what holds of a job after any history."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from jobs.models import Attempt, Change, Job
from jobs.outcomes import Lease
from jobs.status import TERMINAL, AttemptStatus, JobStatus, targets
from tests.build import KIND, RIVAL, WORKER, at, claim, enqueue

PERSON: dict[str, Any] = {"actor": "ada", "reason": "because"}
_numbers = itertools.count()


def queue() -> str:
    """Return the name of a queue that no other schedule has used."""
    return f"race.{next(_numbers)}"


def take(names: str | list[str], *, worker: str = WORKER, **more: Any) -> list[Lease]:
    """Claim by queue, as a worker does."""
    queues = [names] if isinstance(names, str) else names
    return Job.objects.claim(worker_id=worker, queues=queues, kinds=[KIND], **{"epoch": 1} | more)


def held(**options: Any) -> Lease:
    """Return the lease of a job claimed at T0 for sixty seconds."""
    return claim(enqueue(**{"queue": queue()} | options), epoch=1)


def alone() -> Lease:
    """Return such a lease when nothing else is running, so that a recovery finds no other schedule's jobs."""
    end_all()
    return held()


def end_all() -> None:
    """End what earlier schedules left running."""
    for job in Job.objects.filter(status=JobStatus.RUNNING):
        Job.objects.force_cancel(job.pk, state_version=job.state_version, **PERSON)


def job_of(lease: Lease) -> uuid.UUID:
    """Return the key of the job that a lease is for."""
    return uuid.UUID(lease.job_id)


def version(job_id: uuid.UUID) -> int:
    """Return the state version that a person who looks now would see."""
    job: Job = Job.objects.get(pk=job_id)
    return job.state_version


def ended(job_id: uuid.UUID | None = None) -> uuid.UUID:
    """Return a job that has failed for good."""
    lease = claim(job_id or enqueue(queue=queue()))
    assert Job.objects.fail(lease, "DOCUMENT_CONVERSION_FAILED", "no such letter", now=at(1)).landed
    return job_of(lease)


def coherent(job_id: uuid.UUID, *, recent: int = 60) -> Job:
    """Assert what no order of verbs may break, and return the job.

    One committed attempt exactly if it succeeded, one open attempt exactly if it runs, one attempt per
    claim, and a history in the feed in which every move is in the transition table.
    """
    job: Job = Job.objects.get(pk=job_id)
    attempts = Attempt.objects.filter(job_id=job_id).order_by("generation")
    committed = [a.pk for a in attempts if a.status == AttemptStatus.COMMITTED]
    assert committed == ([job.result_commit_id] if job.status == JobStatus.SUCCEEDED else [])
    opened = [a.pk for a in attempts if a.status == AttemptStatus.RUNNING]
    assert opened == ([job.attempt_id] if job.status == JobStatus.RUNNING else [])
    assert len(attempts) == job.attempt_count
    assert all(a.generation <= job.claim_generation for a in attempts)
    status = JobStatus.PENDING
    for verb, entered in history(job_id, recent=recent):
        legal = targets(status, {"deadline": "recover"}.get(verb, verb))
        assert entered in legal or verb in ("hold", "unhold"), f"{verb} took {status} to {entered}"
        status = JobStatus(entered)
    assert status == job.status
    return job


def history(job_id: uuid.UUID, *, recent: int = 60) -> list[tuple[str, str]]:
    """Return a job's (verb, status entered) from the last rows of the feed, in order.

    The ids of feed rows are taken under the job's lock, so their order is the order of the moves.
    """
    changes = Change.objects.order_by("-id")[:recent]
    return [
        (change.verb, entered)
        for change in reversed(changes)
        for changed, entered in change.jobs
        if changed == job_id.hex
    ]


def never_runs_again(job_id: uuid.UUID) -> None:
    """Assert that a cancelled job can be neither promoted nor claimed, by whatever door."""
    job = Job.objects.get(pk=job_id)
    assert job.status in TERMINAL
    Job.objects.runtime.promote(now=at(10_000))
    assert Job.objects.claim_job(job_id, worker_id=RIVAL, now=at(10_000)) is None
    assert take(job.queue, worker=RIVAL, now=at(10_000)) == []
