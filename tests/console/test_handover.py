"""The hand-over report: what people did beside ruling, from the audit, bounded."""

import html
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from console.pages import handover
from jobs.ledger.clock import clock
from jobs.operations import casework
from tests.console import matters
from tests.console.test_escape import EVIL, TAGS
from tests.operations import scene

pytestmark = pytest.mark.django_db


def text(client):
    body = client.get(reverse("admin:handover")).content.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_report_tells_who_took_parked_and_asked_and_of_which_case(viewer):
    assert "Nobody has taken, parked or asked." in text(viewer)
    case, ada = matters.open_case(label="INV-7"), scene.user("ada", "rule_effect")
    casework.take(case.pk, actor=ada)
    casework.park(case.pk, clock() + timedelta(hours=1), actor=ada, why="the bank answers at noon")
    said = text(viewer)
    assert re.search(r"ada parked it until .+? INV-7 : the bank answers at noon", said)
    assert re.search(r"ada took the case until .+? INV-7", said)


def test_report_looks_at_the_newest_entries_of_the_audit_only(viewer, monkeypatch):
    case, ada = matters.open_case(label="INV-7"), scene.user("ada", "rule_effect")
    casework.take(case.pk, actor=ada)
    casework.give_back(case.pk, actor=ada)
    monkeypatch.setattr(handover, "READ", 1)
    said = text(viewer)
    assert "ada gave the case back" in said
    assert "ada took the case" not in said


@pytest.mark.parametrize("evil", EVIL)
def test_words_of_a_park_stay_text_in_the_report(viewer, evil):
    case, ada = matters.open_case(label=evil[:200]), scene.user("ada", "rule_effect")
    casework.park(case.pk, clock() + timedelta(hours=1), actor=ada, why=evil[:200])
    assert not TAGS.search(viewer.get(reverse("admin:handover")).content.decode())
