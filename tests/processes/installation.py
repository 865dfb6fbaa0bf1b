"""A whole installation for one test: its own database, its own worker processes.

The processes are real ones, run as anybody would run them. Waiting is always for something to become true,
with an end; nothing is assumed to take a time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.db import connections

from jobs.handlers import Options
from jobs.models import Attempt, FenceRefusal, Job

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class WorkerProcess:
    """One `manage.py runworker`, with what it wrote."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait until it has ended and return its exit code."""
        return self.process.wait(seconds)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Installation:
    """A database of its own (`alias`), a folder for traces, and the processes started in it."""

    def __init__(self, alias: str, url: str, folder: Path) -> None:
        self.alias = alias
        self.url = url
        self.folder = folder
        self.workers: list[WorkerProcess] = []
        self.jobs = Job.objects.db_manager(alias)

    # -- work --------------------------------------------------------------------------------------------

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def enqueue(self, kind: str, *, queue: str = "proc", **arguments: Any) -> uuid.UUID:
        """Add a job of one of tests/processes/app/kinds.py; `options` are those of an enqueue."""
        options: dict[str, Any] = arguments.pop("options", {})
        defaults = {"proc.kill": 3, "proc.busy": 1}
        options.setdefault("max_attempts", defaults.get(kind, 5))
        return self.jobs.enqueue(kind, arguments, options=Options(queue=queue, **options)).job_id

    def job(self, job_id: uuid.UUID) -> Job:
        return Job.objects.using(self.alias).get(pk=job_id)

    def attempts(self, job_id: uuid.UUID) -> list[Attempt]:
        return list(Attempt.objects.using(self.alias).filter(job_id=job_id).order_by("generation"))

    def refusals(self, job_id: uuid.UUID) -> list[tuple[str, str]]:
        rows = FenceRefusal.objects.using(self.alias).filter(job_id=job_id).order_by("id")
        return [(row.point, row.reason) for row in rows]

    def traces(self, name: str = "trace") -> list[tuple[str, int, int, str]]:
        """Return (job, generation, process, word) of every line that handlers left."""
        path = self.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [
            (job, int(generation), int(pid), word) for job, generation, pid, word in map(str.split, lines)
        ]

    # -- processes -----------------------------------------------------------------------------------------

    def start(self, *arguments: str, failpoints: str = "", **environment: str) -> WorkerProcess:
        """Start `manage.py runworker` with `arguments`; `failpoints` as in jobs/failpoints.py."""
        log = self.folder / f"worker-{len(self.workers)}.log"
        env = {
            **os.environ,
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
            "PYTHONPATH": str(ROOT),
            "INTERLOCK_LEASE_SECONDS": "3",
            "INTERLOCK_HEARTBEAT_SECONDS": "1",
            "LOG_LEVEL": "INFO",
            **environment,
        }
        env.pop("DATABASE_DIRECT_URL", None)
        if failpoints:
            env |= {"INTERLOCK_FAILPOINTS": failpoints, "INTERLOCK_ALLOW_FAILPOINTS": "1"}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "runworker", *arguments],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.workers.append(WorkerProcess(process, log))
        return self.workers[-1]

    def drain(self, *arguments: str) -> None:
        """Run a worker until nothing is ready or running, and see that it ended well."""
        worker = self.start("--drain", *arguments)
        code = worker.wait(120)
        assert code == 0, worker.said

    def until(self, happened: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait until `happened` is true; fails, with what the workers wrote, when it does not become so."""
        end, pause = time.monotonic() + seconds, threading.Event()
        while not happened():
            if time.monotonic() > end:
                logs = "\n".join(f"--- worker {n}\n{w.said[-3000:]}" for n, w in enumerate(self.workers))
                raise AssertionError(f"{what} did not happen in {seconds:.0f} s\n{logs}")
            pause.wait(0.05)

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        connections[self.alias].close()


def generations_only_grow(attempts: list[Attempt]) -> bool:
    numbers = [attempt.generation for attempt in attempts]
    return numbers == sorted(set(numbers))


def committed(attempts: list[Attempt]) -> Iterator[Attempt]:
    return (attempt for attempt in attempts if attempt.status == "committed")
