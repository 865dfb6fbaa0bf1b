"""People who act at once: one lands, the other is told what changed; families are cancelled whole."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from jobs.models import AuditEntry, Job
from jobs.operations import cases, casework, rulings
from jobs.status import TERMINAL, JobStatus
from tests.build import at, enqueue
from tests.console import matters
from tests.races.ground import PERSON, coherent, ended, history, queue, version
from tests.races.interleave import Race, Run, Scene


def test_of_two_retries_at_once_one_lands_and_the_other_is_told(race: Race) -> None:
    def scene() -> Scene:
        job_id = ended()
        seen = version(job_id)

        def check(run: Run) -> None:
            landed = [answer for answer in run.answers.values() if answer == JobStatus.PENDING]
            (refused,) = [answer for answer in run.answers.values() if answer != JobStatus.PENDING]
            assert len(landed) == 1
            # Told what the job is now; its version too has moved on.
            assert refused.code in ("VERSION", "NOT_ENDED")
            assert coherent(job_id).state_version == seen + 1
            assert [verb for verb, _ in history(job_id)].count("retry") == 1

        def click() -> Any:
            return Job.objects.retry(job_id, state_version=seen, **PERSON)

        return Scene({"one": click, "two": click}, check)

    assert race.explore(scene).complete


def test_of_two_forced_cancels_at_once_one_lands_and_the_other_is_told(race: Race) -> None:
    def scene() -> Scene:
        job_id = enqueue(queue=queue())
        seen = version(job_id)

        def check(run: Run) -> None:
            codes = sorted(getattr(answer, "code", "") for answer in run.answers.values())
            assert codes == ["", "ALREADY_ENDED"]
            job = coherent(job_id)
            assert (job.cancel_generation, job.claim_generation) == (1, 1)

        def click() -> Any:
            return Job.objects.force_cancel(job_id, state_version=seen, **PERSON)

        return Scene({"one": click, "two": click}, check)

    assert race.explore(scene).complete


def test_two_cancels_at_once_are_one_request(race: Race) -> None:
    def scene() -> Scene:
        job_id = enqueue(queue=queue())

        def check(run: Run) -> None:
            assert set(run.answers.values()) == {JobStatus.CANCELLED}
            assert coherent(job_id).cancel_generation == 1
            assert len(history(job_id)) == 1

        def click() -> Any:
            return Job.objects.cancel(job_id, actor="ada")

        return Scene({"one": click, "two": click}, check)

    assert race.explore(scene).complete


@pytest.mark.parametrize("way", ["alone", "in the caller's transaction"])
def test_a_child_born_while_its_parent_is_cancelled_is_refused_or_cancelled_too(race: Race, way: str) -> None:
    def scene() -> Scene:
        parent = enqueue(queue=queue())

        def bear() -> uuid.UUID:
            if way == "alone":
                return enqueue(queue=queue(), parent_id=parent)
            with transaction.atomic():
                return enqueue(queue=queue(), parent_id=parent)

        def check(run: Run) -> None:
            assert run.answers["cancel"] == coherent(parent).status == JobStatus.CANCELLED
            born = run.answers["enqueue"]
            if isinstance(born, uuid.UUID):
                assert coherent(born).status == JobStatus.CANCELLED
            else:
                assert born.code == "PARENT_CANCELLED"
            assert not Job.objects.filter(parent=parent).exclude(status__in=TERMINAL).exists()

        return Scene({"enqueue": bear, "cancel": lambda: Job.objects.cancel(parent, actor="ada")}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["enqueue"]) == 2


def test_a_grandchild_born_while_the_family_is_cancelled_does_not_outlive_it(race: Race) -> None:
    def scene() -> Scene:
        parent = enqueue(queue=queue())
        child = enqueue(queue=queue(), parent_id=parent)

        def check(run: Run) -> None:
            assert [coherent(j).status for j in (parent, child)] == [JobStatus.CANCELLED] * 2
            born = run.answers["enqueue"]
            assert not isinstance(born, uuid.UUID) or coherent(born).status == JobStatus.CANCELLED

        return Scene(
            {
                "enqueue": lambda: enqueue(queue=queue(), parent_id=child),
                "cancel": lambda: Job.objects.cancel(parent, actor="ada"),
            },
            check,
        )

    assert race.explore(scene).complete


def test_a_child_retried_while_its_parent_is_cancelled_does_not_outlive_it(race: Race) -> None:
    def scene() -> Scene:
        parent = enqueue(queue=queue())
        child = ended(enqueue(queue=queue(), parent_id=parent))
        seen = version(child)

        def check(run: Run) -> None:
            assert coherent(parent).status == JobStatus.CANCELLED
            retried = run.answers["retry"]
            assert retried == JobStatus.PENDING or retried.code == "PARENT_CANCELLED"
            expected = JobStatus.CANCELLED if retried == JobStatus.PENDING else JobStatus.FAILED
            assert coherent(child).status == expected

        return Scene(
            {
                "retry": lambda: Job.objects.retry(child, state_version=seen, **PERSON),
                "cancel": lambda: Job.objects.cancel(parent, actor="ada"),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["retry"]) == 2


def test_a_deadline_that_passes_during_a_cancel_leaves_one_ending(race: Race) -> None:
    def scene() -> Scene:
        job_id = enqueue(queue=queue(), deadline=30.0)

        def check(run: Run) -> None:
            job = coherent(job_id)
            assert len(history(job_id)) == 1
            if run.answers["recover"]:
                assert (job.status, job.error_code) == (JobStatus.FAILED, "JOB_DEADLINE_EXCEEDED")
                assert run.answers["cancel"].code == "ALREADY_ENDED"
            else:
                assert job.status in (JobStatus.CANCELLED, JobStatus.FAILED)

        return Scene(
            {
                "recover": lambda: Job.objects.recover(now=at(31)),
                "cancel": lambda: Job.objects.cancel(job_id, actor="ada", now=at(29)),
            },
            check,
        )

    assert race.explore(scene).complete


def test_of_two_who_take_a_case_at_once_one_has_it_and_only_that_take_is_in_the_audit(race: Race) -> None:
    def scene() -> Scene:
        case = matters.open_case(label=queue())
        told = AuditEntry.objects.filter(action="take", object_id=str(case.pk))
        people = [User.objects.create_superuser(f"taker-{queue()}") for _ in range(2)]

        def check(run: Run) -> None:
            codes = sorted(getattr(answer, "code", "") for answer in run.answers.values())
            assert codes == ["", "CASE_TAKEN"]
            case.refresh_from_db()
            assert [entry.actor for entry in told] == [case.owner]

        def take(who: User) -> Any:
            return lambda: casework.take(case.pk, actor=who)

        return Scene({"one": take(people[0]), "two": take(people[1])}, check)

    assert race.explore(scene).complete


def test_a_take_and_a_ruling_at_once_wait_for_each_other_and_both_are_in_the_audit(race: Race) -> None:
    def scene() -> Scene:
        case = matters.open_case(label=queue())
        told = AuditEntry.objects.filter(object_id=str(case.pk))
        ann, bob = (User.objects.create_superuser(f"ruler-{queue()}") for _ in range(2))
        view = cases.look(case.pk)

        def rule() -> Any:
            given: dict[str, Any] = {"reason_code": "other", "reason": "because", "snapshot": view.snapshot}
            return rulings.rule(case.pk, "happened", actor=ann, seen_version=view.case.version, **given)

        def check(run: Run) -> None:
            case.refresh_from_db()
            assert case.closed_as == "ruled"
            taken = "code" not in dir(run.answers["take"])
            assert sorted(told.values_list("action", flat=True)) == ["ruling_rule", *["take"] * taken]

        return Scene({"take": lambda: casework.take(case.pk, actor=bob), "rule": rule}, check)

    assert race.explore(scene).complete
