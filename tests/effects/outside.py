"""The outside world of one test: a ledger of what was really done, and what it does when it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from jobs.effect_kinds import EffectKind, Found, NotFound, Request, Sent, effect_kind
from jobs.handlers import Handler, job
from jobs.models import EffectSlot, Job
from jobs.worker.loop import Worker


class Outside:
    """Counts actions by key. `acts` says whether the next calls act, `answers` what they answer or raise."""

    def __init__(self) -> None:
        self.done: list[Request] = []
        self.asked: list[Request] = []
        self.sending: Callable[[Request], Any] = self.charge
        self.looking: Callable[[Request], Any] = self.look
        self.broken: list[BaseException] = []
        self.payload: Any = {"amount": "12.50", "currency": "EUR", "to": "acme"}

    # -- what the world can do

    def charge(self, request: Request) -> Sent:
        """Act and say so."""
        self.done.append(request)
        return Sent({"charged": request.payload, "number": len(self.done)}, f"ch_{len(self.done)}")

    def charge_silently(self, request: Request) -> Any:
        """Act, and lose the answer."""
        self.charge(request)
        raise TimeoutError("no answer")

    def refuse_connection(self, _request: Request) -> Any:
        raise ConnectionRefusedError

    def look(self, request: Request) -> Found | NotFound:
        """Tell what the ledger has."""
        self.asked.append(request)
        for number, done in enumerate(self.done, 1):
            if done.key == request.key:
                return Found({"charged": done.payload}, f"ch_{number}", payload=done.payload)
        return NotFound()

    # -- kinds

    def kind(self, replay: str, *, inquiry: bool = False, **more: Any) -> EffectKind:
        """Register an effect kind of a replay policy."""

        def send(request: Request) -> Any:
            return self.sending(request)

        send.__qualname__ = f"send-{id(self)}"
        declared = {"amount": "amount", "currency": "currency", "label": "to {to}"} | more
        kind = effect_kind("tests.charge", replay=replay, **declared)(send)
        if inquiry:
            kind.inquire(lambda request: self.looking(request))
        return kind

    def handler(self, **more: Any) -> Handler:
        """Register a job kind that performs the one effect and returns its answer."""

        def bill(ctx: Any) -> Any:
            return ctx.effect("tests.charge", "charge", self.payload)

        bill.__qualname__ = f"bill-{id(self)}"
        return job("tests.bill", **more)(bill)


def worker() -> Worker:
    return Worker(queues=["default"], kinds=["tests.bill"], concurrency=1)


def steps(actor: Worker, count: int) -> None:
    for _ in range(count):
        actor.step()


def slot() -> EffectSlot:
    """Return the one slot there is."""
    return EffectSlot.objects.get()


def the_job() -> Job:
    return Job.objects.get()


def results() -> Iterator[Any]:
    for found in Job.objects.filter(status="succeeded"):
        yield json.loads(found.attempts.get(status="committed").result or "null")
