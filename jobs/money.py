"""An amount as people read it, the same on a page, on a terminal and in a sentence."""

from __future__ import annotations

from decimal import Decimal


def money(amount: Decimal | None, currency: str) -> str:
    """Return an amount with its currency; two places, or as many as it has."""
    if amount is None:
        return ""
    text = f"{amount.normalize():,f}" if amount % Decimal("0.01") else f"{amount:,.2f}"
    return f"{text} {currency}".rstrip()
