"""Kinds of work that cost money or write to people; demo/kinds.py brings them in."""

from __future__ import annotations

from typing import Any

from demo.billing import effects
from jobs.context import Context
from jobs.handlers import job
from jobs.retry import Backoff


@job(
    "billing.charge",
    queue="billing",
    lease=60,
    timeout=60,
    max_attempts=8,
    backoff=Backoff(base=2, cap=300),
    label="{invoice}, {amount} {currency}, {account}",
    tags=("money",),
    search=("invoice", "account"),
    owner="demonstration",
    runbook="docs/demo.md",
)
def charge(ctx: Context, invoice: str, account: str, amount: str, currency: str) -> dict[str, Any]:
    """Charge one invoice and return the payment service's record of it.

    Run as often as it has to be: the second time the effect answers from its record.
    """
    ctx.log(f"charging {amount} {currency} to {account}")
    record: dict[str, Any] = ctx.effect(
        effects.charge.name,
        "charge",
        {"account": account, "amount": amount, "currency": currency, "invoice": invoice},
    )
    return record


@job(
    "billing.remind",
    queue="billing",
    lease=60,
    timeout=60,
    max_attempts=8,
    label="Reminder of {invoice} to {to}",
    tags=("money", "mail"),
    search=("invoice",),
    owner="demonstration",
    runbook="docs/demo.md",
)
def remind(ctx: Context, invoice: str, to: str, amount: str, currency: str) -> dict[str, Any]:
    """Write to somebody who has not paid, once a person has approved it."""
    # No date: the text is the same whenever the handler runs, and so is what the person approved.
    sent: dict[str, Any] = ctx.effect(
        effects.send_mail.name,
        "reminder",
        {
            "to": to,
            "subject": f"Reminder: invoice {invoice}",
            "body": f"Our invoice {invoice} of {amount} {currency} is still open.\n",
        },
    )
    return sent
