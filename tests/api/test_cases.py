"""Cases over HTTP: the same functions as the console's, on the version and snapshot that were seen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from jobs.models import ApiToken, AuditEntry, Case, Comment, Proposal, Ruling
from jobs.status import EffectStatus
from tests import build
from tests.api.caller import Api, operator, secret
from tests.console.matters import alter, stretch
from tests.operations import scene


@pytest.fixture
def second(db):
    """Another person's client, of the same rights."""
    return Api(secret(*ApiToken.SCOPES, owner=operator("second")))


def look(api, matter):
    return api.look(f"/cases/{matter.case.id}").json()


def ruling(seen, verdict="happened", **more):
    given = {"version": seen["version"], "snapshot": seen["snapshot"], "verdict": verdict}
    return given | {"reason_code": "other", "reason": "saw it in the statement"} | more


def test_cases_are_listed_narrowed_and_paged(ops):
    matters = [scene.unknown(), scene.approval(), scene.unknown()]
    ids = [str(matter.case.id) for matter in matters]

    def listed(query):
        return [case["id"] for case in ops.look(f"/cases?{query}").json()["results"]]

    assert listed("ordering=id") == ids
    assert listed("kind=approval") == [ids[1]]
    assert listed(f"effect_kind={scene.PAY}&state=open&owner=nobody&parked=no&ordering=id") == ids
    assert [listed(query) for query in ("state=closed", "owner=me", "parked=yes")] == [[], [], []]
    alter(matters[0].case, sla_due_at=timezone.now() - timedelta(seconds=1))
    assert listed("sla=breached") == [ids[0]]
    assert listed(f"job={matters[0].job.id}") == [ids[0]]
    first = ops.look("/cases?limit=2").json()
    assert [case["id"] for case in first["results"]] == ids[:0:-1]
    assert [case["id"] for case in ops.get(first["next"]).json()["results"]] == ids[:1]
    for query in ("owner=other", "waiting=you", "sla=no", "kid=approval", "state=", "job=x", "count=bounded"):
        assert ops.look(f"/cases?{query}").status_code == 400, query


def test_what_waits_for_a_second_person_is_listed_for_who_may_answer_it(ops, second):
    asker = get_user_model().objects.get(username="operator")
    ruling_ = scene.unknown(second_person="always")
    ruling_.rule("did_not_happen", asker, now=build.at(200))
    sending, quiet = scene.approval(), scene.unknown()
    later = timezone.now() + timedelta(hours=1)
    stretch(ruling_.case, later)

    def listed(api, word):
        rows = api.look(f"/cases?waiting={word}&ordering=id").json()["results"]
        return {row["id"]: row["asked"]["verdict"] for row in rows}

    both = {str(ruling_.case.id): "did_not_happen", str(sending.case.id): "send"}
    assert listed(second, "me") == listed(second, "anybody") == listed(ops, "anybody") == both
    assert listed(ops, "me") == {str(sending.case.id): "send"}
    told = ops.look(f"/cases?job={quiet.job.id}").json()["results"][0]
    assert (told["asked"], told["closed_at"]) == (None, None)
    whole = ops.look(f"/cases/{ruling_.case.id}").json()
    assert (whole["asked"]["by"], whole["proposal"]["by"]) == ("operator", "operator")
    stretch(ruling_.case, timezone.now() - timedelta(seconds=1))
    assert listed(second, "me") == {str(sending.case.id): "send"}
    whole = ops.look(f"/cases/{ruling_.case.id}").json()
    assert (whole["asked"], whole["proposal"]["by"]) == (None, "operator")


def test_case_is_told_whole_with_what_may_be_ruled(ops):
    told = look(ops, scene.unknown())
    assert {offer["verdict"] for offer in told["offers"]} == {"happened", "did_not_happen", "abandon"}
    assert (told["effect"]["status"], len(told["snapshot"])) == ("unknown", 64)


def test_case_is_taken_parked_commented_and_comes_back(ops):
    matter = scene.unknown()
    address = f"/cases/{matter.case.id}"
    version = look(ops, matter)["version"]
    told = ops.send({"version": version, "minutes": 5}, f"{address}/take").json()
    assert told["owner"] == "operator"
    told = ops.send({"version": told["version"], "text": "who knows?"}, f"{address}/comment").json()
    assert [comment["text"] for comment in told["comments"]] == ["who knows?"]
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    body = {"version": told["version"], "until": until, "why": "the bank answers at noon"}
    told = ops.send(body, f"{address}/park").json()
    assert told["parked_until"] is not None
    assert told["parked_why"] == "the bank answers at noon"
    assert Case.objects.get().parked_until is not None
    assert ops.send({"version": told["version"]}, f"{address}/park").status_code == 200
    assert Case.objects.get().parked_until is None
    past = ops.send({"version": told["version"], "until": "2020-01-01T00:00:00Z"}, f"{address}/park")
    assert [error["pointer"] for error in past.json()["errors"]] == ["/until"]
    far = (timezone.now() + timedelta(days=8)).isoformat()
    distant = ops.send({"version": told["version"], "until": far}, f"{address}/park")
    assert [error["pointer"] for error in distant.json()["errors"]] == ["/until"]
    wordy = ops.send({"version": told["version"], "until": until, "why": "x" * 201}, f"{address}/park")
    assert [error["pointer"] for error in wordy.json()["errors"]] == ["/why"]
    entries = AuditEntry.objects.filter(object_type="case").order_by("seq")
    assert [(e.action, e.source) for e in entries] == [("take", "api"), ("park", "api"), ("unpark", "api")]


def test_case_is_given_back_by_whoever_has_it_and_by_nobody_else(ops, second):
    matter = scene.unknown()
    address = f"/cases/{matter.case.id}/take"
    told = ops.send({"version": look(ops, matter)["version"], "minutes": 5}, address).json()
    other = second.send({"version": told["version"], "release": True}, address)
    assert (other.status_code, other.json()["refusal"]) == (409, "CASE_NOT_YOURS")
    both = ops.send({"version": told["version"], "release": True, "minutes": 5}, address)
    assert [error["pointer"] for error in both.json()["errors"]] == ["/minutes"]
    told = ops.send({"version": told["version"], "release": True}, address).json()
    assert told["owner"] == ""
    assert second.send({"version": told["version"]}, address).json()["owner"] == "second"


def test_case_whose_take_has_run_out_is_told_as_nobodys(ops):
    matter = scene.unknown()
    address = f"/cases/{matter.case.id}"
    version = look(ops, matter)["version"]
    assert ops.send({"version": version, "minutes": 5}, f"{address}/take").json()["owner"] == "operator"
    alter(Case.objects.get(), owned_until=timezone.now() - timedelta(seconds=1))
    assert look(ops, matter)["owner"] == ""
    assert [case["owner"] for case in ops.look("/cases?owner=nobody").json()["results"]] == [""]


def test_ruling_on_what_was_seen_takes_effect_and_is_audited(ops):
    matter = scene.unknown()
    answer = ops.send(ruling(look(ops, matter), response={"id": 7}), f"/cases/{matter.case.id}/rulings")
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["outcome"], told["closed_as"]) == ("ruled", "ruled")
    assert matter.slot.status == EffectStatus.COMMITTED
    entry = AuditEntry.objects.get(action="ruling_rule")
    assert (entry.seq, entry.source, entry.actor) == (told["audit_seq"], "api", "operator by token ci")


@pytest.mark.parametrize("stale", ["version", "snapshot", "comment"])
def test_ruling_on_what_has_changed_since_is_412_with_what_and_by_whom(ops, second, stale):
    matter = scene.unknown()
    seen = look(ops, matter)
    if stale == "comment":
        body = {"version": seen["version"], "text": "wait!"}
        second.send(body, f"/cases/{matter.case.id}/comment")
    given = ruling(seen) | ({"version": 0} if stale == "version" else {})
    given |= {"snapshot": "0" * 64} if stale == "snapshot" else {}
    answer = ops.send(given, f"/cases/{matter.case.id}/rulings")
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["refusal"]) == (412, "stale", "MOVED")
    assert problem["current"]["version"] == look(ops, matter)["version"]
    if stale == "comment":
        assert problem["params"]["by"] == "second"
    assert not Ruling.objects.exists()


def test_second_sending_waits_for_a_second_person_who_approves_what_he_saw(ops, second):
    matter = scene.unknown(replay="non_replayable", approval="never")
    given = ruling(look(ops, matter), "did_not_happen", reason_code="never_left", attested=True)
    told = ops.send(given, f"/cases/{matter.case.id}/rulings").json()
    assert told["outcome"] == "proposed", told
    proposal = Proposal.objects.get()
    body = {"proposal_id": str(proposal.id), "decision": "approve", "reason": "so it is"}
    address = f"/cases/{matter.case.id}/approvals"
    own = ops.send(body | {"snapshot": look(ops, matter)["snapshot"]}, address)
    assert (own.status_code, own.json()["refusal"]) == (403, "SELF_APPROVAL")
    assert second.send(body | {"snapshot": "0" * 64}, address).status_code == 412
    answer = second.send(body | {"snapshot": look(second, matter)["snapshot"]}, address)
    assert answer.json()["outcome"] == "ruled", answer.content
    assert Ruling.objects.get().approved_by == "second"


def test_proposal_may_be_declined(ops, second):
    matter = scene.unknown(replay="non_replayable", approval="never")
    given = ruling(look(ops, matter), "did_not_happen", reason_code="never_left", attested=True)
    ops.send(given, f"/cases/{matter.case.id}/rulings")
    body = {"proposal_id": str(Proposal.objects.get().id), "decision": "reject", "reason": "not so fast"}
    answer = second.send(
        body | {"snapshot": look(second, matter)["snapshot"]}, f"/cases/{matter.case.id}/approvals"
    )
    assert (answer.json()["outcome"], Proposal.objects.get().decision) == ("rejected", "rejected")


@pytest.mark.parametrize("logged_in", [None, timedelta(hours=1)])
def test_token_of_nobody_who_logged_in_lately_rules_nothing(db, logged_in):
    owner = operator("service")
    moment = None if logged_in is None else timezone.now() - logged_in
    get_user_model().objects.filter(pk=owner.pk).update(last_login=moment)
    api, matter = Api(secret(*ApiToken.SCOPES, owner=owner)), scene.unknown()
    seen = look(api, matter)
    answer = api.send(ruling(seen), f"/cases/{matter.case.id}/rulings")
    assert (answer.status_code, answer.json()["refusal"]) == (403, "LOGIN_NOT_RECENT")
    body = {"version": seen["version"], "text": "but it may write"}
    assert api.send(body, f"/cases/{matter.case.id}/comment").status_code == 200
    assert not Ruling.objects.exists()


@pytest.mark.parametrize(
    ("act", "body", "pointer"),
    [
        ("take", {"version": 1, "minutes": 0}, "/minutes"),
        ("take", {}, "/version"),
        ("take", {"version": True}, "/version"),
        ("comment", {"version": 1, "text": ""}, "/text"),
        ("comment", {"version": 1, "text": " "}, "/text"),
        ("comment", {"version": 1, "text": "x" * 2001}, "/text"),
        ("inquire", {"x": 1}, "/x"),
        ("rulings", {"verdict": "maybe"}, "/verdict"),
        ("rulings", {"reason_code": "because"}, "/reason_code"),
        ("rulings", {"reference": "x" * 201}, "/reference"),
        ("rulings", {"compensate": 1}, "/compensate"),
        ("rulings", {"snapshot": "short"}, "/snapshot"),
        ("approvals", {"decision": "maybe"}, "/decision"),
    ],
)
@pytest.mark.looks_alike
def test_bad_member_is_named_and_nothing_is_written(ops, act, body, pointer):
    matter = scene.unknown()
    before = matter.written()
    given = ruling(look(ops, matter)) | body if act == "rulings" else body
    answer = ops.send(given, f"/cases/{matter.case.id}/{act}")
    assert answer.status_code == 400, answer.content
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert matter.written() == before


def test_case_outside_of_the_tokens_queues_does_not_exist(db):
    matter = scene.unknown()
    api = Api(secret(*ApiToken.SCOPES, owner=operator(), queues=("mail",)))
    assert api.look("/cases").json()["results"] == []
    assert api.look(f"/cases/{matter.case.id}").status_code == 404
    answer = api.send({"version": 1, "text": "x"}, f"/cases/{matter.case.id}/comment")
    assert answer.status_code == 404
    assert not Comment.objects.exists()


def test_approval_of_another_cases_proposal_is_404(ops, second):
    one, other = [scene.unknown(replay="non_replayable", approval="never") for _ in range(2)]
    given = ruling(look(ops, one), "did_not_happen", reason_code="never_left", attested=True)
    ops.send(given, f"/cases/{one.case.id}/rulings")
    body = {"proposal_id": str(Proposal.objects.get().id), "decision": "approve", "reason": "r"}
    answer = second.send(
        body | {"snapshot": look(second, one)["snapshot"]}, f"/cases/{other.case.id}/approvals"
    )
    assert answer.status_code == 404


def test_provider_is_asked_now_and_what_it_says_is_told(ops):
    matter = scene.unknown()
    address = f"/cases/{matter.case.id}/inquire"
    told = ops.send({}, address).json()
    assert (told["settled"], told["closed_as"]) == ("absent", "resolved")
    assert "inquiry" in [piece["source"] for piece in told["evidence"]]
    again = ops.send({}, address)
    assert (again.status_code, again.json()["refusal"]) == (409, "SLOT_STATUS")
