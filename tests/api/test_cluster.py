"""Queues, workers, the epoch and the drain over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from jobs.models import ApiToken, AuditEntry, Queue, Scheduler, Worker
from tests import build
from tests.api.caller import OPERATOR, ROOT, Api, operator, secret

pytestmark = pytest.mark.looks_alike


def patch(api, name, body):
    return api.patch(f"{ROOT}/queues/{name}", body, content_type="application/json")


def test_queue_is_paused_and_resumed_with_a_reason(ops):
    build.enqueue(queue="mail")
    answer = patch(ops, "mail", {"paused": True, "reason": "provider down"})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["paused"], told["reason"], told["paused_by"]) == (
        True,
        "provider down",
        "operator by token ci",
    )
    assert told["ready"] == 1
    assert told in ops.look("/queues").json()["results"]
    assert patch(ops, "mail", {"paused": False, "reason": "up again"}).json()["paused"] is False
    assert [entry.reason for entry in AuditEntry.objects.order_by("seq")] == ["provider down", "up again"]


def test_pause_may_have_an_end_and_a_resumption_has_none(ops):
    until = (timezone.now() + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    assert patch(ops, "mail", {"paused": True, "reason": "r", "until": until}).json()["paused_until"] == until
    answer = patch(ops, "mail", {"paused": True, "reason": "r", "until": "2001-01-31T12:00:00Z"})
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/until"]
    answer = patch(ops, "mail", {"paused": False, "reason": "r", "until": until})
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/until"]
    assert Queue.objects.get().paused_at is not None


def test_token_sees_and_pauses_its_own_queues_only(db):
    api = Api(secret("ops", owner=operator(), queues=("mail",)))
    build.enqueue(queue="default")
    assert [queue["name"] for queue in api.look("/queues").json()["results"]] == ["mail"]
    assert patch(api, "default", {"paused": True, "reason": "r"}).status_code == 404
    assert patch(api, "mail", {"paused": True, "reason": "r"}).status_code == 200


def test_worker_is_fenced_once_and_told_of(ops):
    build.register(build.WORKER)
    lease = build.running(now=timezone.now())
    (worker,) = ops.look("/workers").json()["results"]
    assert (worker["id"], worker["leases"]) == (lease.worker_id, 1)
    answer = ops.send({"reason": "gone mad"}, f"/workers/{worker['id']}/fence")
    assert answer.json() == {"worker": worker["id"], "leases_ended": 1}, answer.content
    assert Worker.objects.get().fenced_by == "operator by token ci"
    again = ops.send({"reason": "again"}, f"/workers/{worker['id']}/fence")
    assert (again.status_code, again.json()["refusal"]) == (409, "WORKER_FENCED")
    assert ops.send({"reason": "r"}, "/workers/nobody/fence").status_code == 404


def test_epoch_is_raised_from_the_one_that_was_seen_and_its_price_is_told(ops):
    build.running()
    shown = ops.look("/epochs").json()
    assert (shown["epoch"], shown["price"]["attempts_lost"]) == (1, 1)
    answer = ops.send({"expected": 1, "reason": "restored"}, "/epochs")
    assert (answer.status_code, answer.json()["epoch"]) == (201, 2), answer.content
    late = ops.send({"expected": 1, "reason": "me too"}, "/epochs")
    assert (late.status_code, late.json()["refusal"], late.json()["current"]["epoch"]) == (
        412,
        "EPOCH_MOVED",
        2,
    )
    assert Scheduler.objects.get().epoch == 2


def test_raise_asks_a_recent_log_in(db):
    owner = operator("late")
    get_user_model().objects.filter(pk=owner.pk).update(last_login=timezone.now() - timedelta(hours=1))
    answer = Api(secret(*ApiToken.SCOPES, owner=owner)).send({"expected": 1, "reason": "r"}, "/epochs")
    assert (answer.status_code, answer.json()["refusal"]) == (403, "LOGIN_NOT_RECENT")
    assert Scheduler.objects.get().epoch == 1


@pytest.fixture
def takes_two(settings):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}


def test_raise_by_two_people_waits_for_the_second_ones_token(ops, takes_two):
    answer = ops.send({"expected": 1, "reason": "two owners", "claims_open": False}, "/epochs")
    assert (answer.status_code, answer.json()["epoch"]) == (202, 1), answer.content
    asked = answer.json()["asked"]
    assert (asked["by"], asked["close_claims"]) == ("operator", True)
    assert ops.look("/epochs").json()["asked"] == asked
    word = {"proposal_id": asked["id"], "decision": "approve", "reason": "seen too"}
    own = ops.send(word, "/epochs/approvals")
    assert (own.status_code, own.json()["refusal"], build.epoch()) == (403, "SELF_APPROVAL", 1)
    other = Api(secret("ops", owner=operator("other")))
    done = other.send(word, "/epochs/approvals")
    assert (done.status_code, done.json()["epoch"], done.json()["asked"]) == (201, 2, None), done.content
    late = other.send(word, "/epochs/approvals")
    assert (late.status_code, late.json()["refusal"], build.epoch()) == (409, "RAISE_DECIDED", 2)


def test_raise_that_is_rejected_or_overtaken_raises_nothing(ops, takes_two):
    other = Api(secret("ops", owner=operator("other")))
    asked = ops.send({"expected": 1, "reason": "r"}, "/epochs").json()["asked"]
    no = {"proposal_id": asked["id"], "decision": "reject", "reason": "one worker would do"}
    assert other.send(no, "/epochs/approvals").status_code == 200
    asked = ops.send({"expected": 1, "reason": "r"}, "/epochs").json()["asked"]
    build.raise_epoch()
    late = other.send(no | {"proposal_id": asked["id"], "decision": "approve"}, "/epochs/approvals")
    assert (late.status_code, late.json()["current"]["epoch"]) == (412, 2)
    assert build.epoch() == 2


def test_answer_to_what_nobody_asked_for_is_404_and_bad_words_name_the_member(ops, takes_two):
    nothing = {"proposal_id": "0197aaaa-0000-7000-8000-000000000000", "decision": "approve", "reason": "r"}
    assert ops.send(nothing, "/epochs/approvals").status_code == 404
    wrong = ops.send(nothing | {"decision": "yes", "proposal_id": "x"}, "/epochs/approvals")
    assert {error["pointer"] for error in wrong.json()["errors"]} == {"/decision", "/proposal_id"}


def test_drain_tells_why_the_cluster_may_not_be_stopped(ops):
    told = ops.look("/drain").json()
    assert (told["verdict"], told["claims_open"]) == ("BLOCKED", True)
    ops.send({"expected": 1, "reason": "r", "claims_open": False}, "/epochs")
    told = ops.look("/drain?version=8.4.1").json()
    assert (told["verdict"], told["version"], told["versions"]) == ("SAFE", "8.4.1", [])
    assert ops.look("/drain?versoin=8.4.1").status_code == 400


def test_claims_are_closed_and_opened_without_a_raise(ops):
    for wanted in (False, True, True):
        answer = ops.send({"claims_open": wanted, "reason": "r"}, "/epochs")
        assert (answer.status_code, answer.json()["epoch"]) == (200, 1), answer.content
        assert answer.json()["claims_open"] is Scheduler.objects.get().claims_open is wanted
    actions = AuditEntry.objects.order_by("seq").values_list("action", flat=True)
    assert list(actions) == ["close_claims", "open_claims"]


def test_claims_ask_the_permission_of_a_raise(db):
    lacking = operator("lacking", *[name for name in OPERATOR if name != "raise_epoch"])
    answer = Api(secret("ops", owner=lacking)).send({"claims_open": False, "reason": "r"}, "/epochs")
    assert (answer.status_code, answer.json()["refusal"]) == (403, "NOT_PERMITTED")
    assert Scheduler.objects.get().claims_open is True


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({}, "expected"),
        ({"claims_open": True, "expected": 1}, "claims_open"),
        ({"claims_open": True, "floor": 5}, "floor"),
        ({"claims_open": 0}, "claims_open"),
    ],
)
def test_post_to_epochs_that_says_neither_or_too_much_changes_nothing(ops, body, member):
    answer = ops.send(body | {"reason": "r"}, "/epochs")
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{member}"]
    assert not AuditEntry.objects.exists()


def test_highest_floor_that_is_taken_can_be_audited_and_raised_from(ops):
    for expected in (1, 2**52 + 1):
        answer = ops.send({"expected": expected, "reason": "r", "floor": 2**52}, "/epochs")
        assert answer.status_code in (201, 412), answer.content
    assert ops.send({"expected": 1, "reason": "r", "floor": 2**52 + 1}, "/epochs").status_code == 400
    assert ops.look("/epochs").json()["epoch"] >= 2**52
