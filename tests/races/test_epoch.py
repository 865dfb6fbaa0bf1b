"""The raise of the epoch is one instant: what an older epoch had not had accepted by then, it never will."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from jobs import canon
from jobs.effect_kinds import EffectKind
from jobs.handlers import Options
from jobs.ledger import epoch as scheduler
from jobs.ledger import session
from jobs.models import Attempt, EffectSlot, Job, Scheduler
from jobs.outcomes import Code, Lease, Outcome
from jobs.status import JobStatus, WaitReason
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask
from jobs.vocabulary import JOB
from tests.build import KIND, RIVAL, at
from tests.races.ground import PERSON, coherent, job_of, queue, take
from tests.races.interleave import Explored, Race, Run, Scene

AT_ONCE = 100
OF_ITS_JOB = ("job__status", "job__claim_generation", "job__attempt_count")
ASK = Ask(
    EffectKind("tests.effect", send=lambda request: None, replay="idempotent"),
    "send",
    "null",
    canon.digest("null"),
    None,
)


def leases() -> Iterator[tuple[int, Lease]]:
    """Hand out the epoch and a lease of sixty seconds claimed in it, to scenes that raise once each.

    A hundred are claimed at once and then dated on by hand, the second to the next epoch, and so on.
    """
    while True:
        name, epoch = queue(), Scheduler.objects.get().epoch
        Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * AT_ONCE, now=at(0))
        taken = take(name, epoch=epoch, ttl=60, max_claims=AT_ONCE, now=at(0))
        dated = [lease._replace(epoch=epoch + ahead) for ahead, lease in enumerate(taken)]
        with connection.cursor() as cursor:
            for table, key in (("jobs_job", "id"), ("jobs_attempt", "job_id")):
                update = f"UPDATE {table} SET scheduler_epoch = %s WHERE {key} = %s"
                cursor.executemany(update, [(lease.epoch, lease.job_id) for lease in dated])
        for lease in dated:
            yield lease.epoch, lease


def raise_it(expected: int) -> int:
    return Job.objects.raise_epoch(expected=expected, **PERSON)


def raise_alone(expected: int) -> int | None:
    """Raise by the ledger's own transaction, without the audit beside it: no holder's verb reaches that."""
    given: dict[str, Any] = {"floor": 0, "claims_open": None, **PERSON}
    return session.transact(
        lambda s: scheduler.raise_epoch(s, expected=expected, **given),
        using="default",
        vocabulary=JOB,
        exclusive=True,
    )


def granted(lease: Lease) -> Outcome:
    """Ask for the permission to send, and say whether it was given."""
    gate = EffectRuntime(JOB, hooks=HOOKS).gate(lease, ASK, grant_id=uuid.uuid4().hex, now=at(59))
    return gate.outcome or Outcome(Code.LANDED)


AUTHORISING: dict[str, Callable[[Lease], Outcome]] = {
    "commit": lambda lease: Job.objects.commit(lease, 1, now=at(59)),
    "renew": lambda lease: Job.objects.renew(lease, now=at(59)),
    "grant": granted,
    "stage": lambda lease: Job.objects.stage(lease, 1, now=at(59)),
}


def with_raise_and_takeover(race: Race, verb: str, **more: Any) -> Explored:
    """Walk the race that a plain sub-select of the epoch loses, for one of the holder's verbs."""
    taken = leases()

    def scene() -> Scene:
        epoch, lease = next(taken)
        job_id = job_of(lease)

        def check(run: Run) -> None:
            landed, lost = run.answers[verb].landed, bool(run.answers["takeover"])
            assert run.answers["raise"] == epoch + 1
            assert not (landed and run.before("raise", verb)), "accepted after the raise had returned"
            assert not (lost and run.before("raise", "takeover")), "claimed after the raise had returned"
            # A result that is kept, or a permission, may be given before another takes over; not after.
            assert not (landed and lost) or (verb in ("stage", "grant") and run.before(verb, "takeover"))
            committed = landed and verb == "commit"
            first = "committed" if committed else "lost" if lost else "running"
            found = Attempt.objects.filter(job_id=job_id).order_by("generation")
            assert list(found.values_list("status", *OF_ITS_JOB)) == [
                (status, "succeeded" if committed else "running", 1 + lost, 1 + lost)
                for status in [first, *["running"] * lost]
            ]
            if verb == "grant":
                slots = EffectSlot.objects.filter(job_id=job_id).values_list("status", "job__open_effects")
                assert list(slots) == [("unknown" if lost else "executing", 1)] * landed

        return Scene(
            {
                verb: lambda: AUTHORISING[verb](lease),
                "raise": lambda: raise_alone(epoch),
                # Expired, so that only the epoch keeps it from taking the job over.
                "takeover": lambda: Job.objects.claim_job(job_id, worker_id=RIVAL, epoch=epoch, now=at(60)),
            },
            check,
        )

    return race.explore(scene, **more)


ORDERS = {"commit": 1000, "renew": 2500, "grant": 1100, "stage": 1000}
"""So many orders of statements of each verb, a raise and a takeover there are at least: 5,600 in all."""


@pytest.mark.parametrize("verb", list(AUTHORISING))
def test_nothing_of_an_older_epoch_is_accepted_after_the_raise_has_returned(race: Race, verb: str) -> None:
    explored = with_raise_and_takeover(race, verb)
    assert explored.complete
    assert {"FENCED EPOCH", "FENCED GENERATION"} < explored.answers[verb]
    assert explored.answers["takeover"] == {"LEASE", "None"}
    assert explored.retries == 0
    # Where the whole file is locked, a transaction begins when the one before has ended.
    assert not race.rows_are_locked or (explored.waits and explored.orders >= ORDERS[verb])


@pytest.mark.parametrize("verb", list(AUTHORISING))
def test_the_walk_catches_a_plain_sub_select_of_the_epoch_in_place_of_the_lock(
    race: Race, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    if not race.rows_are_locked:
        pytest.skip("this database locks the whole file, so there is no table lock to leave out")
    opening = session.OPEN_FENCED.partition("LOCK TABLE")[0] + "SELECT 1"
    monkeypatch.setattr(session, "OPEN_FENCED", opening)
    with pytest.raises(AssertionError, match="after the raise had returned") as caught:
        with_raise_and_takeover(race, verb)
    assert any("schedule=" in note for note in caught.value.__notes__), "it says which order it was"


VERBS: dict[str, Callable[[Lease], Any]] = {
    **AUTHORISING,
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
