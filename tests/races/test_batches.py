"""A worker that lost a job and claimed it again may send both leases in one batch: each is judged alone."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from jobs.ledger import worker
from jobs.models import Attempt, FenceRefusal, Job
from jobs.outcomes import Code, Ending, Lease
from jobs.status import JobStatus
from tests.build import at, claim
from tests.races.ground import coherent, held, job_of

pytestmark = pytest.mark.django_db


def lost_and_claimed_again() -> tuple[Lease, Lease]:
    """Return two leases of one job, the first of them lost, both of the same worker."""
    lost = held()
    Job.objects.recover(now=at(60))
    return lost, claim(job_of(lost), now=at(60))


def ran(lease: Lease) -> Attempt:
    """Return the attempt that a lease was for, of a job that is coherent."""
    coherent(job_of(lease))
    return Attempt.objects.get(pk=lease.attempt_id)


ORDERS = pytest.mark.parametrize("stale_first", [True, False])


@ORDERS
def test_only_the_held_lease_of_a_batch_is_renewed(db: None, stale_first: bool) -> None:
    lost, current = lost_and_claimed_again()
    leases = [lost, current] if stale_first else [current, lost]
    answers = dict(
        zip(
            [lease.generation for lease in leases], Job.objects.runtime.renew(leases, now=at(70)), strict=True
        )
    )
    assert answers[current.generation].code == Code.RENEWED
    assert (answers[lost.generation].code, answers[lost.generation].reason) == (Code.FENCED, "GENERATION")


@ORDERS
def test_only_the_held_lease_of_a_batch_commits(db: None, stale_first: bool) -> None:
    lost, current = lost_and_claimed_again()
    results = [(lost, "stale"), (current, "right")]
    answers = Job.objects.commit_many(results if stale_first else results[::-1], now=at(70))
    stale, right = answers if stale_first else answers[::-1]
    assert (stale.code, stale.reason) == (Code.FENCED, "GENERATION")
    assert right.code == Code.COMMITTED
    assert ran(current).value == "right"


@ORDERS
def test_only_the_held_lease_of_a_batch_ends_the_job(db: None, stale_first: bool) -> None:
    lost, current = lost_and_claimed_again()
    endings = [Ending.release(lost), Ending.release(current)]
    answers = Job.objects.runtime.end(endings if stale_first else endings[::-1], now=at(70))
    stale, right = answers if stale_first else answers[::-1]
    assert (stale.code, stale.reason) == (Code.FENCED, "GENERATION")
    assert (right.code, right.status) == (Code.LANDED, JobStatus.PENDING)
    assert ran(current).status == "released"


def test_one_commit_twice_in_a_batch_is_a_replay(db: None) -> None:
    lease = held()
    first, again = Job.objects.commit_many([(lease, 1), (lease, 1)], now=at(1))
    assert [first.replay, again.replay] == [False, True]
    assert [first.code, again.code] == [Code.COMMITTED, Code.COMMITTED]


def test_two_results_of_one_lease_in_a_batch_are_a_conflict(db: None) -> None:
    lease = held()
    first, other = Job.objects.commit_many([(lease, 1), (lease, 2)], now=at(1))
    assert first.code == Code.COMMITTED
    assert other.reason == "RESULT_CONFLICT"
    assert ran(lease).value == 1


def test_a_refusal_that_cannot_be_written_down_hides_no_answer(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OperationalError("the disk is full")

    lost, kept = held(), held()
    Job.objects.force_cancel(job_of(lost), state_version=2, actor="ada", reason="because")
    monkeypatch.setattr(worker, "add_refusal", fails)
    refused, landed = Job.objects.commit_many([(lost, 1), (kept, 1)], now=at(1))
    assert (refused.reason, landed.code) == ("GENERATION", Code.COMMITTED)
    assert not FenceRefusal.objects.exists()
