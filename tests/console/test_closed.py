"""The closed cases: in which order, how each ended, and what they can be filtered by."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from console import closed
from jobs.ledger.clock import clock
from jobs.models import Case
from tests.console import matters
from tests.console.test_inbox import labels
from tests.console.test_queries import cost
from tests.operations import scene

pytestmark = pytest.mark.django_db
TAB = "?state=closed"


@pytest.fixture(autouse=True)
def _no_kind_left():
    from jobs import effect_kinds

    yield
    effect_kinds.forget(scene.PAY)


def ended(label, *, ago=60, how="moot", **more):
    case = matters.open_case(**({"label": label} | more))
    matters.alter(case, closed_at=clock() - timedelta(seconds=ago), closed_as=how)
    return Case.objects.get(pk=case.pk)


def test_case_closed_last_comes_first_and_no_open_one_is_among_them(viewer):
    for label, ago in (("second", 120), ("first", 60), ("third", 180)):
        ended(label, ago=ago)
    matters.open_case(label="open")
    assert labels(viewer, TAB) == ["first", "second", "third"]
    html = viewer.get(f"/cases/{TAB}").content.decode()
    assert re.search(r'href="\?state=closed" aria-current="true">Closed', html)
    assert 'hx-get="/cases/' not in html  # what is closed stays as it is, and new ones would push it down


def test_each_says_how_it_ended_and_by_whom(browse):
    client = browse("viewer")
    ada, bea = scene.user("ada", "rule_effect"), scene.user("bea", "approve_ruling")
    two = scene.unknown(second_person="always")
    two.rule("did_not_happen", ada, reason="not in the statement")
    two.approve(bea)
    alone = scene.unknown()
    alone.rule("happened", ada)
    ended("by evidence", how="resolved")
    ended("for nothing", how="moot")
    html = client.get(f"/cases/{TAB}").content.decode()
    rows = [re.sub(r"(<[^>]*>|\s)+", " ", row) for row in html.split("<tr data-row")[1:]]
    said = {word: next(row for row in rows if word in row) for word in ("by evidence", "for nothing")}
    assert "settled by evidence" in said["by evidence"]
    assert "moot" in said["for nothing"]
    assert "nobody" in said["for nothing"]
    asked = next(row for row in rows if "It did not happen" in row)
    assert "not in the statement" in asked
    assert "ada approved by bea" in asked
    assert any("It happened" in row and " ada " in row for row in rows)


def test_ruling_of_a_case_that_became_moot_is_not_its_end(viewer):
    matter = scene.approval(by="billing")
    matter.rule("send", scene.user("bea", "approve_ruling"))
    matters.alter(matter.case, closed_at=clock(), closed_as="moot")
    html = viewer.get(f"/cases/{TAB}").content.decode()
    assert "moot: nothing depended on it" in html
    assert "Send it" not in html


def test_filters_narrow_the_closed_cases(viewer):
    ended("refund of acme", amount="5.00")
    conflict = ended("other", kind="conflict", amount="500.00")
    matters.alter(conflict, effect_kind="mail.send")
    assert labels(viewer, f"{TAB}&kind=conflict") == ["other"]
    assert labels(viewer, f"{TAB}&effect_kind=mail.send") == ["other"]
    assert labels(viewer, f"{TAB}&label=ACME") == ["refund of acme"]
    assert labels(viewer, f"{TAB}&least=100") == ["other"]
    assert "No closed case matches" in viewer.get(f"/cases/{TAB}&label=none").content.decode()


@pytest.mark.parametrize("query", ["owner=me", "parked=no", "waiting=me", "sla=breached"])
def test_question_about_open_cases_is_refused_for_closed_ones(viewer, query):
    ended("gone")
    answer = viewer.get(f"/cases/{TAB}&{query}")
    assert answer.status_code == 400
    assert "Only open cases can be filtered by it." in answer.content.decode()
    assert labels(viewer, f"{TAB}&{query}") == []
    assert viewer.get("/cases/?state=shut").status_code == 400
    assert labels(viewer, "?state=open") == []


def test_list_goes_on_over_pages_though_many_were_closed_at_one_instant(viewer, monkeypatch):
    monkeypatch.setattr(closed, "SIZE", 2)
    instant = clock() - timedelta(minutes=1)
    cases = [ended(f"case {n}") for n in range(5)]
    for case in cases:
        matters.alter(case, closed_at=instant)
    pages, query = [], TAB
    while query:
        pages.append(labels(viewer, query))
        html = viewer.get(f"/cases/{query}").content.decode()
        found = re.search(r'href="(\?state=closed&amp;after=[0-9a-f-]+)">Next<', html)
        query = found[1].replace("&amp;", "&") if found else ""
    assert pages == [["case 4", "case 3"], ["case 2", "case 1"], ["case 0"]]


def test_rare_match_is_looked_for_a_window_at_a_time(viewer, monkeypatch):
    monkeypatch.setattr(closed, "WINDOW", 2)
    for n in range(5):
        ended(f"case {n}", ago=60 + n)
    query = f"{TAB}&label=case 4"
    for _ in range(2):
        html = viewer.get(f"/cases/{query}").content.decode()
        assert "No match among the 2 cases looked at" in html
        (query,) = re.findall(r'href="(\?[^"]*)">Look further back<', html)
        query = query.replace("&amp;", "&")
    assert labels(viewer, query) == ["case 4"]


def test_closed_cases_cost_the_same_with_few_and_with_many(viewer):
    ended("one")
    few = cost(viewer, f"/cases/{TAB}")
    for n in range(6):
        ended(f"more {n}")
    assert cost(viewer, f"/cases/{TAB}") == few
