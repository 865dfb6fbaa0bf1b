"""Endings on their way to the database: in groups, again after an outage, and each for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from jobs.manager import HOOKS
from jobs.models import Change
from jobs.outcomes import Outcome
from jobs.status import AttemptStatus, JobStatus
from tests.build import at, effect
from tests.worker.scene import Scene, attempts, kind, last, measured, put, row

pytestmark = pytest.mark.django_db


def finished(count: int, handler: Any = None, **options: Any) -> tuple[Scene, list[Any]]:
    """Claim and run `count` jobs; nothing is settled yet."""
    scene = Scene(kinds=[kind(handler, **options).name], concurrency=max(count, 1))
    ids = [scene.enqueue(kind(handler, **options)) for _ in range(count)]
    scene.claim()
    scene.run()
    return scene, ids


def failing(
    verb: Callable[..., list[Outcome]], *, after: bool, times: int = 1
) -> Callable[..., list[Outcome]]:
    """A connection that breaks before a verb reached the database, or after it had taken effect."""
    left = [OperationalError("connection lost") for _ in range(times)]

    def broken(*given: Any, **more: Any) -> list[Outcome]:
        if left and not after:
            raise left.pop()
        answer = verb(*given, **more)
        if left:
            raise left.pop()
        return answer

    return broken


def test_all_results_that_wait_are_committed_in_one_statement() -> None:
    scene, ids = finished(50, lambda: {"n": 1})
    assert scene.settle() == 50
    assert {row(i).status for i in ids} == {JobStatus.SUCCEEDED}
    assert Change.objects.filter(verb="commit").count() == 1


def test_a_lone_result_is_committed_at_once() -> None:
    scene, (job_id,) = finished(1)
    with CaptureQueriesContext(connection) as queries:
        assert scene.settle() == 1
    assert row(job_id).status == JobStatus.SUCCEEDED
    assert len(queries) < 12


def test_no_more_than_a_bounded_number_goes_into_one_transaction() -> None:
    scene, _ = finished(7)
    assert [scene.worker.endings.turn(now=scene.now, limit=3) for _ in range(4)] == [3, 3, 1, 0]


@pytest.mark.parametrize("after", [False, True], ids=["before it arrived", "after it landed"])
def test_a_commit_whose_answer_was_lost_is_sent_again_and_lands_once(after: bool) -> None:
    scene, (job_id,) = finished(1, lambda: 42)
    put(scene.worker.runtime, "commit", failing(scene.worker.runtime.commit, after=after))
    with pytest.raises(OperationalError):
        scene.settle()
    assert len(scene.worker.holdings) == 1, "its lease is still renewed"
    scene.settle()
    assert (row(job_id).status, last(job_id).result) == (JobStatus.SUCCEEDED, "42")
    assert (scene.worker.tally.committed, scene.worker.tally.lost) == (1, 0)
    assert Change.objects.filter(verb="commit").count() == 1


@pytest.mark.parametrize("after", [False, True], ids=["before it arrived", "after it landed"])
def test_a_failure_whose_answer_was_lost_is_sent_again_and_counts_once(after: bool) -> None:
    def boom() -> None:
        raise ValueError("boom")

    scene, (job_id,) = finished(1, boom)
    put(scene.worker.runtime, "end", failing(scene.worker.runtime.end, after=after))
    with pytest.raises(OperationalError):
        scene.settle()
    scene.settle()
    assert (row(job_id).status, row(job_id).attempts_used) == (JobStatus.PENDING, 1)
    assert len(attempts(job_id)) == 1
    assert not scene.worker.holdings


def test_during_an_outage_the_ending_is_kept_and_its_lease_renewed_at_the_same_generation() -> None:
    scene, (job_id,) = finished(1, lambda: "kept")
    put(scene.worker.runtime, "commit", failing(scene.worker.runtime.commit, after=False, times=3))
    for _ in range(3):
        scene.seconds += 40
        scene.renew()
        with pytest.raises(OperationalError):
            scene.settle()
    scene.settle()
    assert (row(job_id).status, last(job_id).generation) == (JobStatus.SUCCEEDED, 1)


def test_an_ending_is_given_up_once_its_lease_has_surely_ended() -> None:
    scene, (job_id,) = finished(1, lambda: "too late")
    scene.seconds = 60
    with CaptureQueriesContext(connection) as queries:
        assert scene.settle() == 0
    assert len(queries) == 0
    assert not scene.worker.holdings
    assert row(job_id).status == JobStatus.RUNNING


def test_one_ending_that_the_database_refuses_spoils_only_itself() -> None:
    scene, ids = finished(5)

    def callback(ended: Any) -> None:
        if ids[2].hex in ended:
            raise ValueError("a callback that cannot cope with this row")

    HOOKS.on_ended.append(callback)
    scene.settle()
    assert [row(i).status for i in ids] == [
        JobStatus.RUNNING if i == ids[2] else JobStatus.SUCCEEDED for i in ids
    ]
    assert not scene.worker.holdings, "after some tries its lease is let go"
    scene.seconds = 10
    scene.renew()
    assert row(ids[2]).lease_expires_at == at(60)


def test_a_callback_that_mends_itself_costs_nothing() -> None:
    scene, (job_id,) = finished(1)
    errors = iter([ValueError("once"), ValueError("twice")])

    def callback(ended: Any) -> None:
        for error in errors:
            raise error

    HOOKS.on_ended.append(callback)
    scene.settle()
    assert row(job_id).status == JobStatus.SUCCEEDED


def test_a_commit_refused_for_an_open_effect_leaves_the_job_uncertain() -> None:
    def handler() -> int:
        (held,) = scene.worker.holdings
        effect(held.lease, status="executing")
        return 1

    scene = Scene(kinds=[kind(handler).name])
    job_id = scene.enqueue(kind(handler))
    scene.step()
    assert row(job_id).status == JobStatus.UNCERTAIN
    assert not scene.worker.holdings


def test_results_and_other_endings_are_settled_in_the_same_turn() -> None:
    def handler(n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n

    scene = Scene(kinds=[kind(handler).name], concurrency=6)
    ids = [scene.enqueue(kind(handler), {"n": n}) for n in range(6)]
    scene.claim()
    scene.run()
    assert scene.worker.endings.turn(now=scene.now) == 6
    assert [row(i).status for i in ids] == [JobStatus.SUCCEEDED, JobStatus.PENDING] * 3


def test_a_stopping_worker_gives_unstarted_jobs_back_without_costing_an_attempt() -> None:
    scene = Scene(kinds=[kind().name], concurrency=3)
    ids = [scene.enqueue(kind(), max_attempts=1) for _ in range(3)]
    scene.claim()
    scene.worker.give_back(scene.worker.slots.take_back(), "the worker stopped")
    scene.settle()
    for job_id in ids:
        assert (row(job_id).status, row(job_id).attempts_used) == (JobStatus.PENDING, 0)
        assert (last(job_id).status, last(job_id).error_code) == (
            AttemptStatus.RELEASED,
            "WORKER_LEASE_RELEASED",
        )
    assert Scene(kinds=[kind().name]).step() == 3


def test_the_time_from_due_to_commit_is_measured_by_kind() -> None:
    def handler() -> None:
        scene.seconds += 2

    scene = Scene(kinds=[kind(handler).name])
    scene.enqueue(kind(handler))
    scene.seconds = 3
    scene.step()
    (minute,) = measured("due_to_commit").exclude(queue="")
    assert (minute.kind, minute.count, minute.total) == ("tests.kind", 1, pytest.approx(5000))


def test_progress_told_just_before_the_end_is_kept() -> None:
    def handler(ctx: Any) -> None:
        ctx.progress(3, 3, "done")

    scene, (job_id,) = finished(1, handler)
    scene.settle()
    attempt = last(job_id)
    assert (attempt.progress_done, attempt.progress_total, attempt.progress_note) == (3, 3, "done")
