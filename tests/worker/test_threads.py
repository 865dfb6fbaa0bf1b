"""The threaded worker: overlap, survival, and nothing left behind. Held by events, never by sleep."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, OperationalError, connection, connections, transaction

from jobs.context import Context, TimedOut
from jobs.models import Job
from jobs.status import JobStatus
from tests.worker.running import PATIENCE, Running, enqueue, running, until, wait
from tests.worker.scene import kind, last, put, row

pytestmark = pytest.mark.django_db(transaction=True)


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
        until(lambda: row(job_id).status == JobStatus.SUCCEEDED)
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
        until(lambda: row(job_id).status == JobStatus.FAILED)
        assert row(job_id).error_code == "RUNTIME_HANDLER_TIMEOUT"
        assert (run.worker.slots.occupied, run.worker.room()[0]) == (1, 0)
        # It lets go of the lease when it has its answer, which is after the row says so.
        until(lambda: not run.worker.holdings)
        go.set()
        wait(stopped)


def _in_a_block() -> None:
    transaction.atomic().__enter__()


def _without_autocommit() -> None:
    transaction.set_autocommit(False)


def _in_sql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")


def _in_sql_that_failed() -> None:
    _in_sql()
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("INSERT INTO auth_group (name) VALUES (NULL)")


@pytest.mark.parametrize("leave", [_in_a_block, _without_autocommit, _in_sql, _in_sql_that_failed])
def test_a_transaction_that_a_handler_left_open_does_not_reach_the_next_job(
    leave: Callable[[], None],
) -> None:
    def handler(first: bool) -> None:
        if first:
            leave()
            Group.objects.create(name="of the first")
        else:
            assert not connection.in_atomic_block
            Group.objects.create(name="of the second")

    def first_leaves(first: bool) -> None:
        with suppress(DatabaseError):
            handler(first)

    task = kind(first_leaves)
    run = Running(kinds=[task.name], drain=True, concurrency=1)
    Job.objects.enqueue_many([(task.name, {"first": first}, None) for first in (True, False)])
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 2
    assert [group.name for group in Group.objects.filter(name__startswith="of the")] == ["of the second"]


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


def test_a_handler_that_closed_its_connection_ends_while_the_database_is_away() -> None:
    def handler() -> str:
        connection.ensure_connection()
        connection.close()
        # From here on this thread finds no database.
        connection.settings_dict = connection.settings_dict | {"NAME": "/nowhere/at/all", "HOST": "/nowhere"}
        return "done"

    task = kind(handler)
    (job_id,) = enqueue(task)
    run = Running(kinds=[task.name], drain=True)
    run.start()
    assert run.join() == 0
    assert row(job_id).status == JobStatus.SUCCEEDED


def test_a_connection_that_cannot_be_tidied_keeps_no_ending_back() -> None:
    class Sour(Exception):
        pass

    def sour() -> None:
        raise Sour

    def handler() -> str:
        connection.ensure_connection()
        put(connection, "close_if_unusable_or_obsolete", sour)
        return "done"

    task = kind(handler)
    ids = enqueue(task, 2)
    run = Running(kinds=[task.name], drain=True, concurrency=1)
    run.start()
    assert run.join() == 0
    assert {row(job_id).status for job_id in ids} == {JobStatus.SUCCEEDED}


def test_a_machine_without_room_for_a_thread_runs_the_jobs_once_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused: list[str] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("handler-") and len(refused) < 6:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    async def also() -> str:
        return "async"

    tasks = [kind(lambda: "plain", name="tests.plain"), kind(also, name="tests.async")]
    ids = [job_id for task in tasks for job_id in enqueue(task, 3)]
    run = Running(kinds=[task.name for task in tasks], drain=True, concurrency=4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    run.start()
    assert run.join() == 0
    assert Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED).count() == 6
    assert set(refused) == {"handler-0"}
