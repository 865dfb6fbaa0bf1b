"""What the payment service's database holds by itself, without the service around it."""

import sqlite3

import pytest

from demo.provider import charges, fencing
from demo.provider.charge import Order
from demo.provider.ledger import Ledger
from demo.provider.message import Refused
from demo.provider.modes import Modes

ORDER = Order("acme", "12.50", "EUR", "INV-1")


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(tmp_path / "ledger.sqlite3")
    yield opened
    opened.close()


def test_every_transaction_is_synced_before_it_is_answered(ledger):
    with ledger.transaction() as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
        ]
    assert pragmas == [2, "wal"]


def test_database_refuses_a_second_charge_under_an_honoured_key(ledger):
    made = charges.charge(ledger, Modes(), "k-1", None, ORDER)
    again = "INSERT INTO charge SELECT 2, 'other', key, honoured, account, amount, currency, invoice, digest,"
    with pytest.raises(sqlite3.IntegrityError), ledger.transaction() as connection:
        connection.execute(f"{again} created_at FROM charge WHERE id = ?", (made["id"],))
    assert charges.everything(ledger)["count"] == 1


def test_token_seen_between_a_request_and_its_charge_refuses_it(ledger):
    fencing.see(ledger, "key k-1", 1)
    fencing.see(ledger, "key k-1", 2)
    with pytest.raises(Refused) as refusal:
        charges.charge(ledger, Modes(fencing=True), "k-1", 1, ORDER)
    assert refusal.value.code == "stale_token"
    assert charges.everything(ledger)["count"] == 0


def test_transaction_that_fails_writes_nothing_and_the_next_one_works(ledger):
    twice = [("key k-1", 9), ("key k-1", 9)]
    with pytest.raises(sqlite3.IntegrityError), ledger.transaction() as connection:
        connection.executemany("INSERT INTO token VALUES (?, ?)", twice)
    fencing.see(ledger, "key k-1", 1)


def test_key_used_while_keys_were_ignored_is_honoured_from_then_on(ledger):
    for _ in range(2):
        charges.charge(ledger, Modes(keys_honoured=False), "k-1", None, ORDER)
    assert charges.charge(ledger, Modes(), "k-1", None, ORDER)["replayed"] is True
    assert charges.everything(ledger)["by_key"] == {"k-1": 2}
