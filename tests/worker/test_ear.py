"""Hearing of new jobs: without waiting for the poll, and never depending on what was heard."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.models import Job
from jobs.status import JobStatus
from jobs.worker import threads
from jobs.worker.ear import LogFile
from tests.worker.running import running, until, wait
from tests.worker.scene import kind, put, row

pytestmark = pytest.mark.django_db(transaction=True)

needs_listen = pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database sends no notifications"
)
needs_log_file = pytest.mark.skipif(
    connection.features.has_select_for_update, reason="this database keeps its log on another machine"
)
NEVER = 3600.0


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that would look for work by itself once in an hour."""
    monkeypatch.setattr(threads, "PROBE_SECONDS", NEVER)


def until_idle(run: Any) -> None:
    """Wait until the worker has found nothing and rests."""
    until(lambda: not run.worker.hungry and "claim" in run.worker.passed and listens(run))


def listens(run: Any) -> bool:
    listener = run.worker._listener
    return listener is None or listener.listening


def test_a_job_is_picked_up_without_waiting_for_the_poll(idle: None) -> None:
    ran = threading.Event()
    task = kind(ran.set)
    with running(kinds=[task.name]) as run:
        until_idle(run)
        task.enqueue()
        wait(ran)


def test_a_job_whose_transaction_is_rolled_back_wakes_nobody_and_one_that_commits_does(idle: None) -> None:
    ran = threading.Event()
    task = kind(ran.set)
    with running(kinds=[task.name]) as run:
        until_idle(run)
        with transaction.atomic():
            task.enqueue()
            transaction.set_rollback(True)
        assert not Job.objects.exists()
        with transaction.atomic():
            task.enqueue()
        wait(ran)


def test_what_was_never_announced_is_found_by_the_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.wake.after_commit", lambda *_: None)
    monkeypatch.setattr("jobs.worker.ear.LogFile.changed", lambda _: False)
    monkeypatch.setattr(threads, "PROBE_SECONDS", 0.05)
    ran = threading.Event()
    task = kind(ran.set)
    with running(kinds=[task.name]) as run:
        until_idle(run)
        task.enqueue()
        wait(ran)


def test_a_delayed_job_starts_when_it_is_due_and_not_at_the_next_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = threading.Event()
    task = kind(ran.set)
    Job.objects.enqueue(task.name, {}, options=task.with_options(delay=0.3).options)
    monkeypatch.setattr(threads, "PROBE_SECONDS", NEVER)
    with running(kinds=[task.name]):
        wait(ran)


@needs_listen
def test_after_the_listening_connection_was_killed_it_listens_again_and_catches_up(idle: None) -> None:
    ran = threading.Event()
    task = kind(ran.set)
    with running(kinds=[task.name]) as run:
        until_idle(run)
        heard = threading.Event()
        hear = run.worker._listener.heard  # type: ignore[union-attr]

        def listen(queue: str) -> None:
            heard.set()
            hear(queue)

        put(run.worker._listener, "heard", listen)
        with connection.cursor() as cursor:
            server_process = run.worker._listener.server_process  # type: ignore[union-attr]
            cursor.execute("SELECT pg_terminate_backend(%s)", [server_process])
            assert cursor.fetchone() == (True,)
        wait(heard)
        task.enqueue()
        wait(ran)


@needs_listen
def test_jobs_of_a_queue_that_is_not_served_do_not_wake_the_worker(idle: None) -> None:
    task = kind()
    with running(kinds=[task.name]) as run:
        until_idle(run)
        run.worker.heard("elsewhere")
        assert not run.worker.hungry
        run.worker.heard("default")
        assert run.worker.hungry


@needs_log_file
def test_the_log_file_tells_of_a_commit_and_of_nothing_else() -> None:
    kind().enqueue()
    file = LogFile("default")
    assert not file.changed()
    assert Job.objects.exists()
    assert not file.changed()
    kind().enqueue()
    assert file.changed()
    assert not file.changed()


@needs_log_file
def test_a_log_file_that_is_not_there_yet_is_no_error(tmp_path: Any) -> None:
    file = LogFile("default")
    file.path = tmp_path / "none-wal"
    file.changed()
    assert not file.changed()
    file.path.write_bytes(b"a page")
    assert file.changed()


def test_a_worker_stops_while_it_listens(idle: None) -> None:
    with running(kinds=[kind().name]) as run:
        until_idle(run)
        run.worker.stop.ask()
        assert run.join() == 0


def test_a_burst_is_worked_off_while_new_jobs_come_in(idle: None) -> None:
    task = kind(lambda: None)
    with running(kinds=[task.name]) as run:
        until_idle(run)
        ids = [task.enqueue().job_id for _ in range(50)]
        until(lambda: Job.objects.filter(pk__in=ids, status=JobStatus.SUCCEEDED).count() == 50)
    assert {row(i).attempt_count for i in ids} == {1}
