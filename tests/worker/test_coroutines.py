"""Async handlers: many at a time on one thread, told and stopped like the others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jobs.context import Cancelled, Context
from jobs.models import Job
from jobs.status import JobStatus
from tests.worker.running import Running, enqueue, running, until, wait
from tests.worker.scene import kind, last, row

pytestmark = pytest.mark.django_db(transaction=True)


def test_many_coroutines_run_at_a_time_on_one_thread() -> None:
    threads: set[int] = set()
    inside = 0

    async def handler() -> None:
        nonlocal inside
        threads.add(threading.get_ident())
        inside += 1
        while inside < 20:  # each waits for all the others
            await asyncio.sleep(0)

    task = kind(handler)
    ids = enqueue(task, 20)
    run = Running(kinds=[task.name], drain=True, concurrency=20)
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED).count() == 20
    assert len(threads) == 1


def test_a_coroutine_runs_again_after_its_worker_was_lost() -> None:
    async def handler() -> str:
        return "again"

    task = kind(handler)
    (job_id,) = enqueue(task)
    assert Job.objects.claim_job(job_id, worker_id="gone")
    Job.objects.raise_epoch(expected=1, actor="ann", reason="it is gone")
    run = Running(kinds=[task.name], drain=True)
    run.start()
    assert run.join() == 0
    assert (row(job_id).status, row(job_id).error_message) == (JobStatus.SUCCEEDED, "")


def test_a_coroutine_past_its_limit_is_cancelled_at_its_await() -> None:
    ended = threading.Event()

    async def handler() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = kind(handler, timeout=0.05, max_attempts=1)
    (job_id,) = enqueue(task)
    with running(kinds=[task.name]):
        wait(ended)
        until(lambda: row(job_id).status == JobStatus.FAILED)
    assert row(job_id).error_code == "RUNTIME_HANDLER_TIMEOUT"


def test_a_coroutine_hears_of_a_cancel_at_its_checkpoint() -> None:
    started = threading.Event()
    heard: list[type] = []

    async def handler(ctx: Context) -> None:
        started.set()
        while True:
            try:
                ctx.checkpoint()
            except Cancelled:
                heard.append(Cancelled)
                raise
            await asyncio.sleep(0.01)

    task = kind(handler)
    (job_id,) = enqueue(task)
    with running(kinds=[task.name]) as run:
        wait(started)
        Job.objects.cancel(job_id, actor="ann")
        until(lambda: row(job_id).status == JobStatus.CANCELLED)
        run.worker.stop.ask()
        assert run.join() == 0
    assert heard == [Cancelled]


def test_plain_and_async_handlers_run_side_by_side() -> None:
    async def one() -> str:
        return "async"

    tasks = [kind(one, name="tests.async"), kind(lambda: "plain", name="tests.plain")]
    ids = [job_id for task in tasks for job_id in enqueue(task, 5)]
    run = Running(kinds=[task.name for task in tasks], drain=True)
    run.start()
    assert run.join() == 0
    assert {last(i).result for i in ids} == {'"async"', '"plain"'}


async def leaves() -> None:
    """Have a task of its own end the process, as a library's might."""

    async def task() -> None:
        raise SystemExit(3)

    await asyncio.gather(task(), asyncio.sleep(0))


async def stops_the_loop() -> None:
    asyncio.get_running_loop().stop()


@pytest.mark.parametrize(
    ("handler", "status", "code"),
    [
        (leaves, JobStatus.FAILED, "RUNTIME_HANDLER_EXITED"),
        (stops_the_loop, JobStatus.SUCCEEDED, ""),
    ],
)
def test_a_coroutine_that_ends_the_loop_ends_nobody_elses_job(handler: Any, status: str, code: str) -> None:
    begun = threading.Event()

    async def ends_it() -> None:
        begun.set()
        await handler()

    async def innocent() -> str:
        while not begun.is_set():  # so that it is under way when the loop ends
            await asyncio.sleep(0)
        return "done"

    bad, good = kind(ends_it, name="tests.bad", max_attempts=1), kind(innocent, name="tests.good")
    ids = [*enqueue(good, 3), *enqueue(bad), *enqueue(good, 3)]
    run = Running(kinds=[bad.name, good.name], drain=True)
    run.start()
    assert run.join() == 0
    ended = [(row(i).status, row(i).error_code) for i in ids]
    fine = [(JobStatus.SUCCEEDED, "")] * 3
    assert ended == [*fine, (status, code), *fine]
