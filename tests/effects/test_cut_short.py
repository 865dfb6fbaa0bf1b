"""What is cut short at an effect: by a cancellation, a limit of its own, or the time limit of its kind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jobs import failpoints
from jobs.context import Context
from jobs.effect_kinds import Request, Sent
from jobs.handlers import job
from jobs.models import EffectSlot, Evidence
from jobs.status import JobStatus
from tests.effects.outside import Outside, slot, the_job
from tests.worker.running import running, until, wait


class Dawdler:
    """A send function that stands still before it acts, the first time."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.calls: list[Request] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def send(self, request: Request) -> Sent:
        self.calls.append(request)
        if len(self.calls) == 1:
            self.begun.set()
            wait(self.go_on)
        return self.outside.charge(request)


async def charges(ctx: Context, outside: Outside) -> Any:
    return await ctx.effect("tests.charge", "charge", outside.payload)


async def charges_within_a_limit(ctx: Context, outside: Outside) -> Any:
    async with asyncio.timeout(0.2):
        return await charges(ctx, outside)


async def charges_elsewhere_instead(ctx: Context, outside: Outside) -> Any:
    try:
        return await charges_within_a_limit(ctx, outside)
    except TimeoutError:
        return await ctx.effect("tests.charge", "elsewhere", outside.payload)


@pytest.mark.parametrize(
    ("handler", "limit"),
    [(charges, 0.2), (charges_within_a_limit, None), (charges_elsewhere_instead, None)],
)
def test_a_send_function_that_goes_on_after_its_coroutine_was_cancelled_is_still_the_sender(
    outside: Outside, handler: Callable[..., Any], limit: float | None
) -> None:
    outside.kind("queryable", inquiry=True, settle_after=0)
    dawdler = Dawdler(outside)
    outside.sending = dawdler.send

    async def bill(ctx: Context) -> Any:
        return await handler(ctx, outside)

    bill.__qualname__ = f"bill-{handler.__name__}"
    job("tests.bill", timeout=limit, backoff=None)(bill).enqueue()
    with running(kinds=["tests.bill"]):
        wait(dawdler.begun)
        # "Not found" proves nothing while it can still send: only a person could say more now.
        until(lambda: the_job().status == JobStatus.UNCERTAIN)
        assert (slot().status, len(outside.done)) == ("unknown", 0)
        assert outside.asked, "the provider was asked, and did not know of it"
        dawdler.go_on.set()
        until(lambda: the_job().status == JobStatus.SUCCEEDED)
    assert (len(dawdler.calls), len(outside.done), slot().grants) == (1, 1, 1)


def test_what_was_cancelled_at_the_gate_is_not_sent_and_not_in_doubt(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.kind("queryable", inquiry=True, settle_after=0)
    granted, cancelled = threading.Event(), threading.Event()

    def granting() -> None:
        granted.set()
        wait(cancelled)

    monkeypatch.setitem(failpoints._armed, "grant.after", failpoints._Armed(granting, 1))

    async def bill(ctx: Context) -> Any:
        charging = asyncio.create_task(charges(ctx, outside))
        await asyncio.to_thread(granted.wait)
        charging.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await charging
        cancelled.set()
        return "not charged"

    bill.__qualname__ = "bill-cancelled-at-the-gate"
    job("tests.bill", backoff=None)(bill).enqueue()
    with running(kinds=["tests.bill"]):
        until(lambda: EffectSlot.objects.filter(status="absent").exists())
    assert not outside.done
    assert Evidence.objects.get().decisive


def test_an_attempt_that_was_ended_at_the_gate_sends_nothing_itself(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.kind("queryable", inquiry=True, settle_after=0)

    def granting() -> None:
        until(lambda: the_job().status != JobStatus.RUNNING)

    monkeypatch.setitem(failpoints._armed, "grant.after", failpoints._Armed(granting, 1))
    outside.handler(timeout=0.2, max_attempts=1).enqueue()
    with running(kinds=["tests.bill"]):
        until(lambda: the_job().status == JobStatus.SUCCEEDED)
    assert [*Evidence.objects.order_by("id").values_list("outcome", flat=True)] == ["absent", "committed"]
    assert [request.fencing_token > 1 for request in outside.done] == [True], "by the run after it"
