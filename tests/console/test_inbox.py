"""The inbox: what comes first, what is filtered, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from console import inbox
from jobs.explain import clock
from tests.console import matters
from tests.console.test_queries import cost

pytestmark = pytest.mark.django_db
URL = "/cases/"


def labels(client, query=""):
    html = client.get(URL + query).content.decode()
    return re.findall(r'<th scope="row" class="in"><a href="[^"]*">([^<]*)</a>', html)


def ago(**time):
    return clock() - timedelta(**time)


def test_contradictions_come_first_then_breaches_then_what_is_at_stake(viewer):
    matters.open_case(label="old and small", amount="1.00", opened=ago(hours=20))
    matters.open_case(label="no amount, older", amount=None, opened=ago(hours=30))
    matters.open_case(label="no amount, younger", amount=None, opened=ago(hours=29))
    matters.open_case(label="large", amount="9000.00", opened=ago(hours=1))
    matters.open_case(label="breached, small", amount="2.00", opened=ago(hours=2), sla=60)
    matters.open_case(label="breached, large", amount="200.00", opened=ago(hours=2), sla=60)
    matters.open_case(
        "contradiction", label="contradicted", amount="0.01", opened=ago(minutes=1), status="committed"
    )
    assert labels(viewer) == [
        "contradicted",
        "breached, large",
        "breached, small",
        "large",
        "old and small",
        "no amount, older",
        "no amount, younger",
    ]
    html = viewer.get(URL).content.decode()
    assert [
        html.index(word) for word in ("Contradicted <", "SLA breached <", "By amount and age <")
    ] == sorted(html.index(word) for word in ("Contradicted <", "SLA breached <", "By amount and age <"))
    assert "over by" in html


def test_amount_counts_as_much_as_age(viewer):
    matters.open_case(label="a", amount="10.00", opened=ago(hours=10))
    matters.open_case(label="b", amount="60.00", opened=ago(hours=2))
    assert labels(viewer) == ["b", "a"]


def test_closed_case_is_not_listed(viewer):
    matters.alter(matters.open_case(label="gone"), closed_at=clock(), closed_as="moot")
    assert labels(viewer) == []


def test_inbox_that_is_empty_says_what_a_case_is(viewer):
    html = viewer.get(URL).content.decode()
    assert "Nothing waits for a ruling" in html
    assert "nobody knows what became of it" in html


def test_filters_keep_what_they_say(browse):
    client = browse("adjudicator")
    mine = matters.open_case(label="mine")
    matters.alter(mine, owner="adjudicator-1", owned_until=clock() + timedelta(minutes=5))
    lapsed = matters.open_case(label="lapsed")
    matters.alter(lapsed, owner="adjudicator-1", owned_until=clock() - timedelta(minutes=5))
    parked = matters.open_case(label="parked")
    matters.alter(parked, parked_until=clock() + timedelta(minutes=5))
    conflict = matters.open_case("conflict", label="conflict")
    assert labels(client, "?owner=me") == ["mine"]
    assert sorted(labels(client, "?owner=nobody")) == ["conflict", "lapsed", "parked"]
    assert labels(client, "?parked=yes") == ["parked"]
    assert sorted(labels(client, "?parked=no")) == ["conflict", "lapsed", "mine"]
    assert labels(client, "?kind=conflict") == ["conflict"]
    assert len(labels(client, f"?effect_kind={conflict.effect_kind}")) == 4
    assert labels(client, "?effect_kind=another") == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("?kind=nonsense", "kind"),
        ("?owner=bob", "owner"),
        ("?page=0", "page"),
        ("?page=x", "page"),
        ("?ownr=me", "ownr"),
    ],
)
def test_filter_that_cannot_be_read_is_named_and_nothing_is_listed(viewer, query, name):
    matters.open_case()
    answer = viewer.get(URL + query)
    assert answer.status_code == 400
    assert f"<code>{name}</code>" in answer.content.decode()
    assert labels(viewer, query) == []


def test_list_goes_on_over_pages_without_losing_or_repeating_any(viewer, monkeypatch):
    monkeypatch.setattr(inbox, "SIZE", 2)
    for n in range(5):
        matters.open_case(label=f"case {n}", amount=f"{n + 1}.00")
    pages = [labels(viewer, f"?page={n}") for n in (1, 2, 3)]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(label for page in pages for label in page) == [f"case {n}" for n in range(5)]
    assert 'href="?page=2"' in viewer.get(URL).content.decode()


def test_contradiction_is_never_cut_off(viewer, monkeypatch):
    monkeypatch.setattr(inbox, "READ", 2)
    for n in range(3):
        matters.open_case(label=f"old {n}", opened=ago(hours=9))
    matters.open_case("contradiction", label="loud", opened=ago(minutes=1), status="committed")
    assert labels(viewer)[0] == "loud"
    assert "2+" not in labels(viewer)
    assert "the 2 oldest and every contradiction are ranked" in viewer.get(URL).content.decode()


def test_inbox_costs_the_same_with_few_cases_and_with_many(viewer):
    matters.open_case()
    few = cost(viewer, URL)
    for _ in range(6):
        matters.open_case()
    assert cost(viewer, URL) == few


def test_menu_counts_what_waits_and_says_when_it_is_urgent(viewer):
    matters.open_case(opened=ago(minutes=1))
    assert '<span class="n">1</span>' in viewer.get("/jobs/").content.decode()
    matters.open_case(opened=ago(hours=1), sla=60)
    assert '<span class="n hot">2</span>' in viewer.get("/jobs/").content.decode()


def test_overview_leads_to_the_inbox(viewer):
    matters.open_case()
    assert f'href="{reverse("admin:inbox")}' in viewer.get("/").content.decode().partition('id="need"')[2]
