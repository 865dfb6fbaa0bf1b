"""Whatever a handler does, its job has a defined end, the end can be read, and the worker goes on."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.context import Fail, Retry
from jobs.status import AttemptStatus, JobStatus
from tests.worker.scene import Scene, attempts, kind, last, row

pytestmark = pytest.mark.django_db


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Leaves(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class PageGone(Fail):
    """Made without what ours are made with."""

    def __init__(self, page: int) -> None:
        self.page = page


MANY = ExceptionGroup("many", [ValueError("one"), Mute()])


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Own(BaseException):
    """None of Python's."""


def looped() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["self"] = found
    return found


def raises(error: BaseException) -> Any:
    def handler() -> None:
        raise error

    return handler


def returns(value: Any) -> Any:
    return lambda: value


def run_one(handler: Any) -> Any:
    """Run a job of `handler`, then a good one behind it: returns the first one's id."""
    scene = Scene(kinds=[kind(handler).name, kind(name="tests.good").name])
    bad = scene.enqueue(kind(handler))
    scene.step()
    good = scene.enqueue(kind(name="tests.good"))
    scene.step()
    assert row(good).status == JobStatus.SUCCEEDED
    assert not scene.worker.holdings
    return bad


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("boom"), "RUNTIME_HANDLER_EXCEPTION", "ValueError: boom"),
        (ValueError("a\0b\ud800c"), "RUNTIME_HANDLER_EXCEPTION", "ValueError: a\ufffdb\ufffdc"),
        (Mute(), "RUNTIME_HANDLER_EXCEPTION", "Mute: <Mute that cannot be shown as text>"),
        (Leaves(), "RUNTIME_HANDLER_EXCEPTION", "Leaves: <Leaves that cannot be shown as text>"),
        (MANY, "RUNTIME_HANDLER_EXCEPTION", "ExceptionGroup: many (2 sub-exceptions)"),
        (RecursionError("deep"), "RUNTIME_HANDLER_EXCEPTION", "RecursionError: deep"),
        (MemoryError(), "RUNTIME_HANDLER_EXCEPTION", "MemoryError"),
        (SystemExit(0), "RUNTIME_HANDLER_EXITED", "SystemExit: 0"),
        (KeyboardInterrupt(), "RUNTIME_HANDLER_EXITED", "KeyboardInterrupt"),
        (GeneratorExit(), "RUNTIME_HANDLER_EXITED", "GeneratorExit"),
        (Own("mine"), "RUNTIME_HANDLER_EXITED", "Own: mine"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)  # fmt: skip
def test_whatever_is_raised_fails_the_attempt_and_asks_for_another(
    error: BaseException, code: str, text: str
) -> None:
    bad = run_one(raises(error))
    assert row(bad).status == JobStatus.PENDING
    assert (last(bad).status, last(bad).error_code, last(bad).error_message) == (
        AttemptStatus.FAILED,
        code,
        text,
    )
    assert "Traceback" in last(bad).traceback
    assert "running.py" not in last(bad).traceback


@pytest.mark.parametrize("after", [10**400, 1e300, float("inf"), float("nan"), -1, True, "soon", None])
def test_a_retry_after_any_time_is_another_attempt_some_day(after: Any) -> None:
    bad = run_one(raises(Retry(after=after)))
    assert (row(bad).status, last(bad).error_code) == (JobStatus.PENDING, "RUNTIME_RETRY_REQUESTED")


def test_a_handlers_own_failure_that_lacks_a_code_fails_the_attempt_and_says_what_it_lacks() -> None:
    bad = run_one(raises(PageGone(3)))
    assert (row(bad).status, last(bad).error_code) == (JobStatus.PENDING, "RUNTIME_HANDLER_EXCEPTION")
    assert "'PageGone' object has no attribute 'code'" in last(bad).error_message
    assert "PageGone: 3" in last(bad).traceback


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        Unprintable(),
        {"deep": Unprintable()},
        float("nan"),
        float("inf"),
        10**400,
        2**53,
        looped(),
        "x" * 300_000,
        "nul \0",
        "lone \ud83d",
        {1: "key"},
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_that_cannot_be_stored_fails_the_job_for_good(value: Any) -> None:
    bad = run_one(returns(value))
    job = row(bad)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "RESULT_VALIDATION_FAILED")
    assert 0 < len(job.error_message) < 400
    assert len(attempts(bad)) == 1


def test_a_result_of_two_hundred_megabytes_is_refused_within_a_bound_of_time() -> None:
    bad = run_one(lambda: {"text": "x" * 200_000_000})
    assert row(bad).error_code == "RESULT_VALIDATION_FAILED"


def test_a_huge_error_text_is_cut_and_its_end_kept() -> None:
    bad = run_one(raises(ValueError("x" * 20_000_000 + " the end")))
    assert last(bad).error_message.endswith("the end")
    assert len(last(bad).error_message.encode()) <= 8192
    assert len(last(bad).traceback.encode()) <= 32768


def test_an_awaitable_from_a_plain_function_is_an_error_not_a_success() -> None:
    async def never() -> None: ...

    bad = run_one(lambda: never())
    assert "async def" in last(bad).error_message


def test_stored_arguments_that_no_longer_fit_fail_the_job_without_a_retry() -> None:
    scene = Scene(kinds=[kind(lambda source: source, name="tests.moved").name])
    moved = scene.enqueue(kind(lambda source: source, name="tests.moved"), {"source": "a"})
    kind(lambda path: path, name="tests.moved")
    scene = Scene(kinds=["tests.moved"])
    scene.step()
    assert (row(moved).status, row(moved).error_code) == (JobStatus.FAILED, "ARGUMENTS_VALIDATION_FAILED")
    assert "path" in row(moved).error_message


def test_a_type_error_inside_the_handler_is_not_blamed_on_the_arguments() -> None:
    bad = run_one(lambda: len(5))  # type: ignore[arg-type]
    assert last(bad).error_code == "RUNTIME_HANDLER_EXCEPTION"


def test_secrets_of_the_input_are_struck_from_error_and_traceback() -> None:
    def leak(password: str) -> None:
        raise ValueError(f"cannot log in with {password}")

    scene = Scene(kinds=[kind(leak).name])
    bad = scene.enqueue(kind(leak), {"password": "S3CR3T-S3CR3T"})
    scene.step()
    assert "S3CR3T" not in last(bad).error_message + last(bad).traceback
    assert "cannot log in" in last(bad).error_message


def test_a_failing_job_ends_after_exactly_its_attempts() -> None:
    scene = Scene(kinds=[kind(raises(ValueError("again")), max_attempts=3).name])
    bad = scene.enqueue(kind(raises(ValueError("again")), max_attempts=3))
    for _ in range(5):
        scene.step()
        scene.seconds += 4_000
    assert (row(bad).status, row(bad).error_code) == (JobStatus.FAILED, "RUNTIME_HANDLER_EXCEPTION")
    assert len(attempts(bad)) == 3
