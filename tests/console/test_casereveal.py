"""What is hidden of a case is shown once, with a reason, to who may see it; the audit keeps none of it."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from jobs import redact
from jobs.models import AuditEntry
from tests import build
from tests.console import matters
from tests.console.test_cases import page, text_of
from tests.console.test_escape import EVIL, TAGS

pytestmark = pytest.mark.django_db
OURS, THEIRS, ANSWERED = "4111-2222-3333", "4222-3333-4444", "tok-99887766"


def torn(**more):
    """Open a conflict over a secret field, with an answer of the provider that names a secret."""
    case = matters.open_case(
        "conflict",
        payload=json.dumps({"card": {"number": OURS}, "to": "a"}),
        conflict_payload=json.dumps({"card": {"number": THEIRS}, "to": "a"}),
        response=json.dumps({"token": ANSWERED}),
        **more,
    )
    matters.evidence(case, body=json.dumps({"password": "evidence-hunter2"}))
    return case


def test_both_sides_of_a_conflict_the_answer_and_the_evidence_are_revealed_once_with_a_reason(browse):
    case, secrets = torn(), (OURS, THEIRS, ANSWERED, "evidence-hunter2")
    url = reverse("admin:case-reveal", args=[case.id])
    client = browse("adjudicator")
    before = page(client, case).content.decode()
    assert url in before
    assert not any(secret in before for secret in secrets)
    assert not any(secret in client.get(url).content.decode() for secret in secrets)
    assert client.post(url, {"reason": " "}).status_code == 400
    assert not AuditEntry.objects.exists()
    shown = client.post(url, {"reason": "the customer disputes it"})
    body = shown.content.decode()
    assert all(secret in body for secret in secrets)
    assert f"<del>{OURS}</del>" in body
    assert f"<ins>{THEIRS}</ins>" in body
    assert "secrets stay redacted" not in body
    assert 'class="redact"' not in body
    assert "no-store" in shown["Cache-Control"]
    for again in (client.get(url), page(client, case)):
        assert not any(secret in again.content.decode() for secret in secrets)
    entry = AuditEntry.objects.get()
    told = (entry.action, entry.object_type, entry.object_id, entry.reason)
    assert told == ("reveal", "case", str(case.id), "the customer disputes it")
    assert entry.source == "console"
    kept = entry.before + entry.after
    assert not any(secret in kept for secret in secrets)
    assert json.loads(entry.after) == {
        "brought": True, "evidence": 1, "response": True, "slot_version": 1, "version": case.version,
    }  # fmt: skip


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_see_payloads_finds_no_button_and_is_refused(browse, role):
    case = torn()
    url = reverse("admin:case-reveal", args=[case.id])
    client = browse(role)
    assert url not in page(client, case).content.decode()
    for answer in (client.get(url), client.post(url, {"reason": "let me see"})):
        assert answer.status_code == 403
        assert OURS not in answer.content.decode()
    assert not AuditEntry.objects.exists()


def test_case_without_a_conflict_shows_its_payload_and_a_closed_one_too(browse):
    case = matters.open_case(payload=json.dumps({"password": OURS}))
    matters.alter(case, closed_at=build.T0, closed_as="resolved")
    body = text_of(browse("approver").post(reverse("admin:case-reveal", args=[case.id]), {"reason": "r"}))
    assert OURS in body
    assert "What differs" not in body


def test_case_that_is_not_there_is_not_found(browse):
    url = reverse("admin:case-reveal", args=["0198f000-0000-7000-8000-000000000000"])
    assert browse("admin").get(url).status_code == 404
    assert browse("admin").post(url, {"reason": "r"}).status_code == 404


@pytest.mark.parametrize("evil", EVIL)
def test_what_is_revealed_stays_text(browse, evil):
    sides = [json.dumps({evil: {"password": evil + side}}) for side in "ab"]
    case = matters.open_case("conflict", payload=sides[0], conflict_payload=sides[1], label=evil[:200])
    matters.evidence(case, body=evil)
    answer = browse("admin").post(reverse("admin:case-reveal", args=[case.id]), {"reason": evil[:900]})
    body = answer.content.decode()
    assert answer.status_code == 200
    assert redact.MASK not in body
    assert not TAGS.search(body)
