"""The raise of the epoch is one instant: what an older epoch had not had accepted by then, it never will."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs import canon
from jobs.effect_kinds import EffectKind
from jobs.handlers import Options
from jobs.ledger import session
from jobs.models import Job, Scheduler
from jobs.outcomes import Code, Lease, Outcome
from jobs.status import JobStatus, WaitReason
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask
from jobs.vocabulary import JOB
from tests.build import KIND, RIVAL, at
from tests.races.ground import PERSON, coherent, job_of, queue, take
from tests.races.interleave import Explored, Race, Run, Scene

SCHEDULES = 1500


def leases() -> Iterator[tuple[int, Lease]]:
    """Hand out the epoch and a lease of sixty seconds claimed in it; jobs are enqueued by the hundred."""
    while True:
        name = queue()
        Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * 100, now=at(0))
        for _ in range(100):
            epoch = Scheduler.objects.get().epoch
            (lease,) = take(name, epoch=epoch, ttl=60, now=at(0))
            yield epoch, lease


def raise_it(expected: int) -> int:
    return Job.objects.raise_epoch(expected=expected, **PERSON)


def commit_raise_takeover(race: Race, **more: Any) -> Explored:
    """Walk the race that a plain sub-select of the epoch loses."""
    taken = leases()

    def scene() -> Scene:
        epoch, lease = next(taken)
        job_id = job_of(lease)

        def check(run: Run) -> None:
            landed, lost = run.answers["commit"].landed, run.answers["takeover"]
            assert run.answers["raise"] == epoch + 1
            assert not (landed and run.before("raise", "commit")), "accepted after the raise had returned"
            assert not (lost and run.before("raise", "takeover")), "claimed after the raise had returned"
            found = Job.objects.values_list("status", "claim_generation", "attempt_count").get(pk=job_id)
            assert found == ("succeeded" if landed else "running", 1 + bool(lost), 1 + bool(lost))
            assert not (landed and lost)

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
    # On SQLite a transaction begins when the one before has ended: there is little to interleave.
    most = SCHEDULES if race.rows_are_locked else SCHEDULES // 10
    explored = commit_raise_takeover(race, most=most, every_order=True)
    assert explored.complete or explored.schedules == most
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


def granted(lease: Lease) -> Outcome:
    """Ask for the permission to send, and say whether it was given."""
    kind = EffectKind("tests.effect", send=lambda request: None, replay="idempotent")
    ask = Ask(kind, "send", "null", canon.digest("null"), None)
    gate = EffectRuntime(JOB, hooks=HOOKS).gate(lease, ask, grant_id=uuid.uuid4().hex, now=at(1))
    return gate.outcome or Outcome(Code.LANDED)


VERBS: dict[str, Callable[[Lease], Any]] = {
    "grant": granted,
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
    taken = leases()

    def scene() -> Scene:
        epoch, lease = next(taken)

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
        (added,) = Job.objects.enqueue_many([(KIND, {}, Options(queue=name))], now=at(0))

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
    taken = leases()

    def scene() -> Scene:
        epoch, lease = next(taken)
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
