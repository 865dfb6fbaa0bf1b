"""Stopping: what finishes, what is given back, and what the exit code says."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from django.db import connection

from jobs import handlers
from jobs.context import Context
from jobs.models import Job
from jobs.models import Worker as WorkerRow
from jobs.status import AttemptStatus, JobStatus
from tests.worker.running import Running, enqueue, running, until, wait
from tests.worker.scene import kind, last, row

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize("option", ["once", "drain"])
def test_a_worker_that_knows_no_kind_has_nothing_to_wait_for(option: str) -> None:
    handlers.forget(*handlers.known_kinds())
    run = Running(**{option: True})
    run.start()
    assert run.join() == 0


def test_once_with_nothing_to_do_stops_too() -> None:
    run = Running(kinds=[kind().name], once=True)
    run.start()
    assert run.join() == 0


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
        until(lambda: not left.todo and len(run.worker.holdings) <= 1)
        assert Job.objects.filter(pk__in=ids, status=JobStatus.PENDING).count() == 4
        go.set()
        assert run.join() == 0


def test_a_claim_that_is_under_way_when_the_stop_comes_is_waited_for() -> None:
    """It used to be left behind, `running`, by a process that was gone."""
    asking = threading.Event()
    (job_id,) = enqueue(kind())
    run = Running(kinds=["tests.kind"])
    turn = run.worker.claims.turn

    def claim_late(*given: Any, **named: Any) -> Any:
        asking.set()
        wait(run.worker.stop.asked)
        return turn(*given, **named)

    run.worker.claims.turn = claim_late
    run.start()
    wait(asking)
    run.worker.stop.ask("SIGTERM")
    assert run.join() == 0
    assert row(job_id).status in (JobStatus.PENDING, JobStatus.SUCCEEDED)


def test_a_fenced_worker_stops_with_an_error() -> None:
    with running(kinds=[kind().name]) as run:
        until(WorkerRow.objects.filter(pk=run.worker.id).exists)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_worker SET fenced_at = started_at WHERE id = %s", [run.worker.id])
        assert run.join() == 1


IN_THE_MIDDLE_OF_A_WAIT = """
import os, signal
from jobs.worker.stop import Stop

stop = Stop()
stop.listen()
with stop.asked._cond:  # as a wait has it while it looks whether the event is set
    os.kill(os.getpid(), signal.SIGTERM)
    sum(range(100_000))  # the handler has run when this is done
assert stop.asked.wait(30)
print(stop.why)
"""


def test_a_signal_that_interrupts_the_wait_for_a_stop_does_not_wait_for_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_MIDDLE_OF_A_WAIT], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "SIGTERM\n", done.stderr
