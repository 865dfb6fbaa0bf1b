"""The raise of the epoch is one instant: what an older epoch had not had accepted by then, it never will."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.ledger import session
from jobs.models import Job, Scheduler
from jobs.outcomes import Lease
from jobs.status import JobStatus, WaitReason
from tests.build import KIND, RIVAL, at, claim
from tests.races.ground import PERSON, coherent, job_of, queue
from tests.races.interleave import Explored, Race, Run, Scene

SCHEDULES = 1500


def jobs() -> Iterator[uuid.UUID]:
    """Hand out pending jobs, enqueued a hundred at a time."""
    while True:
        for added in Job.objects.enqueue_many([(KIND, {}, None)] * 100, now=at(0)):
            yield added.job_id


def raise_it(expected: int) -> int:
    return Job.objects.raise_epoch(expected=expected, **PERSON)


def commit_raise_takeover(race: Race, **more: Any) -> Explored:
    """Walk the race that a plain sub-select of the epoch loses."""
    pending = jobs()

    def scene() -> Scene:
        epoch = Scheduler.objects.get().epoch
        lease = claim(next(pending), epoch=epoch)
        job_id = job_of(lease)

        def check(run: Run) -> None:
            landed, taken = run.answers["commit"].landed, run.answers["takeover"]
            assert run.answers["raise"] == epoch + 1
            assert not (landed and run.before("raise", "commit")), "accepted after the raise had returned"
            assert not (taken and run.before("raise", "takeover")), "claimed after the raise had returned"
            assert not (landed and taken)
            coherent(job_id)

        return Scene(
            {
                "commit": lambda: Job.objects.commit(lease, 1, now=at(59)),
                "raise": lambda: raise_it(epoch),
                # Expired, so that only the epoch keeps it from taking the job over.
                "takeover": lambda: Job.objects.claim_job(job_id, worker_id=RIVAL, epoch=epoch, now=at(60)),
            },
            check,
        )

    return race.explore(scene, **more)


def test_nothing_of_an_older_epoch_is_accepted_after_the_raise_has_returned(race: Race) -> None:
    explored = commit_raise_takeover(race)
    assert explored.complete
    assert explored.answers["commit"] == {"COMMITTED", "FENCED EPOCH", "FENCED GENERATION"}
    assert explored.answers["takeover"] == {"LEASE", "None"}
    assert explored.retries == 0
    assert explored.waits or not race.rows_are_locked


def test_nor_in_fifteen_hundred_orders_with_none_left_out_for_looking_alike(race: Race) -> None:
    explored = commit_raise_takeover(race, most=SCHEDULES, every_order=True)
    assert explored.complete or explored.schedules == SCHEDULES
    assert explored.retries == 0


def test_the_explorer_finds_the_commit_that_slips_past_a_raise_without_the_table_lock(
    race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not race.rows_are_locked:
        pytest.skip("this database locks the whole file, so there is no table lock to leave out")
    opening = session.OPEN_FENCED.partition("LOCK TABLE")[0] + "SELECT 1"
    monkeypatch.setattr(session, "OPEN_FENCED", opening)
    with pytest.raises(AssertionError, match="after the raise had returned") as caught:
        commit_raise_takeover(race, most=SCHEDULES)
    assert any("schedule=" in note for note in caught.value.__notes__), "it says which order it was"


VERBS: dict[str, Callable[[Lease], Any]] = {
    "renew": lambda lease: Job.objects.renew(lease, now=at(1)),
    "stage": lambda lease: Job.objects.stage(lease, 1, now=at(1)),
    "fail": lambda lease: Job.objects.fail(lease, "RUNTIME_HANDLER_EXCEPTION", retry_after=0, now=at(1)),
    "release": lambda lease: Job.objects.release(lease, now=at(1)),
    "wait": lambda lease: Job.objects.wait(lease, WaitReason.TIMER, seconds=5, now=at(1)),
    "skip": lambda lease: Job.objects.skip(lease, "NOTHING_TO_DO", now=at(1)),
    "uncertain": lambda lease: Job.objects.uncertain(lease, "no answer", now=at(1)),
}


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_holders_verb_lands_before_the_raise_or_not_at_all(race: Race, verb: str) -> None:
    pending = jobs()

    def scene() -> Scene:
        epoch = Scheduler.objects.get().epoch
        lease = claim(next(pending), epoch=epoch)

        def check(run: Run) -> None:
            landed = run.answers[verb].landed
            assert landed != run.before("raise", verb)
            assert landed or run.answers[verb].reason == "EPOCH"
            coherent(job_of(lease))

        return Scene({verb: lambda: VERBS[verb](lease), "raise": lambda: raise_it(epoch)}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers[verb]) == 2


@pytest.mark.parametrize("door", ["by id", "by queue"])
def test_a_claim_lands_before_the_raise_or_not_at_all(race: Race, door: str) -> None:
    def scene() -> Scene:
        epoch = Scheduler.objects.get().epoch
        name = queue()
        (added,) = Job.objects.enqueue_many([(KIND, {}, _in(name))], now=at(0))

        def attempt() -> Any:
            if door == "by id":
                return Job.objects.claim_job(added.job_id, worker_id=RIVAL, epoch=epoch)
            return Job.objects.claim(worker_id=RIVAL, queues=[name], kinds=[KIND], epoch=epoch)

        def check(run: Run) -> None:
            assert bool(run.answers["claim"]) != run.before("raise", "claim")
            coherent(added.job_id)

        return Scene({"claim": attempt, "raise": lambda: raise_it(epoch)}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["claim"]) == 2


def test_a_cancelled_holder_may_give_up_whatever_the_epoch(race: Race) -> None:
    pending = jobs()

    def scene() -> Scene:
        epoch = Scheduler.objects.get().epoch
        lease = claim(next(pending), epoch=epoch)
        Job.objects.cancel(job_of(lease), actor="ada")

        def check(run: Run) -> None:
            assert run.answers["acknowledge"].status == JobStatus.CANCELLED
            coherent(job_of(lease))

        return Scene(
            {
                "acknowledge": lambda: Job.objects.acknowledge_cancel(lease, now=at(1)),
                "raise": lambda: raise_it(epoch),
            },
            check,
        )

    assert race.explore(scene).complete


def test_of_two_raises_at_once_one_is_told_that_the_epoch_has_moved(race: Race) -> None:
    def scene() -> Scene:
        epoch = Scheduler.objects.get().epoch

        def check(run: Run) -> None:
            raised = [answer for answer in run.answers.values() if answer == epoch + 1]
            (refused,) = [answer for answer in run.answers.values() if answer not in raised]
            assert (refused.code, refused.params["found"]) == ("EPOCH_MOVED", epoch + 1)
            assert Scheduler.objects.get().epoch == epoch + 1

        return Scene({"one": lambda: raise_it(epoch), "two": lambda: raise_it(epoch)}, check)

    assert race.explore(scene).complete


def _in(name: str) -> Any:
    from jobs.handlers import Options

    return Options(queue=name)
