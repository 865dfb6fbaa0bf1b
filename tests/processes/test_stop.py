"""Stopping in an orderly way: nothing is taken over meanwhile, and what is left is given back."""

from __future__ import annotations

import signal
import uuid

from jobs.status import JobStatus
from jobs.worker.stop import LEFT_RUNNING
from tests.processes.installation import Installation, WorkerProcess


def running(
    installation: Installation, grace: str, *, polite: bool = False
) -> tuple[uuid.UUID, WorkerProcess]:
    """Return a job that waits at the gate and the worker that runs it."""
    job_id = installation.enqueue("proc.gate", gate=installation.gate, polite=polite)
    worker = installation.start("--grace", grace)
    installation.until_begun(job_id)
    return job_id, worker


def until_stopping(installation: Installation, worker: WorkerProcess) -> None:
    installation.until(lambda: '"stopping"' in worker.said, "the signal's effect")


def test_a_stopping_worker_keeps_its_lease_and_finishes(installation: Installation) -> None:
    installation.lease_seconds = 5
    job_id, stopping = running(installation, "60")
    stopping.signal(signal.SIGTERM)
    until_stopping(installation, stopping)
    installation.start()  # idle, and would take over what runs out
    seen = {installation.job(job_id).lease_expires_at}

    def renewed() -> bool:
        seen.add(installation.job(job_id).lease_expires_at)
        return len(seen) > 6  # so for longer than one lease

    installation.until(renewed, "renewals while stopping")
    installation.open_gate()
    assert stopping.wait() == 0, stopping.said
    assert installation.status(job_id) == JobStatus.SUCCEEDED
    assert [a.generation for a in installation.attempts(job_id)] == [1]


def test_what_outlives_the_grace_is_given_back_without_costing_an_attempt(installation: Installation) -> None:
    job_id, stopping = running(installation, "0")
    stopping.signal(signal.SIGTERM)
    assert stopping.wait() == LEFT_RUNNING, stopping.said
    job = installation.job(job_id)
    assert (job.status, job.attempts_used) == (JobStatus.PENDING, 0)
    assert [(a.status, a.error_code) for a in installation.attempts(job_id)] == [
        ("released", "WORKER_LEASE_RELEASED")
    ]


def test_a_second_signal_does_not_wait_for_the_grace(installation: Installation) -> None:
    job_id, stopping = running(installation, "600")
    stopping.signal(signal.SIGTERM)
    until_stopping(installation, stopping)
    stopping.signal(signal.SIGTERM)
    assert stopping.wait() == LEFT_RUNNING, stopping.said
    assert [a.status for a in installation.attempts(job_id)] == ["released"]


def test_a_cancel_is_heard_while_the_worker_stops(installation: Installation) -> None:
    job_id, stopping = running(installation, "600", polite=True)
    stopping.signal(signal.SIGTERM)
    until_stopping(installation, stopping)
    assert installation.jobs.cancel(job_id, actor="test", reason="no longer wanted") == JobStatus.RUNNING
    assert stopping.wait() == 0, stopping.said
    assert installation.status(job_id) == JobStatus.CANCELLED
