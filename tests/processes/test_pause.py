"""A worker that stands still beyond its lease, and then goes on, changes nothing."""

from __future__ import annotations

import signal
import uuid

from jobs.status import JobStatus
from tests.processes.installation import Installation, WorkerProcess

LEASE = 3


def test_a_worker_that_wakes_after_a_takeover_commits_nothing(installation: Installation) -> None:
    installation.lease_seconds = LEASE
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    sleeper = installation.start()
    installation.until_begun(job_id)
    stand_still(installation, sleeper)
    installation.lengthen(job_id)
    other = installation.start()
    installation.until_traces(2)  # the takeover
    sleeper.signal(signal.SIGCONT)
    installation.open_gate()  # both handlers go on now
    installation.until_succeeded(job_id)
    installation.until_traces(4)
    for worker in (sleeper, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said

    first, second = installation.attempts(job_id)
    assert (first.status, second.status) == ("lost", "committed")
    assert first.result is None
    assert installation.job(job_id).result_commit_id == second.pk
    assert second.value == "generation 3"  # 1 claimed, 2 taken back, 3 claimed again
    assert [trace.pid for trace in installation.traces()[:2]] == [sleeper.pid, other.pid]


def test_a_worker_that_stood_still_inside_its_commit_is_refused(installation: Installation) -> None:
    installation.lease_seconds = LEASE
    job_id, sleeper = stopped_ahead_of_its_commit(installation)
    installation.lengthen(job_id)
    other = installation.start("--queues", installation.job(job_id).queue)
    installation.until_succeeded(job_id)
    sleeper.signal(signal.SIGCONT)
    installation.until(lambda: ("commit", "GENERATION") in installation.refusals(job_id), "the refusal")
    for worker in (sleeper, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said
    attempts = installation.attempts(job_id)
    assert [a.status for a in attempts] == ["lost", "committed"]
    assert installation.job(job_id).result_commit_id == attempts[1].pk


def test_a_busy_interpreter_keeps_its_lease(installation: Installation) -> None:
    installation.lease_seconds = 6
    job_id = installation.enqueue("proc.busy", seconds=8.0)
    installation.start()  # would itself take back what is not renewed
    installation.until_begun(job_id)
    installation.until(lambda: installation.status(job_id) != JobStatus.RUNNING, "the end")
    assert installation.status(job_id) == JobStatus.SUCCEEDED
    assert [a.generation for a in installation.attempts(job_id)] == [1]


def stand_still(installation: Installation, worker: WorkerProcess) -> None:
    """Stop a worker by SIGSTOP, at a moment at which it does not lock the whole database."""
    while True:
        worker.signal(signal.SIGSTOP)
        installation.until_stopped(worker)
        if installation.is_writable():
            return
        worker.signal(signal.SIGCONT)


def stopped_ahead_of_its_commit(installation: Installation) -> tuple[uuid.UUID, WorkerProcess]:
    """Return a job and its worker, which stands still with the result in its hands."""
    for number in range(10):
        queue, gate = f"proc.{number}", installation.file(f"gate.{number}")
        job_id = installation.enqueue("proc.gate", queue=queue, gate=gate)
        worker = installation.start("--queues", queue, failpoints="commit.before=stop")
        installation.until_begun(job_id)
        installation.open_gate(gate)
        installation.until_stopped(worker)
        if installation.is_writable():
            return job_id, worker
        worker.end()  # its heartbeat was writing just then
    raise AssertionError("the heartbeat was in the way ten times")
