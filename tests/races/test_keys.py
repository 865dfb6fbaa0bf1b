"""Unique keys under contention: one job for a key, and nobody is given the id of a job that never was."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import transaction

from jobs.handlers import Options
from jobs.models import Job
from jobs.outcomes import Enqueued, KeyConflict
from jobs.status import JobStatus
from tests.build import KIND, T0, at, claim
from tests.races.ground import PERSON, coherent, ended, job_of, queue, version
from tests.races.interleave import Race, Run, Scene


class Undo(Exception):
    """The caller's own reason to roll back."""


def keyed(key: str, arguments: dict[str, Any] | None = None) -> Enqueued:
    return Job.objects.enqueue(KIND, arguments or {}, options=Options(unique_key=key), now=T0)


def undone(key: str) -> str:
    """Enqueue and roll back, as a caller whose own work failed."""
    try:
        with transaction.atomic():
            keyed(key)
            raise Undo
    except Undo:
        return "undone"


def test_nobody_is_answered_with_a_job_that_was_rolled_back(race: Race) -> None:
    def scene() -> Scene:
        key = queue()

        def check(run: Run) -> None:
            kept = Job.objects.get(unique_key=key)
            answers = [run.answers["one"], run.answers["two"]]
            assert [answer.job_id for answer in answers] == [kept.pk, kept.pk]
            assert sorted(answer.created for answer in answers) == [False, True]

        return Scene(
            {"undone": lambda: undone(key), "one": lambda: keyed(key), "two": lambda: keyed(key)}, check
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.waits or not race.rows_are_locked


def test_a_key_with_another_input_is_refused_whoever_comes_first(race: Race) -> None:
    def scene() -> Scene:
        key = queue()

        def check(run: Run) -> None:
            (created,) = [a for a in run.answers.values() if isinstance(a, Enqueued)]
            (refused,) = [a for a in run.answers.values() if isinstance(a, KeyConflict)]
            assert created.created
            assert refused.job_id == created.job_id == Job.objects.get(unique_key=key).pk

        return Scene({"one": lambda: keyed(key, {"n": 1}), "two": lambda: keyed(key, {"n": 2})}, check)

    assert race.explore(scene).complete


def test_batches_that_name_the_same_keys_in_opposite_order_both_land(race: Race) -> None:
    def scene() -> Scene:
        keys = [queue(), queue(), queue()]

        def batch(names: list[str]) -> Any:
            return Job.objects.enqueue_many([(KIND, {}, Options(unique_key=name)) for name in names], now=T0)

        def check(run: Run) -> None:
            one, two = run.answers["one"], run.answers["two"][::-1]
            assert [e.job_id for e in one] == [e.job_id for e in two]
            assert all(a.created != b.created for a, b in zip(one, two, strict=True))
            assert Job.objects.filter(unique_key__in=keys).count() == 3

        return Scene(
            {
                # Somebody else's key in the middle stops both half-way.
                "undone": lambda: undone(keys[1]),
                "one": lambda: batch(keys),
                "two": lambda: batch(keys[::-1]),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.retries == 0, "they never wait for each other in a circle"


def test_a_key_freed_by_its_holders_commit_goes_to_one_new_job_or_names_the_holder(race: Race) -> None:
    def scene() -> Scene:
        key = queue()
        lease = claim(uuid.UUID(str(keyed(key).job_id)), epoch=1)

        def check(run: Run) -> None:
            assert run.answers["commit"].landed
            assert coherent(job_of(lease)).status == JobStatus.SUCCEEDED
            answer = run.answers["enqueue"]
            assert answer.created == (answer.job_id != job_of(lease))
            assert Job.objects.filter(unique_key=key).count() == 1 + answer.created

        return Scene(
            {
                "commit": lambda: Job.objects.commit(lease, 1, now=at(1)),
                "enqueue": lambda: keyed(key),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete


@pytest.mark.parametrize("arguments", [{}, {"n": 2}])
def test_a_retry_and_an_enqueue_of_one_key_leave_one_unfinished_job(
    race: Race, arguments: dict[str, Any]
) -> None:
    def scene() -> Scene:
        key = queue()
        job_id = ended(uuid.UUID(str(keyed(key).job_id)))
        seen = version(job_id)

        def check(run: Run) -> None:
            coherent(job_id)
            retried, added = run.answers["retry"], run.answers["enqueue"]
            unfinished = Job.objects.get(unique_key=key, finished_at=None)
            if retried == JobStatus.PENDING:
                assert unfinished.pk == job_id
                assert added.job_id == job_id, "named, as the holder or as the same job"
            else:
                assert retried.code == "KEY_TAKEN"
                assert retried.params["job_id"] == str(added.job_id) == str(unfinished.pk)

        return Scene(
            {
                "retry": lambda: Job.objects.retry(job_id, state_version=seen, **PERSON),
                "enqueue": lambda: keyed(key, arguments),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.answers["retry"] == {"pending", "Refused KEY_TAKEN"}


def test_two_jobs_of_one_key_are_never_both_retried(race: Race) -> None:
    def scene() -> Scene:
        key = queue()
        jobs = [ended(uuid.UUID(str(keyed(key).job_id))) for _ in range(2)]
        seen = [version(job_id) for job_id in jobs]

        def retry(index: int) -> Any:
            return Job.objects.retry(jobs[index], state_version=seen[index], **PERSON)

        def check(run: Run) -> None:
            (refused,) = [a for a in run.answers.values() if a != JobStatus.PENDING]
            assert refused.code == "KEY_TAKEN"
            assert Job.objects.filter(unique_key=key, finished_at=None).count() == 1

        return Scene({"one": lambda: retry(0), "two": lambda: retry(1)}, check)

    assert race.explore(scene).complete
