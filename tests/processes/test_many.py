"""Two workers, two thousand jobs: none lost, none committed twice."""

from __future__ import annotations

import signal
from collections import Counter

from django.db.models import Count

from jobs.handlers import Options
from jobs.models import Attempt, Job
from jobs.status import JobStatus
from tests.processes.installation import Installation

JOBS = 2000


def test_two_workers_finish_two_thousand_jobs_once_each(installation: Installation) -> None:
    trace = installation.file("trace")
    answers = installation.jobs.enqueue_many(
        [("proc.trace", {"file": trace}, Options(queue="proc")) for _ in range(JOBS)]
    )
    assert len({a.job_id for a in answers}) == JOBS  # type: ignore[union-attr]
    first, second = installation.start("--drain"), installation.start("--drain")
    assert (first.wait(120), second.wait(120)) == (0, 0), first.said + second.said

    jobs = Job.objects.using(installation.alias)
    assert Counter(jobs.values_list("status", flat=True)) == {JobStatus.SUCCEEDED: JOBS}
    attempts = Attempt.objects.using(installation.alias)
    committed = attempts.filter(status="committed").values("job_id").annotate(n=Count("id"))
    assert set(committed.values_list("n", flat=True)) == {1}
    ran = installation.traces()
    assert len(ran) == len({job for job, _, _, _ in ran}) == JOBS
    assert {generation for _, generation, _, _ in ran} == {1}
    assert len({process for _, _, process, _ in ran}) == 2


def test_workers_killed_again_and_again_lose_nothing(installation: Installation) -> None:
    """Each victim dies at another point after some work; the last worker finishes."""
    trace = installation.file("trace")
    installation.jobs.enqueue_many(
        [("proc.trace", {"file": trace}, Options(queue="proc")) for _ in range(300)]
    )
    for point in ("commit.sent=kill@2", "claim.after=kill@2", "run.after=kill@20", "commit.after=kill@3"):
        victim = installation.start("--drain", "--concurrency", "4", failpoints=point)
        assert victim.wait() in (-signal.SIGKILL, 0), victim.said
        epoch = installation.jobs.runtime.current_epoch()
        installation.jobs.raise_epoch(expected=epoch, actor="test", reason="the worker is gone")
    installation.drain()

    jobs = Job.objects.using(installation.alias)
    assert Counter(jobs.values_list("status", flat=True)) == {JobStatus.SUCCEEDED: 300}
    assert not Attempt.objects.using(installation.alias).filter(status="running").exists()
    for job in jobs.prefetch_related("attempts"):
        generations = sorted(a.generation for a in job.attempts.all())
        assert len(generations) == len(set(generations))
        assert [a.pk for a in job.attempts.all() if a.status == "committed"] == [job.result_commit_id]
