"""What a handler may answer besides a result: Retry, Skip, Fail, Wait."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs.context import Fail, Retry, Skip, Wait
from jobs.retry import Backoff
from jobs.status import AttemptStatus, JobStatus
from tests.build import at
from tests.worker.scene import Scene, attempts, kind, last, row

pytestmark = pytest.mark.django_db


def answer(value: Any, **options: Any) -> tuple[Scene, Any]:
    """Run a job whose handler raises `value` if it is an exception and returns it otherwise."""

    def handler() -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    scene = Scene(kinds=[kind(handler, **options).name])
    job_id = scene.enqueue(kind(handler, **options))
    scene.step()
    return scene, job_id


def test_a_result_is_committed_as_canonical_json() -> None:
    _, job_id = answer({"b": 1, "a": [None, True]})
    assert row(job_id).status == JobStatus.SUCCEEDED
    assert last(job_id).result == '{"a":[null,true],"b":1}'
    assert row(job_id).result_commit_id == last(job_id).id


def test_retry_runs_the_job_again_after_the_seconds_asked_for_and_costs_an_attempt() -> None:
    scene, job_id = answer(Retry(after=30, message="not yet"), max_attempts=2)
    assert (row(job_id).status, row(job_id).next_attempt_at) == (JobStatus.PENDING, at(30))
    assert (last(job_id).error_code, last(job_id).error_message) == ("RUNTIME_RETRY_REQUESTED", "not yet")
    scene.seconds = 29.9
    assert scene.step() == 0
    scene.seconds = 30
    assert scene.step() == 1
    assert row(job_id).status == JobStatus.FAILED


def test_retry_without_seconds_uses_the_back_off_of_the_kind() -> None:
    _, job_id = answer(Retry(), backoff=Backoff(base=7, floor=7, cap=7))
    assert row(job_id).next_attempt_at == at(7)


@pytest.mark.parametrize("after", [float("nan"), float("inf"), -1, "soon", True])
def test_a_nonsense_delay_falls_back_to_the_back_off(after: Any) -> None:
    _, job_id = answer(Retry(after=after), backoff=Backoff(base=7, floor=7, cap=7))
    assert row(job_id).next_attempt_at == at(7)


def test_an_exception_waits_for_the_back_off_of_the_kind() -> None:
    _, job_id = answer(ValueError("x"), backoff=Backoff(base=7, floor=7, cap=7))
    assert row(job_id).next_attempt_at == at(7)


def test_skip_ends_the_job_as_skipped_with_its_code() -> None:
    _, job_id = answer(Skip("ALREADY_CONVERTED", "same digest"))
    assert (row(job_id).status, row(job_id).error_code) == (JobStatus.SKIPPED, "ALREADY_CONVERTED")
    assert row(job_id).error_message == "same digest"


def test_fail_with_a_content_code_is_not_retried() -> None:
    _, job_id = answer(Fail("HANDLER_CONTENT_FAILED", "binary file"))
    assert (row(job_id).status, row(job_id).error_message) == (JobStatus.FAILED, "binary file")


def test_fail_with_a_code_that_is_registered_as_retryable_is_retried() -> None:
    _, job_id = answer(Fail("RENDER_DEADLINE_EXCEEDED"))
    assert row(job_id).status == JobStatus.PENDING


@pytest.mark.parametrize("code", ["", "lower_case", "X" * 81, "A B", None, 5])
def test_a_badly_formed_code_never_reaches_the_column(code: Any) -> None:
    _, job_id = answer(Fail(code, "text"))
    assert row(job_id).error_code == "HANDLER_CONTENT_FAILED"
    assert "text" in row(job_id).error_message


@pytest.mark.parametrize(
    ("wait", "due"),
    [
        (Wait(seconds=60), at(60)),
        (Wait(until=at(90), reason="provider"), at(90)),
        (Wait(until=at(-5)), at(0)),
    ],
)
def test_wait_gives_the_lease_up_until_it_is_due_and_costs_no_attempt(wait: Wait, due: datetime) -> None:
    scene, job_id = answer(wait, max_attempts=1)
    job = row(job_id)
    assert (job.status, job.wait_reason, job.next_attempt_at) == (JobStatus.WAITING, wait.reason, due)
    assert last(job_id).status == AttemptStatus.WAITING
    assert job.attempts_used == 0
    scene.seconds = (due - at(0)) / timedelta(seconds=1)
    assert scene.step() == 1


def test_a_wait_for_approval_has_no_due_time() -> None:
    _, job_id = answer(Wait(reason="approval"))
    assert (row(job_id).status, row(job_id).next_attempt_at) == (JobStatus.WAITING, None)


@pytest.mark.parametrize(
    "wait",
    [
        Wait(),
        Wait(seconds=-1),
        Wait(seconds=float("nan")),
        Wait(seconds=5, reason="weather"),
        Wait(until=datetime(2026, 1, 1)),
    ],
)
def test_a_wait_that_makes_no_sense_fails_the_job_and_says_so(wait: Wait) -> None:
    _, job_id = answer(wait)
    assert (row(job_id).status, row(job_id).error_code) == (JobStatus.FAILED, "RESULT_VALIDATION_FAILED")
    assert row(job_id).error_message


def test_until_is_measured_on_the_clock_of_the_database_not_of_the_worker() -> None:
    def handler() -> Wait:
        scene.seconds += 10  # ten seconds pass while it runs, by every clock
        return Wait(until=at(100))

    scene = Scene(kinds=[kind(handler).name])
    job_id = scene.enqueue(kind(handler))
    scene.step()
    # The wall clock of this machine is years away from the database's instant given here.
    assert row(job_id).next_attempt_at == at(100)


def test_every_attempt_keeps_its_own_ending() -> None:
    answers = iter([ValueError("first"), Retry(after=1), Wait(seconds=1), None])

    def handler() -> Any:
        value = next(answers)
        if isinstance(value, BaseException):
            raise value
        return value

    scene = Scene(kinds=[kind(handler).name])
    job_id = scene.enqueue(kind(handler))
    for _ in range(4):
        scene.step()
        scene.seconds += 10
    assert [a.status for a in attempts(job_id)] == ["failed", "failed", "waiting", "committed"]
    assert [a.generation for a in attempts(job_id)] == [1, 2, 3, 4]
