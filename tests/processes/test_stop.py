"""Stopping in an orderly way: nothing is taken over meanwhile, and what is left is given back."""

from __future__ import annotations

import signal
from pathlib import Path

from jobs.status import JobStatus
from jobs.worker.stop import LEFT_RUNNING
from tests.processes.installation import Installation


def test_a_stopping_worker_keeps_its_lease_and_finishes(installation: Installation) -> None:
    gate = installation.file("gate")
    job_id = installation.enqueue("proc.gate", file=installation.file("trace"), gate=gate)
    stopping = installation.start("--grace", "60")
    installation.until(lambda: installation.traces(), "the start")
    stopping.signal(signal.SIGTERM)
    installation.start()  # idle, and eager
    lease = installation.job(job_id).lease_expires_at
    assert lease is not None
    installation.until(
        lambda: (installation.job(job_id).lease_expires_at or lease) > lease, "a renewal while stopping"
    )
    Path(gate).touch()
    assert stopping.wait() == 0, stopping.said
    assert installation.job(job_id).status == JobStatus.SUCCEEDED
    assert [a.generation for a in installation.attempts(job_id)] == [1]


def test_what_outlives_the_grace_is_given_back_without_costing_an_attempt(installation: Installation) -> None:
    job_id = installation.enqueue(
        "proc.gate", file=installation.file("trace"), gate=installation.file("gate")
    )
    stopping = installation.start("--grace", "0")
    installation.until(lambda: installation.traces(), "the start")
    stopping.signal(signal.SIGTERM)
    assert stopping.wait() == LEFT_RUNNING, stopping.said
    job = installation.job(job_id)
    assert (job.status, job.attempts_used) == (JobStatus.PENDING, 0)
    assert [(a.status, a.error_code) for a in installation.attempts(job_id)] == [
        ("released", "WORKER_LEASE_RELEASED")
    ]


def test_a_second_signal_does_not_wait_for_the_grace(installation: Installation) -> None:
    installation.enqueue("proc.gate", file=installation.file("trace"), gate=installation.file("gate"))
    stopping = installation.start("--grace", "600")
    installation.until(lambda: installation.traces(), "the start")
    stopping.signal(signal.SIGTERM)
    installation.until(lambda: "stopping" in stopping.said, "the first signal's effect")
    stopping.signal(signal.SIGTERM)
    assert stopping.wait() == LEFT_RUNNING, stopping.said


def test_a_cancel_is_heard_while_the_worker_stops(installation: Installation) -> None:
    job_id = installation.enqueue(
        "proc.gate", file=installation.file("trace"), gate=installation.file("gate"), polite=True
    )
    stopping = installation.start("--grace", "600")
    installation.until(lambda: installation.traces(), "the start")
    stopping.signal(signal.SIGTERM)
    installation.until(lambda: "stopping" in stopping.said, "the signal's effect")
    assert installation.jobs.cancel(job_id, actor="test", reason="no longer wanted") == JobStatus.RUNNING
    assert stopping.wait() == 0, stopping.said
    assert installation.job(job_id).status == JobStatus.CANCELLED


def test_an_idle_worker_stops_at_once(installation: Installation) -> None:
    worker = installation.start("--grace", "600")
    installation.until(lambda: "worker " in worker.said, "the start")
    worker.signal(signal.SIGTERM)
    assert worker.wait(20) == 0, worker.said
