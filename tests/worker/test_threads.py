"""The threaded worker: overlap, survival, and nothing left behind. Held by events, never by sleep."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from jobs.context import Cancelled, Context, TimedOut
from jobs.models import Job
from jobs.models import Worker as WorkerRow
from jobs.status import AttemptStatus, JobStatus
from tests.worker.running import PATIENCE, Running, running, wait
from tests.worker.scene import kind, last, put, row

pytestmark = pytest.mark.django_db(transaction=True)


def enqueue(handler: Any, count: int = 1, **arguments: Any) -> list[Any]:
    return [e.job_id for e in Job.objects.enqueue_many([(handler.name, arguments, None)] * count)]


def test_drain_runs_everything_that_is_ready_and_stops_by_itself() -> None:
    ids = enqueue(kind(lambda: 1), 300)
    run = Running(kinds=["tests.kind"], drain=True)
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED).count() == 300
    stopped = WorkerRow.objects.get(pk=run.worker.id)
    assert (stopped.running, stopped.stopped_at is not None) == (0, True)


def test_once_makes_one_claim_runs_it_and_stops() -> None:
    enqueue(kind(), 10)
    run = Running(kinds=["tests.kind"], once=True, concurrency=3)
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 3


def test_once_with_nothing_to_do_stops_too() -> None:
    run = Running(kinds=[kind().name], once=True)
    run.start()
    assert run.join() == 0


def test_as_many_handlers_run_at_a_time_as_there_are_slots() -> None:
    together = threading.Barrier(4)
    handler = kind(lambda: together.wait(PATIENCE) and None)
    ids = enqueue(handler, 8)
    run = Running(kinds=[handler.name], drain=True)
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED).count() == 8


def test_a_quick_kind_that_suddenly_blocks_does_not_keep_the_other_slots_from_working() -> None:
    blocked, others, go = threading.Event(), threading.Semaphore(0), threading.Event()

    def handler(n: int) -> None:
        if n == 0:
            blocked.set()
            wait(go)
        else:
            others.release()

    task = kind(handler)
    with running(kinds=[task.name]) as run:
        for _ in range(10):
            run.worker.pace.note(task.name, 0.000_01)
        Job.objects.enqueue_many([(task.name, {"n": n}, None) for n in range(20)])
        run.worker.heard("default")
        wait(blocked)
        for _ in range(19):
            assert others.acquire(timeout=PATIENCE)
        go.set()


def test_a_handler_that_blocks_does_not_keep_its_lease_from_being_renewed(settings: Any) -> None:
    settings.INTERLOCK = settings.INTERLOCK | {"HEARTBEAT_SECONDS": 1, "LEASE_SECONDS": 3}
    renewed = threading.Event()
    handler = kind(lambda: wait(renewed))
    run = Running(kinds=[handler.name], drain=True)
    hear, beats = run.worker.beat._hear, []

    def heard(*given: Any) -> bool:
        beats.append(hear(*given))
        if len(beats) == 5:  # two and more leases long
            renewed.set()
        return beats[-1]

    put(run.worker.beat, "_hear", heard)
    (job_id,) = enqueue(handler)
    run.start()
    assert run.join() == 0
    assert (row(job_id).status, last(job_id).generation) == (JobStatus.SUCCEEDED, 1)


def test_a_stop_lets_the_running_job_finish_and_commits_its_result() -> None:
    started, go = threading.Event(), threading.Event()

    def handler() -> str:
        started.set()
        wait(go)
        return "finished"

    (job_id,) = enqueue(kind(handler))
    with running(kinds=["tests.kind"]) as run:
        wait(started)
        run.worker.stop.ask("SIGTERM")
        enqueue(kind(handler))
        go.set()
        assert run.join() == 0
    assert (row(job_id).status, last(job_id).result) == (JobStatus.SUCCEEDED, '"finished"')
    assert Job.objects.filter(status=JobStatus.PENDING).count() == 1, "nothing is claimed after the stop"


def test_what_outlives_the_grace_is_given_back_unharmed_and_the_exit_code_says_so() -> None:
    started, go, over = threading.Event(), threading.Event(), threading.Event()

    def handler() -> str:
        started.set()
        try:
            wait(go)
            return "too late"
        finally:
            over.set()

    (job_id,) = enqueue(kind(handler))
    with running(kinds=["tests.kind"], grace=0.0) as run:
        wait(started)
        run.worker.stop.ask("SIGTERM")
        assert run.join() == 75
        job = row(job_id)
        assert (job.status, job.attempts_used) == (JobStatus.PENDING, 0)
        assert (last(job_id).status, last(job_id).error_code) == (
            AttemptStatus.RELEASED,
            "WORKER_LEASE_RELEASED",
        )
        go.set()
        wait(over)
    assert last(job_id).result is None


def test_a_second_signal_ends_the_grace() -> None:
    started, go = threading.Event(), threading.Event()

    def handler() -> None:
        started.set()
        wait(go)

    (job_id,) = enqueue(kind(handler))
    with running(kinds=["tests.kind"], grace=3600.0) as run:
        wait(started)
        run.worker.stop.ask("SIGTERM")
        run.worker.stop.ask("SIGTERM")
        assert run.join() == 75
        assert row(job_id).status == JobStatus.PENDING
        go.set()


def test_a_cancel_is_told_while_the_worker_is_stopping() -> None:
    started, stopping = threading.Event(), threading.Event()

    def handler(ctx: Context) -> None:
        started.set()
        wait(stopping)
        while True:
            ctx.checkpoint()
            threading.Event().wait(0.01)

    (job_id,) = enqueue(kind(handler))
    with running(kinds=["tests.kind"], grace=3600.0) as run:
        wait(started)
        run.worker.stop.ask("SIGTERM")
        Job.objects.cancel(job_id, actor="ann")
        stopping.set()
        assert run.join() == 0
    assert row(job_id).status == JobStatus.CANCELLED


def test_jobs_that_no_handler_has_begun_are_given_back_at_once_when_stopping() -> None:
    started, go = threading.Event(), threading.Event()

    def handler() -> None:
        started.set()
        wait(go)

    task = kind(handler)
    with running(kinds=[task.name], concurrency=1) as run:
        for _ in range(20):
            run.worker.pace.note("other", 0.01)  # lets it claim ahead
        ids = enqueue(task, 5)
        wait(started)
        run.worker.stop.ask("SIGTERM")
        left = run.worker.slots
        while left.todo or len(run.worker.holdings) > 1:
            threading.Event().wait(0.01)
        assert Job.objects.filter(pk__in=ids, status=JobStatus.PENDING).count() == 4
        go.set()
        assert run.join() == 0


@pytest.mark.parametrize("error", [OperationalError("gone"), KeyError("bug"), MemoryError()], ids=type)
@pytest.mark.parametrize("loop", ["attend", "claim", "settle", "beat"])
def test_no_error_ends_a_loop(loop: str, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    run = Running(kinds=[kind().name])
    worker = run.worker
    place: tuple[Any, str] = {
        "attend": (worker, "attend"),
        "claim": (worker.claims, "turn"),
        "settle": (worker.endings, "turn"),
        "beat": (worker.beat, "turn"),
    }[loop]
    good, left, recovered = getattr(*place), [error, error], threading.Event()

    def broken(*given: Any, **more: Any) -> Any:
        if left:
            raise left.pop()
        recovered.set()
        return good(*given, **more)

    setattr(*place, broken)
    (job_id,) = enqueue(kind())
    with caplog.at_level(logging.ERROR):
        run.start()
        wait(recovered)
        while row(job_id).status != JobStatus.SUCCEEDED:
            threading.Event().wait(0.01)
        worker.stop.ask()
        assert run.join() == 0
    told = [record for record in caplog.records if record.message == "loop failed, goes on"]
    assert len(told) == 1, "said once, not each time"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_ends_all_the_same_ends_the_process_with_an_error() -> None:
    run = Running(kinds=[kind().name])
    put(run.worker.beat, "turn", lambda: (_ for _ in ()).throw(SystemExit))
    run.start()
    assert run.join() == 1


def test_a_fenced_worker_stops_with_an_error() -> None:
    with running(kinds=[kind().name]) as run:
        while not WorkerRow.objects.filter(pk=run.worker.id).exists():
            threading.Event().wait(0.01)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_worker SET fenced_at = started_at WHERE id = %s", [run.worker.id])
        assert run.join() == 1


def test_a_handler_past_its_limit_is_failed_while_its_code_runs_and_keeps_its_slot() -> None:
    go, stopped = threading.Event(), threading.Event()

    def handler(ctx: Context) -> None:
        wait(go)
        try:
            ctx.checkpoint()
        except TimedOut:
            stopped.set()
            raise

    task = kind(handler, timeout=0.05, max_attempts=1)
    (job_id,) = enqueue(task)
    with running(kinds=[task.name], concurrency=1) as run:
        while row(job_id).status != JobStatus.FAILED:
            threading.Event().wait(0.01)
        assert row(job_id).error_code == "RUNTIME_HANDLER_TIMEOUT"
        assert (run.worker.slots.occupied, run.worker.room()[0]) == (1, 0)
        assert not run.worker.holdings
        go.set()
        wait(stopped)


def test_a_transaction_that_a_handler_left_open_does_not_reach_the_next_job() -> None:
    seen: list[bool] = []

    def handler(leave: bool) -> None:
        if leave:
            transaction.atomic().__enter__()
            Job.objects.exists()
        else:
            seen.append(connection.in_atomic_block)

    task = kind(handler)
    run = Running(kinds=[task.name], drain=True, concurrency=1)
    Job.objects.enqueue_many([(task.name, {"leave": leave}, None) for leave in (True, False)])
    run.start()
    assert run.join() == 0
    assert seen == [False]
    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 2


def test_each_handler_thread_keeps_one_connection_for_all_its_jobs() -> None:
    used: set[int] = set()

    def handler() -> None:
        Job.objects.exists()
        used.add(id(connections["default"].connection))

    task = kind(handler)
    enqueue(task, 60)
    run = Running(kinds=[task.name], drain=True, concurrency=3)
    run.start()
    assert run.join() == 0
    assert 1 <= len(used) <= 3


def test_many_coroutines_run_at_a_time_on_one_thread() -> None:
    import asyncio

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


def test_a_coroutine_past_its_limit_is_cancelled_at_its_await() -> None:
    import asyncio

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
        while row(job_id).status != JobStatus.FAILED:
            threading.Event().wait(0.01)
    assert row(job_id).error_code == "RUNTIME_HANDLER_TIMEOUT"


def test_a_coroutine_hears_of_a_cancel_at_its_checkpoint() -> None:
    import asyncio

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
        while row(job_id).status != JobStatus.CANCELLED:
            threading.Event().wait(0.01)
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
