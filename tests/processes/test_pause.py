"""A worker that is stopped beyond its lease, and then goes on, changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path

from jobs.status import JobStatus
from tests.processes.installation import Installation


def test_a_stopped_worker_that_wakes_after_a_takeover_commits_nothing(installation: Installation) -> None:
    gate = installation.file("gate")
    job_id = installation.enqueue("proc.gate", file=installation.file("trace"), gate=gate)
    sleeper = installation.start()
    installation.until(lambda: installation.traces(), "the first attempt")
    sleeper.signal(signal.SIGSTOP)
    other = installation.start()
    installation.until(lambda: len(installation.traces()) == 2, "the takeover")
    sleeper.signal(signal.SIGCONT)
    Path(gate).touch()  # both handlers go on now
    installation.until(lambda: installation.job(job_id).status == JobStatus.SUCCEEDED, "the end")
    installation.until(lambda: len(installation.traces()) == 4, "both handlers' ends")
    for worker in (sleeper, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said

    first, second = installation.attempts(job_id)
    assert (first.status, second.status) == ("lost", "committed")
    assert first.result is None
    assert installation.job(job_id).result_commit_id == second.pk
    assert second.value == "generation 3"  # 1 claimed, 2 taken back, 3 claimed again


def test_a_worker_stopped_inside_its_commit_is_refused_when_it_wakes(installation: Installation) -> None:
    job_id = installation.enqueue("proc.trace", file=installation.file("trace"))
    sleeper = installation.start(failpoints="commit.before=stop")
    installation.until(lambda: installation.traces(), "the first attempt")
    installation.start()
    installation.until(lambda: installation.job(job_id).status == JobStatus.SUCCEEDED, "the takeover's end")
    sleeper.signal(signal.SIGCONT)
    sleeper.signal(signal.SIGTERM)
    assert sleeper.wait() == 0, sleeper.said
    attempts = installation.attempts(job_id)
    assert [a.status for a in attempts] == ["lost", "committed"]
    assert installation.job(job_id).result_commit_id == attempts[1].pk
    assert installation.refusals(job_id) in ([], [("commit", "GENERATION")])


def test_a_busy_interpreter_keeps_its_lease(installation: Installation) -> None:
    job_id = installation.enqueue("proc.busy", file=installation.file("trace"), seconds=7.0)
    installation.start()
    installation.start()  # would take over what is not renewed
    installation.until(lambda: installation.job(job_id).status == JobStatus.SUCCEEDED, "the end")
    assert [a.generation for a in installation.attempts(job_id)] == [1]
