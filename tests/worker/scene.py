"""A worker and the time it lives in, both moved by hand."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from jobs.handlers import Handler, Options, job
from jobs.models import Attempt, Job, Minute
from jobs.worker.loop import Worker
from tests.build import at


class Scene:
    """Steps a worker. `seconds` is what the database's clock and the worker's own show since T0."""

    def __init__(self, **options: Any) -> None:
        self.seconds = 0.0
        self.worker = Worker(clock=self.boottime, **{"concurrency": 4} | options)

    def boottime(self) -> float:
        return 1_000.0 + self.seconds

    @property
    def now(self) -> datetime:
        return at(self.seconds)

    def step(self) -> int:
        """Take one of each turn, each at its own instant; returns how many jobs were claimed."""
        claimed = self.claim()
        self.run()
        self.settle()
        self.worker.beat.turn(now=self.now)
        return claimed

    def claim(self) -> int:
        """Attend and claim, but run nothing."""
        if not self.worker.claims.epoch:
            self.worker.register(now=self.now)
        self.worker.attend(now=self.now)
        return self.worker.claim(now=self.now)

    def run(self) -> None:
        """Run what was claimed, but settle nothing."""
        self.worker.slots.run_here()
        self.worker.coroutines.run_here()

    def settle(self) -> int:
        return self.worker.settle(now=self.now)

    def renew(self) -> None:
        self.worker.beat.renew(now=self.now, everything=True)

    def enqueue(self, handler: Handler, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        """Enqueue a job that is due now; returns its id."""
        given = Options(**options)
        return Job.objects.enqueue(handler.name, arguments or {}, options=given, now=self.now).job_id


def kind(function: Callable[..., Any] | None = None, *, name: str = "tests.kind", **options: Any) -> Handler:
    """Register a kind; by default one that does nothing."""

    def nothing() -> None:
        return None

    nothing.__qualname__ = f"nothing-{name}"
    return job(name, **options)(_watched(function or nothing))


BROKEN: list[BaseException] = []
"""What handlers asserted and was not so; see conftest.py."""


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AssertionError, pytest.fail.Exception) as error:
            BROKEN.append(error)
            raise

    return watched


def put(owner: Any, name: str, value: Any) -> None:
    """Put something else in the place of a method: a connection that breaks, an answer that is late."""
    setattr(owner, name, value)


def measured(measure: str) -> Any:
    """Return the rows of one measure by minute, without the sums over all time and over all queues."""
    rows = Minute.objects.filter(measure=measure, minute__year__gt=2000)
    by_queue = rows.exclude(queue="")
    return by_queue if by_queue.exists() else rows


def row(job_id: Any) -> Job:
    found: Job = Job.objects.get(pk=job_id)
    return found


def attempts(job_id: Any) -> list[Attempt]:
    return list(Attempt.objects.filter(job=job_id).order_by("generation"))


def last(job_id: Any) -> Attempt:
    return attempts(job_id)[-1]
