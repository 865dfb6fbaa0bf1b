"""Effects of these tests: the demonstration's own client, under each replay policy."""

from __future__ import annotations

from pathlib import Path

from demo.billing import payments
from jobs.context import Context
from jobs.effect_kinds import EffectKind, Found, NotFound, Request, Sent, effect_kind
from jobs.handlers import job
from tests.processes.app.kinds import SOON, trace

LABELS = {"label": "{invoice} to {account}", "amount": "amount", "currency": "currency", "target": "account"}


@effect_kind("proc.idempotent", replay="idempotent", **LABELS)
def send_again(request: Request) -> Sent:
    return payments.charge(request)


# Longer than this client waits for an answer: a provider on a busy disk may act when nobody waits any more.
@effect_kind("proc.queryable", replay="queryable", settle_after=8, in_flight=8, **LABELS)
def send_and_ask(request: Request) -> Sent:
    return payments.charge(request)


@send_and_ask.inquire
def ask(request: Request) -> Found | NotFound:
    return payments.look(request)


@effect_kind("proc.non_replayable", replay="non_replayable", approval="never", **LABELS)
def send_once(request: Request) -> Sent:
    return payments.charge(request)


KINDS: tuple[EffectKind, ...] = (send_again, send_and_ask, send_once)


@job("proc.charge", queue="proc", max_attempts=5, backoff=SOON)
def charge(ctx: Context, file: str, policy: str, invoice: str, price: str = "") -> dict[str, str]:
    """Charge an invoice; its amount is in the file `price`, if there is one, and may be another next time."""
    trace(ctx, file)
    amount = Path(price).read_text() if price else "12.50"
    payload = {"account": "acme", "amount": amount, "currency": "EUR", "invoice": invoice}
    answer: dict[str, str] = ctx.effect(f"proc.{policy}", "charge", payload)
    return answer
