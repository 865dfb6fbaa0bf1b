"""The runtime serves the job-state table, which has no attempt, no owner, no epoch and no budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections

from jobs.drills.database import ALIAS, throw_away
from jobs.drills.model import JobState
from jobs.outcomes import Ending, Lease, Outcome
from jobs.runtime import DurableJobRuntime
from jobs.status import JobStatus, WaitReason
from jobs.vocabulary import JOB_STATE, Grade

pytestmark = pytest.mark.django_db
T0 = datetime(2000, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@pytest.fixture(params=["current", "sqlite"])
def runtime(request):
    with throw_away(request.param):
        JobState.objects.using(ALIAS).create(id="one")
        yield DurableJobRuntime(JOB_STATE, using=ALIAS, lease_seconds=30)


def row(pk: str = "one") -> tuple[str, int, bool]:
    """Return status, generation and whether a lease is held."""
    job = JobState.objects.using(ALIAS).get(pk=pk)
    return job.status, job.generation, job.lease_until is not None


def claimed(runtime: DurableJobRuntime, now: datetime = T0) -> Lease:
    lease = runtime.claim_job("one", worker_id="A", now=now)
    assert lease is not None
    return lease


def end(runtime: DurableJobRuntime, ending: Ending, seconds: float = 1) -> Outcome:
    return runtime.end([ending], now=at(seconds))[0]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (lambda lease: Ending.fail(lease, "X_UNAVAILABLE", "", retry_after=0), "pending"),
        (lambda lease: Ending.fail(lease, "X_FAILED", "", retry_after=None), "failed"),
        (lambda lease: Ending.release(lease), "pending"),
        (lambda lease: Ending.skip(lease, "X_FAILED"), "skipped"),
        (lambda lease: Ending.wait(lease, WaitReason.TIMER, seconds=5), "waiting"),
        (lambda lease: Ending.uncertain(lease, "no answer"), "uncertain"),
    ],
)
def test_every_ending_is_what_was_asked_and_gives_the_lease_up(runtime, ending, status):
    outcome = end(runtime, ending(claimed(runtime)))
    assert (outcome.landed, outcome.status) == (True, JobStatus(status))
    assert row() == (status, 1, False)


def test_an_ending_at_the_leases_end_is_refused(runtime):
    lease = claimed(runtime)
    assert end(runtime, Ending.release(lease), 30).reason == "LEASE_EXPIRED"
    assert row() == ("running", 1, True)


def test_recovery_takes_an_expired_lease_back_to_pending(runtime):
    lease = claimed(runtime)
    assert runtime.recover(now=at(29.999999)) == []
    assert [(e.id, e.status) for e in runtime.recover(now=at(30))] == [("one", JobStatus.PENDING)]
    assert row() == ("pending", 2, False)
    assert runtime.renew([lease], now=at(30))[0].reason == "GENERATION"


def test_a_job_written_as_retryable_is_claimed_as_pending(runtime):
    JobState.objects.using(ALIAS).filter(pk="one").update(status="retryable")
    assert claimed(runtime).generation == 1
    assert row() == ("running", 1, True)


def test_a_claim_by_queue_takes_what_is_pending_and_no_more_than_asked(runtime):
    JobState.objects.using(ALIAS).create(id="two")
    JobState.objects.using(ALIAS).create(id="three", status="done")
    first = runtime.claim(worker_id="A", now=T0)
    assert len(first) == 1
    rest = runtime.claim(worker_id="A", max_claims=5, now=T0)
    assert {lease.job_id for lease in first + rest} == {"one", "two"}


def test_a_claim_of_a_fenced_worker_or_under_an_old_epoch_takes_nothing(runtime):
    assert runtime.claim_job("one", worker_id="A", epoch=0, now=T0) is None
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("UPDATE jobs_scheduler SET epoch = epoch + 1")
    assert runtime.claim_job("one", worker_id="A", epoch=1, now=T0) is None
    assert row() == ("pending", 0, False)


def test_a_raise_of_the_epoch_refuses_the_holder_though_the_table_has_no_epoch(runtime):
    lease = claimed(runtime)
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("UPDATE jobs_scheduler SET epoch = epoch + 1")
    assert runtime.renew([lease], now=at(1))[0].reason == "EPOCH"
    assert runtime.commit([(lease, "null", "d")], now=at(1))[0].reason == "EPOCH"
    assert end(runtime, Ending.release(lease)).reason == "EPOCH"
    assert row() == ("running", 1, True)


def test_a_missing_job_is_said_to_be_missing(runtime):
    lease = claimed(runtime)
    JobState.objects.using(ALIAS).all().delete()
    assert runtime.claim_job("one", worker_id="A", now=T0) is None
    assert runtime.commit([(lease, "null", "d")], now=at(1))[0].reason == "NOT_FOUND"


def test_the_table_is_graded_b():
    assert JOB_STATE.grade is Grade.B
