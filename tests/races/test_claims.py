"""Claims that meet: each job goes to one worker, and none starts after a person has said stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import Job
from jobs.outcomes import Code, Lease
from jobs.status import JobStatus
from tests.build import RIVAL, at, enqueue
from tests.races.ground import PERSON, coherent, held, job_of, never_runs_again, queue, take, version
from tests.races.interleave import Race, Run, Scene

Claim = Callable[[Any, str], list[Lease]]


def by_id(job_id: Any, _queue: str, worker: str = RIVAL) -> list[Lease]:
    lease = Job.objects.claim_job(job_id, worker_id=worker, epoch=1)
    return [lease] if lease else []


def by_queue(_job_id: Any, name: str, worker: str = RIVAL) -> list[Lease]:
    return take(name, worker=worker)


DOORS = pytest.mark.parametrize("door", [by_id, by_queue])


@pytest.mark.parametrize("other", [by_id, by_queue])
@DOORS
def test_one_of_two_claims_gets_the_job(race: Race, door: Any, other: Any) -> None:
    def scene() -> Scene:
        name = queue()
        job_id = enqueue(queue=name)

        def check(run: Run) -> None:
            assert len(run.answers["one"] + run.answers["two"]) == 1
            assert coherent(job_id).claim_generation == 1

        one, two = (lambda: door(job_id, name, "h:1:a")), (lambda: other(job_id, name, "h:2:b"))
        return Scene({"one": one, "two": two}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert explored.retries == 0
    assert len(explored.answers["one"]) == 2, "each of them won under some schedule"


def test_two_batches_share_what_there_is_and_overlap_nowhere(race: Race) -> None:
    def scene() -> Scene:
        name = queue()
        jobs = {enqueue(queue=name).hex for _ in range(3)}

        def check(run: Run) -> None:
            taken = [lease.job_id for lease in run.answers["one"] + run.answers["two"]]
            assert sorted(taken) == sorted(jobs)
            assert max(len(answer) for answer in run.answers.values()) == 2, "never more than asked for"

        return Scene(
            {
                "one": lambda: take(name, max_claims=2),
                "two": lambda: take(name, worker=RIVAL, max_claims=2),
            },
            check,
        )

    assert race.explore(scene).complete


@DOORS
def test_a_job_cancelled_before_its_claim_never_starts_and_one_claimed_before_is_asked_to_stop(
    race: Race, door: Any
) -> None:
    def scene() -> Scene:
        name = queue()
        job_id = enqueue(queue=name)

        def check(run: Run) -> None:
            job = coherent(job_id)
            taken = run.answers["claim"]
            assert run.answers["cancel"] == (JobStatus.RUNNING if taken else JobStatus.CANCELLED)
            if taken:
                assert run.before("claim", "cancel")
                assert job.cancel_requested_at is not None
                assert Job.objects.commit(taken[0], 1).code == Code.CANCELLED
                assert Job.objects.acknowledge_cancel(taken[0]).landed
            never_runs_again(job_id)

        return Scene(
            {
                "claim": lambda: door(job_id, name),
                "cancel": lambda: Job.objects.cancel(job_id, actor="ada"),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.answers["cancel"] == {"running", "cancelled"}


@DOORS
def test_a_job_held_before_its_claim_stays_and_one_claimed_before_cannot_commit(
    race: Race, door: Any
) -> None:
    def scene() -> Scene:
        name = queue()
        job_id = enqueue(queue=name)

        def check(run: Run) -> None:
            assert run.answers["hold"] is True
            taken = run.answers["claim"]
            assert bool(taken) == (coherent(job_id).status == JobStatus.RUNNING)
            if taken:
                assert run.before("claim", "hold")
                assert Job.objects.commit(taken[0], 1).reason == "HELD"
            else:
                assert Job.objects.claim_job(job_id, worker_id=RIVAL) is None
                assert Job.objects.unhold(job_id, **PERSON)
                assert Job.objects.claim_job(job_id, worker_id=RIVAL)

        return Scene(
            {"claim": lambda: door(job_id, name), "hold": lambda: Job.objects.hold(job_id, **PERSON)}, check
        )

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["claim"]) == 2


def stops(name: str) -> dict[str, Callable[[], Any]]:
    return {
        "pause_queue": lambda: Job.objects.pause_queue(name, **PERSON),
        "close_claims": lambda: Job.objects.close_claims(**PERSON),
    }


@pytest.mark.parametrize("verb", ["pause_queue", "close_claims"])
@DOORS
def test_no_claim_lands_after_claims_were_stopped(race: Race, door: Any, verb: str) -> None:
    def scene() -> Scene:
        Job.objects.open_claims(**PERSON)
        name = queue()
        job_id = enqueue(queue=name)

        def check(run: Run) -> None:
            assert not (run.answers["claim"] and run.before(verb, "claim"))
            assert bool(run.answers["claim"]) == (coherent(job_id).status == JobStatus.RUNNING)

        return Scene({"claim": lambda: door(job_id, name), verb: stops(name)[verb]}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["claim"]) == 2


def test_pausing_one_queue_lets_a_claim_of_two_go_on_with_the_other(race: Race) -> None:
    def scene() -> Scene:
        paused, other = queue(), queue()
        first, second = enqueue(queue=paused), enqueue(queue=other)

        def check(run: Run) -> None:
            taken = {lease.job_id for lease in run.answers["claim"]}
            assert second.hex in taken
            assert not (first.hex in taken and run.before("pause_queue", "claim"))

        return Scene(
            {
                "claim": lambda: take([paused, other], max_claims=2),
                "pause_queue": lambda: Job.objects.pause_queue(paused, **PERSON),
            },
            check,
        )

    assert race.explore(scene).complete


@DOORS
def test_promotion_and_claim_neither_double_nor_lose_a_job_whose_time_has_come(race: Race, door: Any) -> None:
    def scene() -> Scene:
        name = queue()
        job_id = enqueue(queue=name, delay=1.0)
        assert Job.objects.get(pk=job_id).ready_at is None

        def check(run: Run) -> None:
            job = coherent(job_id)
            if run.answers["claim"]:
                assert (job.ready_at, job.claim_generation) == (None, 1)
            else:
                Job.objects.runtime.promote()
                assert len(take(name)) == 1, "still to be had"

        return Scene({"promote": Job.objects.runtime.promote, "claim": lambda: door(job_id, name)}, check)

    assert race.explore(scene).complete


def test_a_job_cancelled_while_it_is_promoted_stays_cancelled(race: Race) -> None:
    def scene() -> Scene:
        job_id = enqueue(queue=queue(), delay=1.0)

        def check(run: Run) -> None:
            assert run.answers["cancel"] == JobStatus.CANCELLED
            assert coherent(job_id).ready_at is None
            never_runs_again(job_id)

        return Scene(
            {
                "promote": Job.objects.runtime.promote,
                "cancel": lambda: Job.objects.cancel(job_id, actor="ada"),
            },
            check,
        )

    assert race.explore(scene).complete


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_job_is_claimed_only_together_with_the_row_it_was_enqueued_with(race: Race, ends: str) -> None:
    class Undo(Exception):
        pass

    def scene() -> Scene:
        name = queue()

        def business() -> None:
            try:
                with transaction.atomic():
                    User.objects.create(username=name)
                    enqueue(queue=name)
                    if ends == "rollback":
                        raise Undo
            except Undo:
                pass

        def handler() -> str:
            taken = take(name)
            return (
                f"{len(taken)} job, {User.objects.filter(username=name).count()} row" if taken else "nothing"
            )

        def check(run: Run) -> None:
            assert run.answers["worker"] in ("nothing", "1 job, 1 row")
            exists = Job.objects.filter(queue=name).exists()
            assert exists == User.objects.filter(username=name).exists() == (ends == "commit")

        return Scene({"business": business, "worker": handler}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert ("1 job, 1 row" in explored.answers["worker"]) == (ends == "commit")


def test_a_takeover_and_the_holders_commit_end_in_one_result(race: Race) -> None:
    def scene() -> Scene:
        lease = held()

        def check(run: Run) -> None:
            landed, taken = run.answers["commit"].landed, run.answers["takeover"]
            assert landed != bool(taken)
            assert coherent(job_of(lease)).status == (JobStatus.SUCCEEDED if landed else JobStatus.RUNNING)

        return Scene(
            {
                "commit": lambda: Job.objects.commit(lease, 1, now=at(59)),
                "takeover": lambda: Job.objects.claim_job(
                    job_of(lease), worker_id=RIVAL, epoch=1, now=at(60)
                ),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.answers["commit"] == {"COMMITTED", "FENCED GENERATION"}


def test_a_claim_at_a_version_that_a_person_saw_loses_to_whoever_moved_the_job(race: Race) -> None:
    def scene() -> Scene:
        job_id = enqueue(queue=queue())
        seen = version(job_id)

        def check(run: Run) -> None:
            assert bool(run.answers["claim"]) == (not run.before("revise", "claim"))
            coherent(job_id)

        return Scene(
            {
                "claim": lambda: Job.objects.claim_job(
                    job_id, worker_id=RIVAL, epoch=1, expected_state_version=seen
                ),
                "revise": lambda: revise(job_id),
            },
            check,
        )

    def revise(job_id: Any) -> int:
        return Job.objects.revise(job_id, {"to": "text"}, state_version=version(job_id), **PERSON)

    assert race.explore(scene).complete
