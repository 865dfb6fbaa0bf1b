"""A database that goes away under a working worker: it recovers by itself, nothing is lost or done twice.

What needs a server to be stopped runs on one of its own, which keeps what it has promised (fsync is on).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from jobs.models import Attempt
from jobs.worker.stop import LEFT_RUNNING
from tests import pgtemp
from tests.processes.databases import Server, installed, migrated
from tests.processes.installation import Installation, WorkerProcess
from tests.processes.warm import Warm

pytestmark = pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database has no server"
)
JOBS = 300
Own = tuple[pgtemp.Server, Installation]


@pytest.fixture(scope="module")
def _server(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[pgtemp.Server, Server, str]]:
    promises = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    with django_db_blocker.unblock(), pgtemp.server(**promises) as postgres:
        where = {"HOST": str(postgres.base), "PORT": "", "USER": "postgres", "PASSWORD": ""}
        ground = Server({**connections.databases["default"], **where})
        with migrated(ground) as template:
            yield postgres, ground, template


@pytest.fixture
def own(
    _server: tuple[pgtemp.Server, Server, str], warm: Warm, django_db_blocker: Any, tmp_path: Path
) -> Iterator[Own]:
    """A server that may be stopped, and an installation on it."""
    postgres, ground, template = _server
    with django_db_blocker.unblock(), installed(ground, template, tmp_path, warm) as made:
        try:
            yield postgres, made
        finally:
            made.reconnect()
            if postgres.process is None:
                postgres.start()


def still_the_same(worker: WorkerProcess, installation: Installation) -> None:
    """See that the worker has lived through it, and stops as ever."""
    assert worker.process.poll() is None, worker.said
    assert {trace.pid for trace in installation.traces()} == {worker.pid}
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, worker.said


def test_a_restart_of_the_server_costs_no_attempt(own: Own) -> None:
    """All of them end while the server is away, and wait for it with their results."""
    postgres, installation = own
    installation.enqueue_many("proc.crowd", JOBS, gate=installation.gate)
    worker = installation.start("--concurrency", str(JOBS))
    installation.until_traces(JOBS)
    postgres.stop()
    installation.open_gate()
    installation.until(lambda: '"loop failed, goes on"' in worker.said, "the outage")
    postgres.start()
    installation.reconnect()
    installation.until(installation.all_ended, "the end of all jobs")
    assert installation.statuses() == {"succeeded": JOBS}
    assert installation.each_committed_once()
    assert set(Attempt.objects.using(installation.alias).values_list("generation", flat=True)) == {1}
    # It hears of new work too.
    installation.until_succeeded(installation.enqueue("proc.trace"))
    still_the_same(worker, installation)


def test_a_server_that_crashes_loses_nothing(own: Own) -> None:
    """Commits are under way: what became of them is found out, not guessed."""
    postgres, installation = own
    installation.enqueue_many("proc.trace", 3 * JOBS)
    worker = installation.start()
    installation.until_traces(1)
    postgres.kill()
    postgres.start()
    installation.reconnect()
    installation.raise_epoch()  # ends the claims whose answer never came; their leases need not be waited for
    installation.until(installation.all_ended, "the end of all jobs")
    assert installation.statuses() == {"succeeded": 3 * JOBS}
    assert installation.each_committed_once()
    still_the_same(worker, installation)


def test_connections_that_are_cut_again_and_again_lose_nothing(installation: Installation) -> None:
    installation.enqueue_many("proc.trace", 5 * JOBS)
    worker = installation.start()
    for cut in range(4):
        installation.until_traces(cut * JOBS + 1)
        installation.until(lambda: cut_connections(installation), "a connection to cut")
    installation.raise_epoch()
    installation.until(installation.all_ended, "the end of all jobs")
    assert installation.statuses() == {"succeeded": 5 * JOBS}
    assert installation.each_committed_once()
    still_the_same(worker, installation)


def test_a_listener_that_was_cut_off_listens_again(installation: Installation) -> None:
    worker = installation.start()
    installation.until(lambda: listeners(installation), "the first LISTEN")
    first = listeners(installation)
    run(installation, "SELECT pg_terminate_backend(%s)", first[0])
    # Whoever does not hear looks by himself now and then.
    installation.until_succeeded(installation.enqueue("proc.trace"))
    installation.until(lambda: set(listeners(installation)) - set(first), "another LISTEN")
    installation.until_succeeded(installation.enqueue("proc.trace"))
    still_the_same(worker, installation)


def test_connections_to_a_server_that_was_demoted_are_given_up(installation: Installation) -> None:
    """After a switch-over the old connections answer every read, and refuse every write."""
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    worker = installation.start()
    installation.until_begun(job_id)
    run(installation, f'ALTER DATABASE "{installation.alias}" SET default_transaction_read_only = on')
    cut_connections(installation)
    installation.until(lambda: "read-only transaction" in worker.said, "the refusal of a write")
    run(installation, f'ALTER DATABASE "{installation.alias}" RESET default_transaction_read_only')
    installation.reconnect()
    installation.open_gate()
    installation.until_succeeded(job_id)
    assert [a.generation for a in installation.attempts(job_id)] == [1]
    installation.until_succeeded(installation.enqueue("proc.trace"))
    still_the_same(worker, installation)


def test_a_stop_does_not_wait_for_a_server_that_is_away(own: Own) -> None:
    postgres, installation = own
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    worker = installation.start("--grace", "0")
    installation.until_begun(job_id)
    postgres.stop()
    worker.signal(signal.SIGTERM)
    assert worker.wait(60) == LEFT_RUNNING, worker.said
    postgres.start()
    installation.reconnect()
    # It could not give the job back; whoever comes next takes it.
    assert installation.status(job_id) == "running"
    installation.raise_epoch()
    installation.open_gate()
    installation.drain()
    assert [a.status for a in installation.attempts(job_id)] == ["lost", "committed"]


def test_a_stop_does_not_wait_for_a_server_that_hangs(own: Own) -> None:
    postgres, installation = own
    worker = installation.start("--grace", "0")
    installation.until_succeeded(installation.enqueue("proc.trace"))
    with hanging(postgres, installation):
        worker.signal(signal.SIGTERM)
        assert worker.wait(60) in (0, LEFT_RUNNING), worker.said


# -- what an administrator does ----------------------------------------------------------------------------


def run(installation: Installation, statement: str, *values: Any) -> list[Any]:
    """Run a statement beside the installation's own connections."""
    return Server(connections.databases[installation.alias]).run(statement, *values)


def cut_connections(installation: Installation) -> int:
    """End every connection to the database; returns how many there were."""
    installation.reconnect()
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    return len(run(installation, cut, installation.alias))


def listeners(installation: Installation) -> list[int]:
    """Return the server processes whose last statement was LISTEN."""
    found = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND query LIKE 'LISTEN%%'"
    return [pid for (pid,) in run(installation, found, installation.alias)]


@contextmanager
def hanging(postgres: pgtemp.Server, installation: Installation) -> Iterator[None]:
    """Have the server answer nobody for the length of the block, and cut no connection either."""
    assert postgres.process is not None
    busy = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
    pids = [pid for (pid,) in run(installation, busy, installation.alias)]
    pids.append(postgres.process.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
