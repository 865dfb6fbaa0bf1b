"""The charges: made, found again, and all of them."""

import secrets
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from demo.provider import fencing
from demo.provider.charge import Order
from demo.provider.ledger import Ledger, next_seq
from demo.provider.message import Refused
from demo.provider.modes import Modes

SHOWN = ("id", "key", "account", "amount", "currency", "invoice", "digest", "created_at")


def charge(ledger: Ledger, modes: Modes, key: str, token: int | None, order: Order) -> dict[str, Any]:
    """Charge, or return what this key has charged before; it is on the disk when this returns.

    Refused when the key was used for another order or, with fencing, when the token is superseded.
    """
    if order.account.startswith("declined"):
        raise Refused(402, "card_declined", "The card of this account was declined.")
    with ledger.transaction() as connection:
        if modes.fencing:
            fencing.check(connection, f"key {key}", token)
        made = _by_key(connection, key) if modes.keys_honoured else []
        if made:
            if made[0].order != order:
                raise Refused(409, "key_reused", "This key has been used for another order.")
            return made[0].record | {"replayed": True}
        seq, now = next_seq(connection, "charge"), datetime.now(UTC).isoformat()
        new = (seq, f"ch_{secrets.token_hex(12)}", key, modes.keys_honoured, *astuple(order), now)
        connection.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", new)
        return _Made(connection.execute("SELECT * FROM charge WHERE seq = ?", (seq,)).fetchone()).record | {
            "replayed": False
        }


def by_key(ledger: Ledger, key: str) -> Sequence[dict[str, Any]]:
    """Return what was charged under a key, in order."""
    with ledger.transaction() as connection:
        return [made.record for made in _by_key(connection, key)]


def by_id(ledger: Ledger, charge_id: str) -> dict[str, Any] | None:
    with ledger.transaction() as connection:
        row = connection.execute("SELECT * FROM charge WHERE id = ?", (charge_id,)).fetchone()
    return _Made(row).record if row else None


def everything(ledger: Ledger) -> dict[str, Any]:
    """Return all charges in order, how many each key has, and the sums: what a test judges by."""
    with ledger.transaction() as connection:
        rows = connection.execute("SELECT * FROM charge ORDER BY seq").fetchall()
    totals: dict[str, Decimal] = {}
    for row in rows:
        totals[row["currency"]] = totals.get(row["currency"], Decimal()) + Decimal(row["amount"])
    return {
        "charges": [_Made(row).record for row in rows],
        "count": len(rows),
        "by_key": Counter(row["key"] for row in rows),
        "totals": {currency: str(total) for currency, total in totals.items()},
    }


class _Made:
    """One row, as the order it came from and as the record that is shown."""

    def __init__(self, row: sqlite3.Row) -> None:
        self.order = Order(row["account"], row["amount"], row["currency"], row["invoice"], row["digest"])
        self.record = {name: row[name] for name in SHOWN if row[name] is not None}


def _by_key(connection: sqlite3.Connection, key: str) -> list[_Made]:
    rows = connection.execute("SELECT * FROM charge WHERE key = ? ORDER BY seq", (key,))
    return [_Made(row) for row in rows]
