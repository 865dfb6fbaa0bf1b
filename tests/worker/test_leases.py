"""Cancel, loss and limits: what a running handler learns, and what of its work still counts."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.context import Cancelled, Context, LeaseLost, TimedOut
from jobs.models import FenceRefusal, Job
from jobs.status import AttemptStatus, JobStatus
from tests.build import at
from tests.worker.scene import Scene, attempts, kind, last, measured, put, row

pytestmark = pytest.mark.django_db


def scene_of(handler: Any, **options: Any) -> tuple[Scene, Any]:
    scene = Scene(kinds=[kind(handler, **options).name])
    return scene, scene.enqueue(kind(handler, **options))


def discarded() -> float:
    return float(sum(measured("discarded_seconds").values_list("total", flat=True)))


def test_a_cancel_is_seen_at_the_checkpoint_after_the_next_beat() -> None:
    seen: list[str] = []

    def handler(ctx: Context) -> None:
        Job.objects.cancel(job_id, actor="ann", now=scene.now)
        ctx.checkpoint()
        seen.append("not told yet")
        scene.renew()
        ctx.checkpoint()
        seen.append("not reached")

    scene, job_id = scene_of(handler)
    scene.step()
    assert seen == ["not told yet"]
    assert row(job_id).status == JobStatus.CANCELLED
    assert last(job_id).status == AttemptStatus.CANCELLED


def test_a_broad_except_does_not_swallow_a_cancel() -> None:
    def handler(ctx: Context) -> None:
        Job.objects.cancel(job_id, actor="ann", now=scene.now)
        scene.renew()
        while True:
            try:
                ctx.checkpoint()
            except Exception:  # noqa: BLE001
                continue

    scene, job_id = scene_of(handler)
    scene.step()
    assert row(job_id).status == JobStatus.CANCELLED


def test_a_handler_on_its_way_to_a_safe_point_keeps_its_lease_after_a_cancel() -> None:
    def handler(ctx: Context) -> None:
        Job.objects.cancel(job_id, actor="ann", now=scene.now)
        for _ in range(10):
            scene.renew()
            scene.renew()
            scene.seconds += 30
        assert row(job_id).status == JobStatus.RUNNING
        with pytest.raises(Cancelled):
            ctx.checkpoint()
        raise Cancelled

    scene, job_id = scene_of(handler)
    scene.step()
    assert (row(job_id).status, len(attempts(job_id))) == (JobStatus.CANCELLED, 1)


def test_a_result_that_comes_after_a_cancel_request_is_not_committed() -> None:
    def handler() -> int:
        Job.objects.cancel(job_id, actor="ann", now=scene.now)
        return 1

    scene, job_id = scene_of(handler)
    scene.step()
    assert row(job_id).status == JobStatus.CANCELLED
    assert last(job_id).result is None


def test_a_failure_after_a_cancel_request_is_a_cancel_not_a_retry() -> None:
    def handler() -> int:
        Job.objects.cancel(job_id, actor="ann", now=scene.now)
        raise ValueError("stopped in the middle")

    scene, job_id = scene_of(handler)
    scene.step()
    assert row(job_id).status == JobStatus.CANCELLED


def test_a_revised_input_releases_the_attempt_excused_and_runs_the_job_anew() -> None:
    inputs: list[int] = []

    def handler(n: int) -> int:
        inputs.append(n)
        if n == 1:
            version = row(job_id).state_version
            Job.objects.revise(
                job_id, {"n": 2}, state_version=version, actor="ann", reason="typo", now=scene.now
            )
        return n

    scene = Scene(kinds=[kind(handler, max_attempts=1).name])
    job_id = scene.enqueue(kind(handler, max_attempts=1), {"n": 1})
    scene.step()
    assert (row(job_id).status, row(job_id).attempts_used) == (JobStatus.PENDING, 0)
    assert last(job_id).status == AttemptStatus.RELEASED
    scene.step()
    assert inputs == [1, 2]
    assert (row(job_id).status, last(job_id).result) == (JobStatus.SUCCEEDED, "2")


def test_a_job_put_on_hold_while_it_runs_is_given_back_and_waits_for_the_hold_to_be_lifted() -> None:
    def handler() -> int:
        Job.objects.hold(job_id, actor="ann", reason="look first", now=scene.now)
        return 1

    scene, job_id = scene_of(handler)
    scene.step()
    assert (row(job_id).status, last(job_id).status) == (JobStatus.PENDING, AttemptStatus.RELEASED)
    assert scene.step() == 0


def test_a_lost_lease_is_told_at_the_checkpoint_and_nothing_of_it_is_committed() -> None:
    def handler(ctx: Context) -> str:
        scene.seconds += 61
        Job.objects.recover(now=scene.now)
        with pytest.raises(LeaseLost):
            ctx.checkpoint()
        return "late"

    scene, job_id = scene_of(handler)
    scene.step()
    assert (row(job_id).status, last(job_id).status) == (JobStatus.PENDING, AttemptStatus.LOST)
    assert last(job_id).result is None
    assert discarded() == pytest.approx(61)
    assert scene.worker.tally.lost == 1


def test_the_beat_tells_a_handler_that_its_lease_was_taken_away() -> None:
    told: list[str] = []

    def handler(ctx: Context) -> None:
        job = row(job_id)
        Job.objects.force_cancel(
            job_id, state_version=job.state_version, actor="ann", reason="stuck", now=scene.now
        )
        scene.renew()
        try:
            ctx.checkpoint()
        except LeaseLost as lost:
            told.append(str(lost))
            raise

    scene, job_id = scene_of(handler)
    scene.step()
    assert told == ["GENERATION"]
    assert row(job_id).status == JobStatus.CANCELLED


def test_an_epoch_raised_meanwhile_refuses_the_commit_and_the_worker_claims_under_the_new_one() -> None:
    runs: list[int] = []

    def handler(ctx: Context) -> int:
        runs.append(ctx.attempt.generation)
        if len(runs) == 1:
            Job.objects.raise_epoch(expected=1, actor="ann", reason="drill", now=scene.now)
        return len(runs)

    scene, job_id = scene_of(handler, max_attempts=1)
    scene.step()
    assert row(job_id).status == JobStatus.RUNNING
    scene.step()
    assert scene.worker.claims.epoch == 2
    assert (row(job_id).status, last(job_id).result) == (JobStatus.SUCCEEDED, "2")
    assert [a.status for a in attempts(job_id)] == ["lost", "committed"]


def test_a_raised_epoch_is_told_to_the_handlers_of_older_claims() -> None:
    def handler(ctx: Context) -> None:
        Job.objects.raise_epoch(expected=1, actor="ann", reason="drill", now=scene.now)
        ctx.checkpoint()
        scene.worker.attend(now=scene.now)
        with pytest.raises(LeaseLost, match="EPOCH"):
            ctx.checkpoint()

    scene, _ = scene_of(handler)
    scene.step()


def test_the_checkpoint_knows_without_asking_that_the_lease_has_surely_ended() -> None:
    def handler(ctx: Context) -> None:
        scene.seconds += 59.9
        ctx.checkpoint()
        scene.seconds += 0.1
        with pytest.raises(LeaseLost, match="LEASE_EXPIRED"):
            ctx.checkpoint()

    scene, _ = scene_of(handler)
    scene.step()


def test_after_its_own_deadline_the_worker_sends_no_commit_even_if_the_database_would_take_it() -> None:
    """The lease in the database is still good here: only the worker's own clock says that it is over."""

    def handler() -> int:
        (held,) = scene.worker.holdings
        held.surely_ends -= 60
        return 1

    scene, job_id = scene_of(handler)
    scene.step()
    assert row(job_id).status == JobStatus.RUNNING
    assert row(job_id).lease_expires_at == at(60)
    assert not FenceRefusal.objects.exists()  # it was not even asked
    assert not scene.worker.holdings


def test_the_worker_counts_its_lease_from_before_the_claim_was_sent() -> None:
    scene, _ = scene_of(lambda: None)
    slow_claim = scene.worker.runtime.claim

    def claim(**options: Any) -> Any:
        leases = slow_claim(**options)
        scene.seconds += 5  # the answer took its time
        return leases

    put(scene.worker.claims.runtime, "claim", claim)
    scene.claim()
    (held,) = scene.worker.holdings
    assert held.surely_ends == 1_000 + 60


def test_a_lease_cut_by_a_deadline_ends_for_the_worker_too() -> None:
    scene = Scene(kinds=[kind().name])
    scene.enqueue(kind(), deadline_at=at(20))
    scene.claim()
    (held,) = scene.worker.holdings
    assert held.surely_ends == 1_000 + 20
    scene.seconds = 10
    scene.renew()
    assert held.surely_ends == 1_000 + 20


def test_a_handler_past_its_time_limit_is_stopped_at_its_checkpoint_and_retried() -> None:
    def handler(ctx: Context) -> None:
        scene.seconds += 3
        ctx.checkpoint()

    scene, job_id = scene_of(handler, timeout=3)
    scene.step()
    assert (row(job_id).status, last(job_id).error_code) == (JobStatus.PENDING, "RUNTIME_HANDLER_TIMEOUT")


def test_an_attempt_ended_by_its_time_limit_commits_nothing_when_its_code_returns() -> None:
    def handler(ctx: Context) -> str:
        scene.seconds += 3
        scene.worker.watch_limits()
        scene.settle()
        assert row(job_id).status == JobStatus.FAILED
        with pytest.raises(TimedOut):
            ctx.checkpoint()
        return "too late"

    scene, job_id = scene_of(handler, timeout=3, max_attempts=1)
    scene.step()
    assert (row(job_id).status, row(job_id).error_code) == (JobStatus.FAILED, "RUNTIME_HANDLER_TIMEOUT")
    assert last(job_id).result is None
    assert scene.worker.tally.committed == 0
    assert not FenceRefusal.objects.exists(), "what came too late was not even sent"
