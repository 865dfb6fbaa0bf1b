"""The demonstration's payment service: what it promises, whatever becomes of it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.provider import Provider


@pytest.fixture
def provider(tmp_path):
    with Provider.running(tmp_path) as running:
        yield running


@pytest.fixture
def started(tmp_path):
    """Start services with options of their own."""
    providers: list[Provider] = []

    def start(*options: str) -> Provider:
        providers.append(Provider(tmp_path, *options))
        providers[-1].start()
        return providers[-1]

    yield start
    for each in providers:
        each.stop()


def test_charge_is_answered_with_its_record_and_found_again(provider):
    made = provider.charge("k-1", digest="ab" * 32)
    assert made.status == 201
    record = made.json
    assert record.pop("replayed") is False
    assert record.pop("id").startswith("ch_")
    assert record.pop("created_at")
    assert record == {
        "key": "k-1",
        "account": "acme",
        "amount": "12.50",
        "currency": "EUR",
        "invoice": "INV-1",
        "digest": "ab" * 32,
    }
    found = provider.inquire("k-1").json
    assert found["found"] is True
    assert found["charges"] == provider.ledger()["charges"]
    assert provider.call("GET", f"charges/{made.json['id']}").json == found["charges"][0]


def test_same_key_and_body_is_charged_once_and_answered_alike(provider):
    first, second = provider.charge("k-1"), provider.charge("k-1")
    assert (first.status, second.status) == (201, 200)
    assert second.json == first.json | {"replayed": True}
    assert provider.ledger()["by_key"] == {"k-1": 1}


@pytest.mark.parametrize("other", [{"amount": "12.51"}, {"account": "other"}, {"digest": "ff"}])
def test_same_key_with_another_body_is_refused(provider, other):
    provider.charge("k-1")
    refused = provider.charge("k-1", **other)
    assert (refused.status, refused.code) == (409, "key_reused")
    assert provider.ledger()["count"] == 1


def test_provider_that_ignores_keys_charges_each_time(started):
    provider = started("--mode", "keys=ignored")
    assert [provider.charge("k-1").status for _ in range(2)] == [201, 201]
    assert provider.ledger()["by_key"] == {"k-1": 2}
    assert len(provider.inquire("k-1").json["charges"]) == 2


@pytest.mark.parametrize(("mode", "charged"), [("keys=honoured", 1), ("keys=ignored", 8)])
def test_simultaneous_requests_with_one_key_charge_as_the_mode_says(started, mode, charged):
    provider = started("--mode", mode)
    together = threading.Barrier(8)

    def send(_) -> int:
        together.wait(30)
        return provider.charge("k-1").status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(send, range(8)))
    assert sorted(statuses) == [200] * (8 - charged) + [201] * charged
    assert provider.ledger()["by_key"] == {"k-1": charged}


def test_ledger_survives_being_killed(provider):
    record = provider.charge("k-1").json
    provider.kill()
    with pytest.raises(OSError, match="refused"):
        provider.charge("k-2")
    provider.start()
    assert provider.inquire("k-1").json["charges"][0]["id"] == record["id"]
    assert provider.charge("k-1").json == record | {"replayed": True}
    assert provider.ledger()["count"] == 1


def test_it_ends_cleanly_when_asked_even_while_a_request_is_held(provider):
    provider.fault("delay", seconds=3600)
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(provider.charge, "k-1")
        provider.struck(1)
        assert provider.stop() == 0
        assert isinstance(held.exception(30), OSError)
    provider.start()
    assert provider.ledger()["count"] == 0


def test_ledger_shows_all_in_order_with_totals_per_currency(provider):
    provider.charge("k-1", amount="0.10")
    provider.charge("k-2", amount="0.20")
    provider.charge("k-3", amount="7", currency="CHF")
    ledger = provider.ledger()
    assert [each["key"] for each in ledger["charges"]] == ["k-1", "k-2", "k-3"]
    assert ledger["totals"] == {"EUR": "0.30", "CHF": "7"}


def test_declined_account_is_refused_and_nothing_is_charged(provider):
    refused = provider.charge("k-1", account="declined-9")
    assert (refused.status, refused.code) == (402, "card_declined")
    assert provider.ledger()["count"] == 0
    assert provider.inquire("k-1").code == "not_found"


def test_lower_fencing_token_is_refused_for_the_same_key_only(started):
    provider = started("--mode", "fencing")
    assert provider.charge("k-1", token=7).status == 201
    late = provider.charge("k-1", token=6)
    assert (late.status, late.code) == (409, "stale_token")
    assert provider.charge("k-1").code == "stale_token"
    assert provider.charge("k-1", token=7).status == 200
    assert provider.charge("k-2", token=1).status == 201
    assert provider.ledger()["by_key"] == {"k-1": 1, "k-2": 1}


def test_token_of_a_refused_request_still_fences_older_ones(started):
    provider = started("--mode", "fencing")
    provider.fault("refuse")
    assert provider.charge("k-1", token=8).status == 402
    assert provider.charge("k-1", token=7).code == "stale_token"
    provider.kill()
    provider.start()
    assert provider.charge("k-1", token=7).code == "stale_token"
    assert provider.ledger()["count"] == 0


def test_token_seen_while_an_older_request_was_held_fences_it(started):
    provider = started("--mode", "fencing")
    provider.fault("delay", seconds=3600)
    with ThreadPoolExecutor(1) as threads:
        older = threads.submit(provider.charge, "k-1", 1)
        provider.struck(1)
        assert provider.charge("k-1", token=2).status == 201
        provider.lift()
        assert older.result(30).code == "stale_token"
    assert provider.ledger()["count"] == 1


def test_tokens_mean_nothing_without_the_mode(provider):
    assert provider.charge("k-1", token=7).status == 201
    assert provider.charge("k-1", token=6).status == 200


def test_reset_empties_the_ledger_only_where_it_is_allowed(provider, started, tmp_path):
    provider.charge("k-1")
    assert provider.call("POST", "reset", b"").code == "reset_not_allowed"
    assert provider.ledger()["count"] == 1
    provider.stop()
    lenient = started("--allow-reset")
    assert lenient.ledger()["count"] == 1
    assert lenient.call("POST", "reset", b"").status == 200
    assert lenient.ledger()["count"] == 0
