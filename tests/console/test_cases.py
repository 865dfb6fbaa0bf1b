"""The case page: what it shows, what it takes, what it refuses, and that a refusal keeps the words."""

from __future__ import annotations

import html
import json
import re
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse

from console import casefile, wording
from jobs import effect_kinds
from jobs.ledger.clock import clock
from jobs.models import AuditEntry, Case, Comment, Evidence, Proposal, Ruling
from jobs.models.audit import Source
from jobs.operations import cases, casework
from tests import build
from tests.console import matters
from tests.console.test_escape import EVIL, TAGS
from tests.console.test_queries import cost
from tests.operations import scene

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]
PEOPLE = ("adjudicator", "approver")
ACTS = ["rule", "take", "give-back", "park", "comment", "inquire"]


@pytest.fixture(autouse=True)
def _no_kind_left():
    yield
    effect_kinds.forget(scene.PAY)


@pytest.fixture
def adjudicator(browse):
    """A person who may rule."""
    return browse("adjudicator")


def page(client, case):
    return client.get(reverse("admin:case", args=[case.id]))


def seen(case):
    """Return what a form of the page as it is now carries."""
    view = cases.look(case.id)
    return {"version": view.case.version, "snapshot": view.snapshot}


def post(client, case, act, *extra, seen_as=None, **data):
    url = reverse(f"admin:case-{act}", args=[case.id, *extra])
    return client.post(url, (seen_as or seen(case)) | data)


def why(code="other", reason="looked at the provider's own list"):
    return {"reason_code": code, "reason": reason}


def text_of(answer):
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


# -- looking


def test_page_tells_what_we_did_what_was_heard_and_who_may_still_act(viewer):
    matter = scene.unknown()
    matters.evidence(matter.case, outcome="no_answer", body="read time-out after 10.0 s")
    said = text_of(page(viewer, matter.case))
    for words in (
        "pay acme",
        "42.00 EUR",
        "Permission to send granted",
        "to attempt 1, generation 1",
        "read time-out after 10.0 s",
        "Can the sender still act?",
        "can send no more since",
        "The case was opened",
        matter.slot.id,
    ):
        assert words in said
    assert (
        f'href="{reverse("admin:job", args=[matter.job.id])}"' in page(viewer, matter.case).content.decode()
    )


def test_page_says_what_each_ruling_will_do_to_who_may_not_rule(viewer):
    answer = page(viewer, scene.unknown().case)
    assert "Will send pay acme, 42.00 EUR once more" in text_of(answer)
    assert 'name="verdict"' not in answer.content.decode()
    assert "/rule/" not in answer.content.decode()
    assert "/take/" not in answer.content.decode()


def test_conflict_shows_field_by_field_what_differs(adjudicator):
    matter = scene.conflict(sent="unknown")
    body = page(adjudicator, matter.of("conflict")).content.decode()
    assert "<del>42.00</del>" in body
    assert "<ins>50.00</ins>" in body
    assert "<code>/to</code>" in body
    assert "1 field is equal" in body


def test_secrets_stay_redacted_even_where_they_differ(adjudicator):
    case = matters.open_case(
        "conflict",
        payload='{"card": {"number": "4111-2222-3333"}, "to": "a"}',
        conflict_payload='{"card": {"number": "4222-3333-4444"}, "to": "a"}',
    )
    body = page(adjudicator, case).content.decode()
    assert "4111-2222-3333" not in body
    assert "4222-3333-4444" not in body
    assert "/card" in body


def test_verdict_that_is_closed_is_disabled_and_says_why_and_when_it_opens(adjudicator):
    matter = scene.unknown(settle_after=300 * 86400)
    body = page(adjudicator, matter.case).content.decode()
    (box,) = re.findall(r'<input type="radio"[^>]*value="did_not_happen"[^>]*>', body)
    assert "disabled" in box
    assert "Opens by itself" in body
    assert not re.search(r'value="happened"[^>]*disabled', body)


def test_every_guard_is_shown_met_or_not_with_its_time(adjudicator):
    matter = scene.unknown(settle_after=300 * 86400, second_person="always")
    said = " ".join(text_of(page(adjudicator, matter.case)).split())
    assert re.search(r"Holds: Nobody knows the outcome since \S+", said)
    assert re.search(r"Holds: The sender’s attempt is over since \S+", said)
    assert re.search(r"Holds: 60 s in flight are over since \S+", said)
    assert re.search(r"Does not hold yet: Settle-by is past in \d+ d", said)
    assert "Takes a second person after you" in said
    assert said.count("Nobody knows the outcome") == 3, "an open choice shows what holds of it too"


def test_guard_without_a_time_says_what_stands_against_it(adjudicator):
    said = " ".join(text_of(page(adjudicator, scene.conflict(sent="unknown").of("conflict"))).split())
    assert "Does not hold yet: The key was never sent The key may have been sent" in said
    assert "You hold the permission" not in said


def test_confirmation_of_another_sending_repeats_the_times_and_what_holds(adjudicator):
    matter = scene.unknown()
    matters.alter(matter.case, sla_due_at=clock() + timedelta(hours=1))
    answer = post(adjudicator, matter.case, "rule", verdict="did_not_happen", **why("provider_denies"))
    said = " ".join(text_of(answer).split())
    assert "SLA 59 min" in said
    assert "Settle-by" in said
    assert "What has to hold, and does" in said
    assert "Holds: Settle-by is past since" in said
    other = text_of(post(adjudicator, matter.case, "rule", verdict="abandon", **why()))
    assert "Settle-by" not in other


def test_no_verdict_is_chosen_beforehand_and_no_reason(adjudicator):
    body = page(adjudicator, scene.unknown().case).content.decode()
    assert not re.search(r'<input type="radio"[^>]*checked', body)
    assert '<option value="" selected>Choose a reason' in body


def test_case_that_is_not_there_is_not_found(viewer):
    nobody = reverse("admin:case", args=[uuid.uuid4()])
    assert viewer.get(nobody).status_code == 404
    assert viewer.post(reverse("admin:case-take", args=[uuid.uuid4()])).status_code in (403, 404)


def test_page_costs_the_same_with_little_evidence_and_with_much(adjudicator):
    case = matters.open_case()
    url = reverse("admin:case", args=[case.id])
    matters.evidence(case)
    few = cost(adjudicator, url)
    for _ in range(9):
        matters.evidence(case, body='{"a": 1}')
    assert cost(adjudicator, url) == few
    assert few <= 30


def test_region_says_when_the_case_moved_since_the_form_was_shown(adjudicator):
    matter = scene.unknown()
    url = reverse("admin:case", args=[matter.case.id])
    headers = {"HX-Request": "true", "HX-Target": "state"}
    version = matter.case.version
    assert (
        "moved while you were looking" not in adjudicator.get(f"{url}?seen={version}", headers=headers).text
    )
    casework.comment(matter.case.id, "news", actor=scene.user("eve", "rule_effect"))
    assert "moved while you were looking" in adjudicator.get(f"{url}?seen={version}", headers=headers).text


# -- ruling


def test_it_happened_is_ruled_and_leads_back_to_the_case(adjudicator):
    matter = scene.unknown()
    case = matter.case
    answer = post(
        adjudicator, case, "rule", verdict="happened", reference="ch_7", response='{"id": 7}', **why()
    )
    assert (answer.status_code, answer.url) == (302, reverse("admin:case", args=[case.id]))
    assert matter.slot.status == "committed"
    ruling = Ruling.objects.get()
    assert (ruling.by, ruling.reference, ruling.response) == ("adjudicator-1", "ch_7", '{"id":7}')
    entry = AuditEntry.objects.get(action="ruling_rule")
    assert (entry.source, entry.user, entry.snapshot) == (Source.CONSOLE, "adjudicator-1", ruling.snapshot)
    assert entry.request_id
    said = text_of(page(adjudicator, case))
    assert "Ruled: “It happened”. The case is closed." in said
    assert "looked at the provider's own list" in said


def test_abandon_asks_once_more_and_says_what_it_will_do(adjudicator):
    matter = scene.unknown()
    case, sight = matter.case, seen(matter.case)
    first = post(adjudicator, case, "rule", seen_as=sight, verdict="abandon", **why("too_late"))
    assert first.status_code == 200
    said = text_of(first)
    assert "Gives pay acme, 42.00 EUR up" in said
    assert "Nothing is written yet" in said
    assert Ruling.objects.count() == 0
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', first.content.decode()))
    assert fields["snapshot"] == sight["snapshot"]
    fields.pop("csrfmiddlewaretoken")
    url = reverse("admin:case-rule", args=[case.id])
    assert adjudicator.post(url, {k: html.unescape(v) for k, v in fields.items()}).status_code == 302
    assert matter.job.status == "failed"


def test_back_from_the_confirmation_keeps_every_word_and_writes_nothing(adjudicator):
    case = scene.unknown().case
    answer = post(
        adjudicator,
        case,
        "rule",
        verdict="abandon",
        back="1",
        confirmed="abandon",
        **why("too_late", "my words"),
    )
    assert answer.status_code == 200
    body = answer.content.decode()
    assert "my words" in body
    assert re.search(r'value="abandon"[^>]*checked', body)
    assert 'role="alert"' not in body
    assert Ruling.objects.count() == 0


def test_confirmation_of_another_verdict_does_not_count(adjudicator):
    case = scene.unknown().case
    answer = post(adjudicator, case, "rule", verdict="abandon", confirmed="did_not_happen", **why())
    assert answer.status_code == 200
    assert Ruling.objects.count() == 0


def test_what_permits_another_sending_waits_for_a_second_person(adjudicator, browse):
    matter = scene.unknown(second_person="always")
    case = matter.case
    sent = {"verdict": "did_not_happen", "confirmed": "did_not_happen", **why("provider_denies")}
    assert post(adjudicator, case, "rule", **sent).status_code == 302
    proposal = Proposal.objects.get()
    assert (proposal.by, matter.slot.status) == ("adjudicator-1", "unknown")
    said = text_of(page(adjudicator, case))
    assert "waits for a second person" in said
    assert "You asked for it; another person must approve" in said
    approver = browse("approver")
    body = page(approver, case).content.decode()
    assert f"/proposals/{proposal.id}/approve/" in body
    assert "looked at the provider&#x27;s own list" in body
    assert post(approver, case, "approve", proposal.id, reason="seen it too").status_code == 302
    assert matter.slot.status == "absent"
    ruling = Ruling.objects.get()
    assert (ruling.by, ruling.approved_by) == ("adjudicator-1", "approver-1")


def test_ruling_that_permits_another_sending_asks_who_this_is_and_comes_back_to_the_confirmation(
    adjudicator, django_user_model
):
    user = django_user_model.objects.get(username="adjudicator-1")
    user.set_password("a password")
    user.save()
    adjudicator.force_login(user)  # long ago: this does not tell when
    matter = scene.unknown()
    sent = {"verdict": "did_not_happen", "confirmed": "did_not_happen", **why("provider_denies")}
    asked = post(adjudicator, matter.case, "rule", **sent)
    assert "Say once more who you are" in text_of(asked)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.content.decode()))
    fields = {k: html.unescape(v) for k, v in fields.items() if k != "csrfmiddlewaretoken"}
    assert "confirmed" not in fields
    again = post(adjudicator, matter.case, "rule", **fields, password="a password")
    assert "Nothing is written yet" in text_of(again)
    assert "looked at the provider's own list" in text_of(again)
    assert Ruling.objects.count() == 0
    assert post(adjudicator, matter.case, "rule", **sent).status_code == 302
    assert Ruling.objects.get().verdict == "did_not_happen"


def test_nobody_approves_what_he_asked_for_himself(browse, django_user_model):
    matter = scene.unknown(second_person="always")
    case = matter.case
    both = browse("admin")
    sent = {"verdict": "did_not_happen", "confirmed": "did_not_happen", **why("provider_denies")}
    assert post(both, case, "rule", **sent).status_code == 302
    proposal = Proposal.objects.get()
    assert "/approve/" not in page(both, case).content.decode()
    answer = post(both, case, "approve", proposal.id, reason="I say so twice")
    assert answer.status_code == 403
    assert "another person must approve" in text_of(answer)
    assert matter.slot.status == "unknown"
    assert Proposal.objects.get().decision == ""


def test_rejected_question_leaves_the_case_open(adjudicator, browse):
    matter = scene.unknown(second_person="always")
    case = matter.case
    sent = {"verdict": "did_not_happen", "confirmed": "did_not_happen", **why("provider_denies")}
    post(adjudicator, case, "rule", **sent)
    proposal = Proposal.objects.get()
    assert post(browse("approver"), case, "reject", proposal.id, reason="not enough").status_code == 302
    assert Proposal.objects.get().decision == "rejected"
    assert Case.objects.get(pk=case.pk).closed_at is None


def test_sending_that_waits_for_approval_is_approved_by_an_approver_only(browse):
    matter = scene.approval(by="somebody")
    case = matter.case
    assert post(browse("adjudicator"), case, "rule", verdict="send", **why("checked")).status_code == 403
    assert Ruling.objects.count() == 0
    assert post(browse("approver"), case, "rule", verdict="send", **why("checked")).status_code == 302
    assert Proposal.objects.get(case=case).decision == "approved"


def test_contradiction_is_acknowledged(adjudicator):
    case = matters.open_case("contradiction", status="committed")
    assert post(adjudicator, case, "rule", verdict="acknowledge", **why("no_harm")).status_code == 302
    assert Case.objects.get(pk=case.pk).closed_as == "ruled"


def test_conflict_can_be_revised_with_new_arguments(adjudicator):
    matter = scene.conflict()
    case = matter.of("conflict")
    answer = post(adjudicator, case, "rule", verdict="revise", arguments='{"n": 2}', **why("input_was_wrong"))
    assert answer.status_code == 302, text_of(answer)
    assert matter.job.revision == 2


# -- refusing


@pytest.mark.parametrize("verdict", ["happened", "abandon"])
def test_ruling_on_what_has_moved_says_what_changed_and_keeps_the_words(adjudicator, verdict):
    matter = scene.unknown()
    case, sight = matter.case, seen(matter.case)
    casework.comment(case.id, "wait a moment", actor=scene.user("eve", "rule_effect"))
    before = matter.written()
    answer = post(
        adjudicator,
        case,
        "rule",
        seen_as=sight,
        verdict=verdict,
        reference="ch_9",
        **why(reason="my own words"),
    )
    assert answer.status_code == 409
    said = text_of(answer)
    assert "Nothing was written: the case moved while you were deciding." in said
    assert "eve commented at" in said
    body = answer.content.decode()
    assert "my own words" in body
    assert 'value="ch_9"' in body
    assert not re.search(r'<input type="radio"[^>]*checked', body)
    assert f'name="snapshot" value="{seen(case)["snapshot"]}"' in body
    assert matter.written() == before


def test_guard_that_does_not_hold_is_named_and_nothing_is_asked(adjudicator):
    matter = scene.unknown(settle_after=300 * 86400)
    before = matter.written()
    answer = post(adjudicator, matter.case, "rule", verdict="did_not_happen", **why("provider_denies"))
    assert answer.status_code == 409
    assert "The provider may still come to know of it until" in text_of(answer)
    assert matter.written() == before


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"verdict": ""}, "Choose what is true."),
        ({"verdict": "rebind"}, "Select a valid choice"),
        ({"verdict": "happened", "reason": ""}, "In your own words: This field is required."),
        ({"verdict": "happened", "reason_code": ""}, "Reason: This field is required."),
        ({"verdict": "happened", "reason_code": "nonsense"}, "Reason: Select a valid choice"),
        ({"verdict": "happened", "response": "{no"}, "Response: This cannot be read: "),
        ({"verdict": "happened", "response": '{"a":1,"a":2}'}, "Response: This cannot be read: "),
        ({"verdict": "happened", "response": "[" * 9999}, "Response: This cannot be read: "),
        ({"verdict": "happened", "reference": "x" * 201}, "Provider reference:"),
        ({"verdict": "happened", "reason": "x" * 1001}, "In your own words:"),
        ({"verdict": "happened", "reason": "a\0b"}, "In your own words:"),
        ({"version": "x"}, "does not say what you saw"),
        ({"snapshot": "short"}, "does not say what you saw"),
        ({"version": str(2**70)}, ""),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_written(adjudicator, data, words):
    matter = scene.unknown()
    before = matter.written()
    sent = {"verdict": "happened", **why(reason="kept words")} | data
    answer = post(adjudicator, matter.case, "rule", **sent)
    assert answer.status_code in (400, 409)
    assert words in text_of(answer)
    if "reason" not in data:
        assert "kept words" in answer.content.decode()
    assert matter.written() == before


def test_reason_of_another_verdict_is_refused_by_name(adjudicator):
    matter = scene.unknown()
    answer = post(adjudicator, matter.case, "rule", verdict="happened", **why("too_late"))
    assert answer.status_code == 409
    assert "For “It happened” the reason is one of: “The provider confirms it”, “It" in text_of(answer)
    [field] = re.findall(r'<select [^>]*name="reason_code"[^>]*>', answer.content.decode())
    assert 'aria-invalid="true"' in field


def test_reference_that_does_not_look_like_one_is_refused(adjudicator):
    matter = scene.unknown(reference=r"ch_[0-9]+")
    answer = post(adjudicator, matter.case, "rule", verdict="happened", reference="no", **why())
    assert answer.status_code == 409
    assert "does not look like" in text_of(answer)
    [field] = re.findall(r'<input[^>]* name="reference"[^>]*>', answer.content.decode())
    assert 'aria-invalid="true"' in field


def test_what_a_second_person_was_asked_for_is_said_in_the_words_of_the_page():
    said = wording.refusal("MOVED_ASKED", {"by": "bea", "verdict": "did_not_happen", "at": build.T0})
    assert said == "bea asked for “It did not happen” at 2026-03-01 12:00:00 UTC."


def test_closed_case_takes_nothing_more(adjudicator):
    case = scene.unknown().case
    post(adjudicator, case, "rule", verdict="happened", reference="ch_7", **why())
    for act, data in [("rule", {"verdict": "happened", **why()}), ("take", {}), ("comment", {"text": "x"})]:
        assert post(adjudicator, case, act, **data).status_code == 409
    assert Ruling.objects.count() == 1
    assert "/take/" not in page(adjudicator, case).content.decode()


# -- beside


def test_case_is_taken_and_given_back(adjudicator, browse):
    case = scene.unknown().case
    assert post(adjudicator, case, "take").status_code == 302
    assert Case.objects.get(pk=case.pk).owner == "adjudicator-1"
    other = post(browse("approver"), case, "take")
    assert other.status_code == 409
    assert "The case is adjudicator-1's until" in text_of(other)
    assert post(browse("approver"), case, "give-back").status_code == 409
    assert post(adjudicator, case, "give-back").status_code == 302
    assert Case.objects.get(pk=case.pk).owner == ""


def test_case_is_parked_and_brought_back(adjudicator):
    case = scene.unknown().case
    assert post(adjudicator, case, "park", minutes="120").status_code == 302
    until = Case.objects.get(pk=case.pk).parked_until
    assert until is not None
    assert timedelta(minutes=118) < until - clock() < timedelta(minutes=121)
    assert post(adjudicator, case, "park", minutes="").status_code == 302
    assert Case.objects.get(pk=case.pk).parked_until is None
    assert post(adjudicator, case, "park", minutes="99").status_code == 400


def test_case_is_parked_until_a_time_with_a_word_that_the_list_shows_too(adjudicator):
    case = scene.unknown().case
    until = (clock() + timedelta(days=2)).replace(second=0, microsecond=0)
    typed = {"minutes": "until", "until": until.strftime("%Y-%m-%dT%H:%M"), "why": "the bank opens then"}
    assert post(adjudicator, case, "park", **typed).status_code == 302
    found = Case.objects.get(pk=case.pk)
    assert (found.parked_until, found.parked_why) == (until, "the bank opens then")
    for answer in (page(adjudicator, case), adjudicator.get(reverse("admin:inbox"))):
        assert "the bank opens then" in text_of(answer)
    assert post(adjudicator, case, "park", minutes="").status_code == 302
    assert Case.objects.get(pk=case.pk).parked_why == ""
    assert "the bank opens then" not in text_of(adjudicator.get(reverse("admin:inbox")))


@pytest.mark.parametrize(
    ("days", "status", "words"),
    [
        (None, 400, "Say the time until which it is parked."),
        (-1, 409, "until a time that is still to come"),
        (8, 409, "for at most 7 days"),
    ],
)
def test_time_to_park_until_that_cannot_be_is_refused_at_its_field(adjudicator, days, status, words):
    case = scene.unknown().case
    until = "" if days is None else (clock() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")
    answer = post(adjudicator, case, "park", minutes="until", until=until, why="kept words")
    assert answer.status_code == status
    assert words in text_of(answer)
    body = answer.content.decode()
    [field] = re.findall(r'<input[^>]* name="until"[^>]*>', body)
    assert 'aria-invalid="true"' in field
    assert "kept words" in body
    assert Case.objects.get(pk=case.pk).parked_until is None
    assert not AuditEntry.objects.exists()


def test_history_tells_who_took_parked_asked_and_looked_and_the_opening_with_its_sla(adjudicator, browse):
    case = scene.unknown(settle_after=300 * 86400).case
    matters.alter(case, sla_due_at=case.opened_at + timedelta(hours=4))
    post(adjudicator, case, "take")
    post(adjudicator, case, "park", minutes="30", why="waits for the bank")
    post(adjudicator, case, "park", minutes="")
    post(adjudicator, case, "give-back")
    post(adjudicator, case, "inquire")
    adjudicator.post(reverse("admin:case-reveal", args=[case.id]), {"reason": "which account?"})
    for answer in (
        page(browse("viewer"), case),
        browse("viewer").get(reverse("admin:casefile", args=[case.id])),
    ):
        said = " ".join(text_of(answer).split())
        for words in (
            r"adjudicator-1 took the case until \d",
            r"adjudicator-1 parked it until .+? waits for the bank",
            "adjudicator-1 brought it back",
            "adjudicator-1 gave the case back",
            "adjudicator-1 asked the provider",
            "adjudicator-1 revealed what is hidden which account",
            "The case was opened, SLA 4 h",
        ):
            assert re.search(words, said), words


def test_comment_is_written_and_an_empty_one_is_named(adjudicator):
    case = scene.unknown().case
    assert post(adjudicator, case, "comment", text="the status page is red").status_code == 302
    assert Comment.objects.get().text == "the status page is red"
    assert "the status page is red" in text_of(page(adjudicator, case))
    assert post(adjudicator, case, "comment", text=" ").status_code == 400
    assert Comment.objects.count() == 1


@pytest.mark.parametrize("act", ["take", "give-back", "park", "comment"])
def test_act_on_what_has_moved_is_refused_and_says_so(adjudicator, act):
    matter = scene.unknown()
    case, sight = matter.case, seen(matter.case)
    casework.comment(case.id, "news", actor=scene.user("eve", "rule_effect"))
    answer = post(adjudicator, case, act, seen_as=sight, text="kept words", minutes="30")
    assert answer.status_code == 409
    assert "eve commented at" in text_of(answer)
    if act == "comment":
        assert "kept words" in answer.content.decode()
    assert Comment.objects.count() == 1


def test_provider_is_asked_and_not_again_at_once(adjudicator):
    matter = scene.unknown(settle_after=300 * 86400)
    case = matter.case
    assert "/inquire/" in page(adjudicator, case).content.decode()
    assert post(adjudicator, case, "inquire").status_code == 302
    assert (matter.slot.inquire_asked_by, matter.slot.inquiries) == ("adjudicator-1", 0)
    body = page(adjudicator, case).content.decode()
    assert "adjudicator-1 asked for an inquiry" in body
    assert re.search(
        r'<button class="button" type="submit" disabled>[^/]*/?[^>]*>.*?Inquire now', body, re.DOTALL
    )
    again = post(adjudicator, case, "inquire")
    assert again.status_code == 409
    assert "no worker has taken it up yet" in text_of(again)


# -- who may


@pytest.mark.parametrize("act", ACTS)
def test_act_is_for_who_may_rule_or_approve_and_its_address_shows_nothing(browse, act):
    case = scene.unknown().case
    url = reverse(f"admin:case-{act}", args=[case.id])
    for role in ("viewer", "operator", "nobody"):
        assert browse(role).post(url, seen(case)).status_code == 403, role
    for role in ("outsider", "anonymous"):
        answer = browse(role).post(url, seen(case))
        assert answer.status_code == 302
        assert "login" in answer.url
    for method in ("put", "patch", "delete"):
        assert getattr(browse("adjudicator"), method)(url).status_code == 405
    assert Ruling.objects.count() == Comment.objects.count() == 0


def test_adjudicator_neither_approves_nor_rejects_what_another_asked(browse, adjudicator):
    matter = scene.unknown(second_person="always")
    case = matter.case
    sent = {"verdict": "did_not_happen", "confirmed": "did_not_happen", **why("provider_denies")}
    post(browse("admin"), case, "rule", **sent)
    proposal = Proposal.objects.get()
    assert post(adjudicator, case, "approve", proposal.id, reason="x").status_code == 403
    assert post(adjudicator, case, "reject", proposal.id, reason="x").status_code == 403
    assert Proposal.objects.get().decision == ""


def test_form_without_its_token_is_refused(adjudicator, django_user_model):
    from django.test import Client

    case = scene.unknown().case
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(django_user_model.objects.get(username="adjudicator-1"))
    url = reverse("admin:case-take", args=[case.id])
    assert strict.post(url, seen(case)).status_code == 403


@pytest.mark.parametrize(
    ("settle", "outcome", "after", "proves"),
    [
        (100, "not_found", 41, "nothing yet: 1 min before settle-by"),
        (100, "not_found", 101, "nothing by itself"),
        (None, "not_found", 41, "nothing: the kind declares no settle-by"),
        (100, "no_answer", 41, "nothing: the provider could not be asked"),
        (100, "found_other", 41, "something is there, but not what we sent"),
    ],
)
def test_evidence_says_what_it_proves_and_how_long_before_settle_by_it_came(
    viewer, settle, outcome, after, proves
):
    matter = scene.unknown(settle_after=settle)
    matters.evidence(matter.case, outcome=outcome, now=build.at(after))
    assert proves in text_of(page(viewer, matter.case))


def test_not_found_while_the_sender_runs_proves_nothing_yet():
    view = scene.unknown().look(build.at(2))
    row = Evidence(outcome="not_found", at=build.at(2), decisive=False)
    assert casefile.proves(row, replace(view, settle_by=None)) == "nothing yet: the sender has not ended"


def test_page_tells_the_target_the_provider_and_the_environment_and_since_when_a_lost_sender_is_fenced(
    viewer,
):
    matter = scene.lost()
    said = " ".join(text_of(page(viewer, matter.case)).split())
    assert "To acme in DEMO . tests.pay , non_replayable" in said
    assert re.search(r"Fenced its generation is over \d+ d ago, \S+", said)
    scene.kind(provider="Northgate Pay")
    said = " ".join(text_of(page(viewer, matter.case)).split())
    assert "To acme through Northgate Pay in DEMO ." in said


# -- the runbook


def test_runbook_is_shown_as_steps_with_the_cases_own_words_and_a_link_to_the_provider(viewer):
    matter = scene.unknown(
        owner="payments team",
        runbook="1. Does {key} stand there?\n2. Or {amount} for {label}?",
        console="https://pay.example/find?key={key}",
    )
    body = page(viewer, matter.case).content.decode()
    key = matter.slot.id
    assert f"<li>Does <code>{key}</code> stand there?</li>" in body
    assert "<li>Or <code>42.00 EUR</code> for <code>pay acme</code>?</li>" in body
    assert f'href="https://pay.example/find?key={key}" rel="noopener noreferrer"' in body
    assert "Look it up at the provider" in body
    assert "payments team" in body


def test_runbook_that_is_an_address_is_a_link_and_without_a_console_there_is_none(viewer):
    body = page(viewer, scene.unknown(runbook="https://runbooks.example/pay").case).content.decode()
    assert 'href="https://runbooks.example/pay"' in body
    assert "Look it up at the provider" not in body
    assert "none is written" in text_of(page(viewer, scene.unknown().case))


@pytest.mark.parametrize("evil", EVIL)
def test_runbook_and_what_is_filled_into_it_stay_text_and_the_link_leads_nowhere_else(viewer, evil):
    book = "\n".join(f"{n}. {evil} {{label}}" for n in (1, 2))
    scene.kind(runbook=book[:4000], owner=evil, console="https://pay.example/{label}?r={reference}")
    case = matters.open_case(label=evil[:200], reference=evil[:200], kind="unknown", slot="evil")
    with build.unguarded(), connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_effectslot SET kind = %s WHERE id = %s", [scene.PAY, case.effect_id])
    body = page(viewer, case).content.decode()
    assert not TAGS.search(body)
    links = re.findall(r'href="(https://pay[^"]*)"', body)
    assert len(links) == 1
    assert re.fullmatch(r"https://pay\.example/[A-Za-z0-9._~%-]*\?r=[A-Za-z0-9._~%-]*", links[0])


def test_every_runbook_of_the_demonstration_reads_as_steps():
    from demo.billing import effects
    from jobs import runbooks

    for kind in (effects.charge, effects.send_mail):
        steps = runbooks.steps(kind.runbook, dict.fromkeys(runbooks.NAMES, "x"))
        assert len(steps) >= 4
        assert "{" not in "".join(part.text for step in steps for part in step)


# -- what was written stays text


@pytest.mark.parametrize("evil", EVIL)
def test_what_others_wrote_stays_text(browse, evil):
    client = browse("admin")
    case = matters.open_case(
        "conflict",
        label=evil[:200],
        target=evil,
        currency=evil[:8],
        etag=evil,
        reference=evil,
        payload=json.dumps({evil: evil, "same": 1}),
        conflict_payload=json.dumps({evil: evil + "x", "same": 1}),
    )
    matters.evidence(case, body=evil, reference=evil, actor=evil, outcome=evil[:20])
    matters.evidence(case, body=json.dumps({evil: evil}))
    casework.comment(case.id, evil, actor=scene.user("eve", "rule_effect"))
    eve = scene.user("mallory", "rule_effect")
    casework.park(case.id, clock() + timedelta(minutes=5), actor=eve, why=evil[:200])
    matters.alter(case, owner=evil[:150], owned_until=clock() + timedelta(minutes=5))
    answers = [
        page(client, case),
        client.get(reverse("admin:inbox")),
        client.get("/"),
        post(client, case, "rule", verdict=evil, reason=evil, reason_code=evil, arguments=evil, effects=evil),
        post(client, case, "rule", verdict="use_recorded", reason=evil, reason_code=evil),
        post(client, case, "comment", text=evil * 300),
        post(client, case, "rule", verdict="abandon", reason=evil, reason_code="other"),
    ]
    for answer in answers:
        body = answer.content.decode()
        assert answer.status_code in (200, 400, 409)
        assert not TAGS.search(body)
        assert "14" + "2026" not in body
    begins = html.escape(evil[:8])[:8].replace("\u202e", "\\u202e")
    assert sum(begins in a.content.decode() for a in answers) >= 5


def test_no_page_of_a_case_has_a_script_or_a_style_of_its_own(browse):
    client = browse("admin")
    matter = scene.unknown()
    pages = [
        page(client, matter.case),
        client.get(reverse("admin:inbox")),
        post(client, matter.case, "rule", verdict="abandon", **why()),
        post(client, matter.case, "rule", verdict=""),
    ]
    for answer in pages:
        body = answer.content.decode()
        assert "<style" not in body
        assert not re.search(r"\sstyle=", body)
        assert not re.search(r"\son[a-z]+=", body)
        assert not re.search(r"<script(?![^>]*\ssrc=)[^>]*>", body)
        assert "script-src" in answer.headers["Content-Security-Policy"]


def test_jobs_page_lists_its_effects_with_key_reference_and_case(viewer):
    matter = scene.unknown()
    body = viewer.get(reverse("admin:job", args=[matter.job.id])).content.decode()
    assert f'href="{reverse("admin:case", args=[matter.case.id])}">open</a>' in body
    assert f'title="{matter.slot.id}"' in body


@pytest.mark.parametrize(
    ("outcome", "said", "proves"),
    [
        ("did_not_happen", "It did not happen", "It settled the effect"),
        ("send", "Send it", "a decision, no proof"),
        ("not_found", "not found", "It settled the effect"),
    ],
)
def test_ruling_stands_among_the_evidence_in_its_own_words(adjudicator, outcome, said, proves):
    matter = scene.unknown()
    matters.evidence(
        matter.case, source="person", outcome=outcome, decisive=True, actor="worker host:1:8d0c41f2"
    )
    text = page(adjudicator, matter.case).content.decode()
    heard = text[text.index('id="says"') :].split("</table>")[0]
    assert {said, proves, ">worker host:1<"} == {
        one for one in (said, proves, ">worker host:1<") if one in heard
    }
