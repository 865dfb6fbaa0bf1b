"""Two workers, two thousand jobs: none lost, none committed twice."""

from __future__ import annotations

import signal

from jobs.models import Attempt
from tests.processes.installation import Installation

JOBS = 2000


def test_two_workers_finish_two_thousand_jobs_once_each(installation: Installation) -> None:
    assert len(set(installation.enqueue_many("proc.trace", JOBS))) == JOBS
    workers = [installation.start(), installation.start()]
    installation.until(installation.all_ended, "the end of all jobs")
    for worker in workers:
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said

    assert installation.statuses() == {"succeeded": JOBS}
    assert installation.each_committed_once()
    ran = installation.traces()
    assert len(ran) == len({trace.job for trace in ran}) == JOBS
    assert {trace.generation for trace in ran} == {1}


def test_workers_killed_again_and_again_lose_nothing(installation: Installation) -> None:
    """The victims die in the middle of their work, around a COMMIT; the last worker finishes."""
    installation.enqueue_many("proc.trace", 300)
    for point in ("commit.sent=kill@2", "commit.after=kill@3"):
        victim = installation.start("--concurrency", "4", failpoints=point)
        assert victim.wait() == -signal.SIGKILL, victim.said
        installation.raise_epoch()
    installation.drain()

    assert installation.statuses() == {"succeeded": 300}
    assert installation.each_committed_once()
    assert Attempt.objects.using(installation.alias).filter(status="lost").exists()
