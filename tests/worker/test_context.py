"""What a handler is given."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from jobs.context import Context
from jobs.models import Job
from jobs.status import JobStatus
from tests.build import at
from tests.worker.scene import Scene, kind, last, row

pytestmark = pytest.mark.django_db


def run(handler: Any, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
    """Run one job; `more` are options of the kind and of the enqueue."""
    declared = {name: more.pop(name) for name in ("timeout", "redact") if name in more}
    scene = Scene(kinds=[kind(handler, **declared).name])
    job_id = scene.enqueue(kind(handler, **declared), arguments, **more)
    scene.step()
    assert row(job_id).status == JobStatus.SUCCEEDED, row(job_id).error_message
    return job_id


def test_the_context_names_the_job_and_the_attempt() -> None:
    seen: list[Any] = []

    def handler(ctx: Context, n: int) -> None:
        seen.extend([ctx.job, ctx.attempt])

    job_id = run(handler, {"n": 1}, label="one", priority=5, max_attempts=7)
    job, attempt = seen
    assert (job.id, job.kind, job.queue, job.label) == (job_id, "tests.kind", "default", "one")
    assert (job.priority, job.revision, job.max_attempts, job.created_at) == (5, 1, 7, at(0))
    assert (attempt.id, attempt.generation, attempt.number) == (last(job_id).id, 1, 1)


def test_the_context_and_the_attempt_belong_to_the_trace_of_the_enqueue() -> None:
    seen: list[str] = []
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    job_id = run(lambda ctx: seen.append(ctx.traceparent), traceparent=trace)
    assert (seen, last(job_id).traceparent) == ([trace], trace)


def test_a_child_enqueued_by_the_handler_is_cancelled_with_its_parent() -> None:
    children: list[Any] = []

    def handler(ctx: Context) -> None:
        child = kind(name="tests.child").with_options(parent_id=ctx.job.id, delay=1000)
        children.append(child.enqueue().job_id)

    parent = run(handler)
    assert row(children[0]).parent_id == parent


def test_a_handler_without_ctx_gets_its_arguments_only() -> None:
    job_id = run(lambda a, b=2: [a, b], {"a": 1})
    assert last(job_id).result == "[1,2]"


def test_a_handler_with_open_keywords_gets_them_all() -> None:
    job_id = run(lambda **rest: rest, {"x": 1, "y": 2})
    assert last(job_id).result == '{"x":1,"y":2}'


def test_without_a_deadline_there_is_none() -> None:
    seen: list[Any] = []
    run(lambda ctx: seen.append(ctx.deadline))
    assert seen == [None]


def test_the_deadline_is_the_earlier_of_the_jobs_own_and_the_time_limit() -> None:
    seen: list[Any] = []
    run(lambda ctx: seen.append(ctx.deadline), deadline_at=at(50))
    run(lambda ctx: seen.append(ctx.deadline), deadline_at=at(50), timeout=20)
    run(lambda ctx: seen.append(ctx.deadline), deadline_at=at(10), timeout=20)
    assert seen == [at(50), at(20), at(10)]


def test_the_newest_log_lines_are_kept_and_the_missing_ones_counted() -> None:
    keep = settings.INTERLOCK["LOG_LINES"]

    def handler(ctx: Context) -> None:
        for n in range(keep + 5):
            ctx.log(f"line {n}")

    lines = last(run(handler)).log.splitlines()
    assert len(lines) == keep + 1
    assert "5 earlier lines" in lines[0]
    assert (lines[1], lines[-1]) == ("line 5", f"line {keep + 4}")


def test_a_log_line_is_cut_to_its_limit_and_cleaned() -> None:
    def handler(ctx: Context) -> None:
        ctx.log("x" * 10_000 + "\0 end")

    log = last(run(handler)).log
    assert len(log.encode()) <= settings.INTERLOCK["LOG_LINE_BYTES"]
    assert log.endswith("\ufffd end")


def test_secrets_of_the_input_never_reach_log_or_progress() -> None:
    def handler(ctx: Context, token: str, card: dict[str, str]) -> None:
        ctx.log(f"using {token} and {card['number']}")
        ctx.progress(1, 2, f"at {token}")

    job_id = run(handler, {"token": "S3CR3T-1", "card": {"number": "4111-2222"}}, redact=["card.number"])
    assert "S3CR3T" not in last(job_id).log + last(job_id).progress_note
    assert "4111" not in last(job_id).log
    assert "using" in last(job_id).log


def test_a_lone_surrogate_or_anything_that_has_no_text_can_be_logged() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

    def handler(ctx: Context) -> None:
        ctx.log("\ud83d")
        ctx.log(Mute())
        ctx.log("")

    assert len(last(run(handler)).log.split("\n")) == 3


@pytest.mark.parametrize("done", [2**63, float("inf"), float("nan"), "many", None])
def test_a_progress_that_is_no_whole_number_is_the_handlers_error(done: Any) -> None:
    def handler(ctx: Context) -> bool:
        try:
            ctx.progress(done)
        except (TypeError, ValueError, OverflowError):
            return True
        return done is None

    assert last(run(handler)).result == "true"


def test_a_file_of_an_attempt_lies_in_the_attempts_own_folder() -> None:
    job_id = run(lambda ctx: ctx.attempt_path("pages/1.html"))
    assert last(job_id).result == f'"attempts/{last(job_id).id.hex}/pages/1.html"'


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../other", "a/../b", "a//b", "a\\b", "a\0b", ".", "a/"])
def test_a_name_that_leads_out_of_the_attempts_folder_is_refused(name: str) -> None:
    def handler(ctx: Context) -> bool:
        with pytest.raises(ValueError, match="no name for a file"):
            ctx.attempt_path(name)
        return True

    run(handler)


def test_the_handler_can_enqueue_more_work_of_its_own_kind() -> None:
    def handler(n: int) -> None:
        if n:
            Job.objects.enqueue("tests.kind", {"n": n - 1}, now=at(0))

    scene = Scene(kinds=[kind(handler).name])
    scene.enqueue(kind(handler), {"n": 3})
    while scene.step():
        pass
    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 4
