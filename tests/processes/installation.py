"""A whole installation for one test: its own database, its own worker processes.

The processes are real ones, run as anybody would run them. Waiting is always for something to become true,
with an end; nothing is assumed to take a time.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connections
from django.db.models import QuerySet
from django.test import override_settings

from jobs import handlers
from jobs.handlers import Handler, Options
from jobs.models import Attempt, FenceRefusal, Job
from jobs.outcomes import Enqueued
from jobs.status import TERMINAL, JobStatus
from tests.processes.warm import ROOT, Forked, Warm, start_cold

PATIENCE = 90.0
"""Only a test that fails waits so long."""


class Trace(NamedTuple):
    """One line that a handler left."""

    job: uuid.UUID
    generation: int
    pid: int
    word: str


class WorkerProcess:
    """One `manage.py runworker`, with what it wrote."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked, log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait until it has ended and return its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end in {seconds:.0f} s\n{self.said}") from None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def children(self) -> list[int]:
        """The processes that it has started so far, in order; there are some with --processes only."""
        lines = [line for line in self.said.splitlines() if '"child started"' in line]
        return [json.loads(line)["pid"] for line in lines]

    def end(self) -> None:
        """Make sure that it and its children are gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for child in self.children:
            with suppress(ProcessLookupError):
                if os.getsid(child) == self.pid:  # and not somebody else by now
                    os.kill(child, signal.SIGKILL)


class Installation:
    """A database of its own (`alias`), a folder for traces, and the processes started in it."""

    def __init__(self, alias: str, url: str, folder: Path, warm: Warm) -> None:
        self.alias = alias
        self.url = url
        self.folder = folder
        self.warm = warm
        self.lease_seconds = 60
        """Of what is enqueued from now on. Long: only where a lease has to run out is it made short."""
        self.workers: list[WorkerProcess] = []
        self.jobs = Job.objects.db_manager(alias)

    # -- work --------------------------------------------------------------------------------------------

    @contextmanager
    def kinds(self) -> Iterator[None]:
        """Know the workers' kinds here too: an enqueue takes the budget from them."""
        from tests.processes.app import effects, kinds

        known = {
            kind.name: kind
            for module in (kinds, effects)
            for kind in vars(module).values()
            if isinstance(kind, Handler)
        }
        handlers._handlers.update(known)
        try:
            yield
        finally:
            handlers.forget(*known)

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def enqueue(self, kind: str, *, queue: str = "proc", **arguments: Any) -> uuid.UUID:
        """Add a job of one of tests/processes/app/kinds.py that leaves its traces where `traces` looks."""
        return self.enqueue_many(kind, 1, queue=queue, **arguments)[0]

    def enqueue_many(
        self, kind: str, count: int, *, queue: str = "proc", **arguments: Any
    ) -> list[uuid.UUID]:
        """Add `count` such jobs."""
        arguments = {"file": self.file("trace"), **arguments}
        with override_settings(INTERLOCK={**settings.INTERLOCK, "LEASE_SECONDS": self.lease_seconds}):
            answers = self.jobs.enqueue_many([(kind, arguments, Options(queue=queue))] * count)
        return [answer.job_id for answer in answers if isinstance(answer, Enqueued)]

    @property
    def gate(self) -> str:
        """The gate that proc.gate and proc.crowd wait at."""
        return self.file("gate")

    def open_gate(self, gate: str = "") -> None:
        Path(gate or self.gate).touch()

    def lengthen(self, *job_ids: uuid.UUID) -> None:
        """Have these jobs' next leases be long: only what a worker holds now, dead or asleep, runs out.

        Whoever takes a job over keeps it then, however long the machine stands still itself.
        """
        rows: QuerySet[Job] = QuerySet(Job, using=self.alias)  # a plain one, which writes
        assert rows.filter(pk__in=job_ids).update(lease_seconds=60) == len(job_ids)

    def raise_epoch(self) -> None:
        """Fence everybody: what a dead worker holds is over now, and its lease need not be waited for."""
        epoch = self.jobs.runtime.current_epoch()
        self.jobs.raise_epoch(expected=epoch, actor="test", reason="the worker is gone")

    # -- what is there -------------------------------------------------------------------------------------

    def job(self, job_id: uuid.UUID) -> Job:
        job: Job = Job.objects.using(self.alias).get(pk=job_id)
        return job

    def status(self, job_id: uuid.UUID) -> str:
        return self.job(job_id).status

    def statuses(self) -> dict[str, int]:
        """Return how many jobs are in each status."""
        return Counter(Job.objects.using(self.alias).values_list("status", flat=True))

    def all_ended(self) -> bool:
        return not Job.objects.using(self.alias).exclude(status__in=TERMINAL).exists()

    def attempts(self, job_id: uuid.UUID) -> list[Attempt]:
        return list(Attempt.objects.using(self.alias).filter(job_id=job_id).order_by("generation"))

    def refusals(self, job_id: uuid.UUID) -> list[tuple[str, str]]:
        rows = FenceRefusal.objects.using(self.alias).filter(job_id=job_id).order_by("id")
        return [(row.point, row.reason) for row in rows]

    def traces(self, job_id: uuid.UUID | None = None) -> list[Trace]:
        """Return the lines that handlers left, or those of one job."""
        found = [
            Trace(uuid.UUID(job), int(generation), int(pid), word)
            for job, generation, pid, word in map(str.split, self._trace_lines())
        ]
        return [line for line in found if job_id in (None, line.job)]

    def _trace_lines(self) -> list[str]:
        path = self.folder / "trace"
        return path.read_text().splitlines() if path.exists() else []

    def each_committed_once(self) -> bool:
        """Whether every job has succeeded by exactly one attempt, its last, and under growing generations."""
        jobs = Job.objects.using(self.alias).prefetch_related("attempts")
        return all(committed_once(job, list(job.attempts.all())) for job in jobs)

    # -- processes -----------------------------------------------------------------------------------------

    def start(
        self,
        *arguments: str,
        failpoints: str = "",
        shell: str = "",
        output: int | None = None,
        cold: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """Start `manage.py runworker` with `arguments`.

        `failpoints` as in jobs/failpoints.py; `shell` runs the command `"$0" "$@"`, from nothing as the two
        that follow; `output` is where stdout and stderr go instead of the log; `cold` is for what is said of
        the start itself. All others are started as tests/processes/warm.py says.
        """
        log = self.folder / f"worker-{len(self.workers)}.log"
        env = {**self._environment(), **(environment or {})}
        if failpoints:
            env = {"INTERLOCK_ALLOW_FAILPOINTS": "1", **env, "INTERLOCK_FAILPOINTS": failpoints}
        log.touch()
        words = ["runworker", *arguments]
        process: subprocess.Popen[bytes] | Forked
        if shell or output is not None or cold:
            with log.open("wb") as out:
                where = out if output is None else output
                process = start_cold(words, env, where, where, shell)
        else:
            process = self.warm.start(words, env, log)
        self.workers.append(WorkerProcess(process, log))
        return self.workers[-1]

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DATABASE_URL": self.url,
            "DATABASE_DIRECT_URL": "",
            "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
            "PYTHONPATH": str(ROOT),
            "INTERLOCK_LEASE_SECONDS": str(self.lease_seconds),
            "INTERLOCK_HEARTBEAT_SECONDS": "1",
            "LOG_LEVEL": "INFO",
            "LOG_FORMAT": "json",
        }

    def manage(self, *command: str, code: int = 0) -> str:
        """Run a command of `manage.py` as a person would, see how it ends, and return what it printed."""
        said, complained = (self.folder / f"{name}-{uuid.uuid4().hex}.log" for name in ("out", "errors"))
        ended = self.warm.start(command, self._environment(), said, complained).wait(PATIENCE)
        assert ended == code, said.read_text() + complained.read_text()
        return said.read_text()

    def drain(self, *arguments: str) -> None:
        """Run a worker until nothing is ready or running, and see that it ended well."""
        worker = self.start("--drain", *arguments)
        assert worker.wait() == 0, worker.said

    def until(self, happened: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait until `happened` is true; fails, with what the workers wrote, when it does not become so."""
        end, pause = time.monotonic() + seconds, threading.Event()
        while not happened():
            if time.monotonic() > end:
                logs = "\n".join(f"--- worker {n}\n{w.said[-3000:]}" for n, w in enumerate(self.workers))
                raise AssertionError(f"{what} did not happen in {seconds:.0f} s\n{logs}")
            pause.wait(0.05)

    def finish(self, *arguments: str) -> None:
        """Run a worker until every job has ended, those too that come due later."""
        worker = self.start(*arguments)
        self.until(self.all_ended, "the end of all jobs")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said

    def until_traces(self, count: int) -> None:
        """Wait until handlers have left that many lines."""
        self.until(lambda: len(self._trace_lines()) >= count, f"{count} traces")

    def until_begun(self, job_id: uuid.UUID) -> None:
        """Wait until a handler has begun with this job."""
        self.until(lambda: self.traces(job_id), "the handler's start")

    def until_succeeded(self, job_id: uuid.UUID) -> None:
        self.until(lambda: self.status(job_id) == JobStatus.SUCCEEDED, "the job's success")

    def until_stopped(self, worker: WorkerProcess) -> None:
        """Wait until a worker stands still by SIGSTOP."""
        self.until(lambda: state_of(worker.pid) == "T", "standing still")

    def is_writable(self) -> bool:
        """Whether nobody holds the lock that a database in a file has only one of.

        A process that stands still inside a transaction holds it for as long as it stands: such a database
        has nobody who could end the transaction, as a server does.
        """
        connection = connections[self.alias]
        if connection.features.has_select_for_update:
            return True
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0.2)) as other:
            try:
                other.execute("BEGIN IMMEDIATE").execute("ROLLBACK")
            except sqlite3.OperationalError:
                return False
        return True

    def reconnect(self) -> None:
        """Have our own next query open another connection: the old one may be dead."""
        connections[self.alias].close()

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.reconnect()


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does (T: stopped), or Z when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def generations_only_grow(attempts: Sequence[Attempt]) -> bool:
    numbers = [attempt.generation for attempt in sorted(attempts, key=lambda a: a.started_at)]
    return numbers == sorted(set(numbers))


def committed_once(job: Job, attempts: Sequence[Attempt]) -> bool:
    committed = [attempt for attempt in attempts if attempt.status == "committed"]
    return (
        job.status == JobStatus.SUCCEEDED
        and [attempt.pk for attempt in committed] == [job.result_commit_id]
        and committed[0].generation == max(attempt.generation for attempt in attempts)
        and not any(attempt.status == "running" for attempt in attempts)
        and generations_only_grow(attempts)
    )
