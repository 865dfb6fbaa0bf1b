"""A threaded worker inside the test's process, stopped and joined whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

from jobs.models import Job
from jobs.worker.threads import ThreadedWorker

PATIENCE = 60
"""How long a test waits for what must happen; it is only ever reached by a test that fails."""


class Running:
    """A worker's run in a thread of its own."""

    def __init__(self, **options: Any) -> None:
        self.worker = ThreadedWorker(**{"concurrency": 4, "grace": 30.0} | options)
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.code = self.worker.run()
        finally:
            connections.close_all()

    def start(self) -> None:
        self._thread.start()

    def join(self) -> int:
        """Wait for the end and return the exit code."""
        self._thread.join(PATIENCE)
        assert self.code is not None, "the worker did not stop"
        return self.code


@contextmanager
def running(**options: Any) -> Iterator[Running]:
    """Start a worker and stop it at the end of the block."""
    run = Running(**options)
    run.start()
    try:
        yield run
    finally:
        run.worker.stop.ask("end of the test")
        run.worker.stop.hurried.set()
        run.join()


def wait(event: threading.Event) -> None:
    """Wait for what must happen."""
    assert event.wait(PATIENCE), "it did not happen"


def until(happened: Callable[[], bool]) -> None:
    """Look until it has happened."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        threading.Event().wait(0.01)


def enqueue(handler: Any, count: int = 1, **arguments: Any) -> list[Any]:
    """Enqueue the same job `count` times; returns the ids."""
    return [e.job_id for e in Job.objects.enqueue_many([(handler.name, arguments, None)] * count)]
