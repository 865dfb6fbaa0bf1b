"""What the payment service does when it is told to misbehave: what was done, and what was said about it."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from demo.provider.fault import ON_INQUIRE, ON_SEND, Fault, Kind, from_words
from demo.provider.faults import Faults
from demo.provider.message import Refused
from tests.provider import Provider


@pytest.fixture
def provider(tmp_path):
    with Provider.running(tmp_path) as running:
        yield running


def unanswered(provider, key: str = "k-1", **fields: str) -> bool:
    try:
        provider.charge(key, **fields)
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return True
    return False


def test_dropped_answer_was_charged_and_the_same_key_tells(provider):
    provider.fault("drop")
    assert unanswered(provider)
    assert provider.ledger()["by_key"] == {"k-1": 1}
    assert provider.inquire("k-1").status == 200
    assert provider.charge("k-1").json["replayed"] is True
    assert provider.ledger()["count"] == 1


def test_request_dropped_before_was_not_charged(provider):
    provider.fault("drop_before")
    assert unanswered(provider)
    assert provider.ledger()["count"] == 0
    assert provider.charge("k-1").status == 201


def test_delayed_request_is_charged_after_the_delay_and_not_before(provider):
    provider.fault("delay", seconds=3600)
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(provider.charge, "k-1")
        provider.struck(1)
        assert provider.inquire("k-1").code == "not_found"
        provider.lift()
        assert late.result(30).status == 201
    assert provider.ledger()["count"] == 1


def test_delayed_answer_was_charged_before_the_delay(provider):
    provider.fault("delay_answer", seconds=3600)
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(provider.charge, "k-1")
        provider.struck(1)
        assert provider.ledger(once=1)["by_key"] == {"k-1": 1}
        assert not late.done()
        provider.lift()
        assert late.result(30).status == 201


def test_delay_ends_by_itself(provider):
    provider.fault("delay", seconds=0.01)
    assert provider.charge("k-1").status == 201


def test_client_that_gave_up_waiting_is_charged_all_the_same(provider):
    provider.fault("delay", seconds=3600)
    port = int(provider.url.rsplit(":", 1)[1].strip("/"))
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = '{"account": "acme", "amount": "1", "currency": "EUR", "invoice": "INV-9"}'
    client.request("POST", "/charges", body, {"Idempotency-Key": "k-1"})
    provider.struck(1)
    client.close()
    provider.lift()
    assert provider.ledger(once=1)["by_key"] == {"k-1": 1}


def test_error_is_answered_without_charging(provider):
    provider.fault("error")
    assert provider.charge("k-1").status == 503
    assert provider.ledger()["count"] == 0


def test_error_after_acting_was_charged(provider):
    provider.fault("act_then_error")
    assert provider.charge("k-1").status == 500
    assert provider.ledger()["count"] == 1


def test_garbage_is_answered_with_200_after_charging(provider):
    provider.fault("garbage")
    reply = provider.charge("k-1")
    assert reply.status == 200
    with pytest.raises(ValueError, match="decode"):
        reply.json  # noqa: B018
    assert provider.ledger()["count"] == 1


def test_refusal_is_definite_and_nothing_is_charged(provider):
    provider.fault("refuse")
    assert (provider.charge("k-1").status, provider.charge("k-2").status) == (402, 201)
    assert provider.ledger()["by_key"] == {"k-2": 1}


def test_refusal_can_be_lost_as_well(provider):
    provider.fault("drop")
    assert unanswered(provider, account="declined-1")
    assert provider.ledger()["count"] == 0


def test_charge_is_hidden_from_so_many_inquiries(provider):
    provider.charge("k-1")
    provider.fault("not_found", times=2)
    assert provider.inquire("k-2").status == 404  # nothing to hide: not counted
    assert [provider.inquire("k-1").status for _ in range(3)] == [404, 404, 200]


def test_charge_is_hidden_for_a_time_however_often_it_is_asked_for(provider):
    provider.charge("k-1")
    provider.fault("not_found", seconds=3600)
    assert [provider.inquire("k-1").status for _ in range(4)] == [404] * 4
    provider.lift()
    assert provider.inquire("k-1").status == 200


@pytest.mark.parametrize(("kind", "status"), [("error", 503), ("garbage", 200), ("act_then_error", 500)])
def test_inquiry_can_fail_too(provider, kind, status):
    provider.charge("k-1")
    provider.fault(kind, on="inquire", invoice="INV-1")
    assert provider.inquire("k-1").status == status
    assert provider.inquire("k-1").json["found"] is True


def test_fault_hits_only_what_it_was_meant_for(provider):
    provider.fault("error", invoice="INV-2", account="acme")
    assert provider.charge("k-1").status == 201
    assert provider.charge("k-2", invoice="INV-2", account="other").status == 201
    assert provider.charge("k-3", invoice="INV-2").status == 503
    assert provider.charge("k-3", invoice="INV-2").status == 201


def test_of_simultaneous_requests_as_many_are_hit_as_were_asked_for(provider):
    provider.fault("error", times=3)
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda n: provider.charge(f"k-{n}").status, range(8)))
    assert sorted(statuses) == [201] * 5 + [503] * 3
    assert provider.ledger()["count"] == 5


def test_invalid_order_uses_no_fault_up(provider):
    provider.fault("drop")
    assert provider.charge("k-1", amount="-1").status == 422
    assert unanswered(provider)


def test_faults_are_shown_and_lifted(provider):
    provider.fault("error", times=2, invoice="INV-1")
    provider.charge("k-1")
    shown = provider.call("GET", "faults").json
    expected = {"kind": "error", "times": 1, "seconds": None, "on": "send", "match": {"invoice": "INV-1"}}
    assert shown["waiting"] == [expected]
    assert shown["struck"] == [
        {"kind": "error", "on": "send", "invoice": "INV-1", "account": "acme", "key": "k-1"}
    ]
    provider.lift()
    assert provider.call("GET", "faults").json["waiting"] == []
    assert provider.charge("k-1").status == 201


def test_fault_given_at_the_start_loses_exactly_one_answer(tmp_path):
    with Provider.running(tmp_path, "--fault", "drop:invoice=INV-1003") as provider:
        assert provider.charge("k-1", invoice="INV-1002").status == 201
        assert unanswered(provider, "k-2", invoice="INV-1003")
        assert provider.charge("k-2", invoice="INV-1003").status == 200
        assert provider.ledger()["by_key"] == {"k-1": 1, "k-2": 1}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "kind"),
        ({"kind": ["drop"]}, "kind"),
        ({"kind": "drop", "times": 0}, "times"),
        ({"kind": "drop", "times": True}, "times"),
        ({"kind": "delay"}, "seconds"),
        ({"kind": "delay", "seconds": -1}, "seconds"),
        ({"kind": "delay", "seconds": 10**400}, "seconds"),
        ({"kind": "drop", "on": "both"}, "on"),
        ({"kind": "drop", "match": {"colour": "red"}}, "match"),
        ({"kind": "drop", "match": [1]}, "match"),
        ({"kind": "drop", "when": "now"}, "when"),
    ],
)
def test_impossible_fault_is_refused_by_name(given, field):
    with pytest.raises(Refused) as refusal:
        Fault.read(given)
    assert json.loads(refusal.value.answer.encoded())["field"] == field


def test_words_of_a_command_line_are_a_fault():
    fault = from_words("delay:seconds=1.5,times=2,invoice=INV-1,on=inquire")
    assert (fault.kind, fault.seconds, fault.times, fault.on) == (Kind.DELAY, 1.5, 2, ON_INQUIRE)
    assert fault.match == {"invoice": "INV-1"}
    for wrong in ("dorp", "drop:invoice", "drop:times=many", "delay:seconds=nan", "drop:colour=red"):
        with pytest.raises(Refused):
            from_words(wrong)


def test_hiding_ends_exactly_when_its_time_is_up():
    faults = Faults()
    faults.add(Fault(Kind.NOT_FOUND, seconds=5, on=ON_INQUIRE), now=100.0)
    assert faults.take(ON_SEND, {}, now=101.0) is None
    assert faults.take(ON_INQUIRE, {}, now=104.999)
    assert faults.take(ON_INQUIRE, {}, now=105.0) is None
