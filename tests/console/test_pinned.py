"""The inbox while it refreshes itself: what a person sees stays where it is, what comes is counted."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from console import inbox, outages, pinned
from jobs.ledger.clock import clock
from jobs.models import Case
from tests.console import matters
from tests.console.test_inbox import URL, ago

pytestmark = pytest.mark.django_db


class Seen:
    """The inbox in a browser, as far as a refresh of its list goes."""

    def __init__(self, client, query=""):
        self.client, self.query = client, query
        self.html = client.get(URL + query).content.decode()

    def refresh(self):
        url = f"{URL}{self.query}{'&' if self.query else '?'}shown={self.shown}"
        answer = self.client.get(url, headers={"HX-Request": "true", "HX-Target": "table"})
        assert answer.status_code == 200
        self.html = answer.content.decode()

    @property
    def shown(self):
        found = re.search(r'name="shown" value="([^"]*)"', self.html)
        return found[1] if found else ""

    @property
    def labels(self):
        return re.findall(r'<th scope="row" class="in"><a href="[^"]*">([^<]*)<', self.html)

    @property
    def lanes(self):
        return re.findall(r'<th scope="rowgroup"[^>]*>([^<]*) <', self.html)

    @property
    def new(self):
        found = re.search(r"(\d+) new<", self.html)
        return int(found[1]) if found else 0

    def row(self, label):
        rows = re.split(r"(?=<tr )", self.html)
        return " ".join(re.sub("<[^>]*>", " ", next(row for row in rows if label in row)).split())


def test_lines_stay_in_their_places_and_what_comes_is_counted(viewer):
    for n, amount in enumerate(("9.00", "7.00", "5.00")):
        matters.open_case(label=f"case {n}", amount=amount, opened=ago(hours=2))
    seen = Seen(viewer)
    assert (seen.labels, seen.new) == (["case 0", "case 1", "case 2"], 0)
    late = Case.objects.get(label="case 2")
    matters.alter(late, sla_due_at=clock() - timedelta(minutes=1), amount="9000.00")
    matters.open_case("contradiction", label="loud", status="committed")
    matters.open_case(label="large", amount="99999.00", opened=ago(hours=2))
    for _ in range(2):
        seen.refresh()
        assert (seen.labels, seen.new) == (["case 0", "case 1", "case 2"], 2)
        assert seen.lanes == ["By amount and age"]
        assert "over by" in seen.row("case 2")
        assert "1 contradiction" in re.sub("<[^>]*>", "", seen.html)
    assert Seen(viewer).labels == ["loud", "case 2", "large", "case 0", "case 1"]


def test_case_that_is_closed_or_taken_meanwhile_says_so_where_it_was(browse):
    client = browse("adjudicator")
    for n in range(3):
        matters.open_case(label=f"case {n}", amount=f"{9 - n}.00", opened=ago(hours=2))
    seen = Seen(client, "?owner=nobody&parked=no")
    matters.alter(Case.objects.get(label="case 0"), closed_at=clock(), closed_as="resolved")
    taken = Case.objects.get(label="case 1")
    matters.alter(taken, owner="ada", owned_until=clock() + timedelta(minutes=9))
    seen.refresh()
    assert (seen.labels, seen.new) == (["case 0", "case 1", "case 2"], 0)
    assert "settled by evidence" in seen.row("case 0")
    assert "Take" not in seen.row("case 0")
    assert "ada" in seen.row("case 1")
    assert Seen(client, "?owner=nobody&parked=no").labels == ["case 2"]


def test_outage_stays_one_line_though_its_first_case_is_closed(viewer, monkeypatch):
    monkeypatch.setattr(outages, "MANY", 3)
    start = ago(hours=2)
    for n in range(5):
        matters.open_case(label=f"out {n}", amount=f"{9 - n}.00", opened=start + timedelta(minutes=n))
    alone = matters.open_case(label="alone", amount="1.00", opened=ago(hours=2))
    matters.alter(alone, cause="ReadTimeout")
    seen = Seen(viewer)
    assert (seen.row("5 like this")[:6], seen.labels[-1], seen.new) == ("5 like", "alone", 0)
    matters.alter(Case.objects.get(label="out 0"), closed_at=clock(), closed_as="moot")
    seen.refresh()
    assert (seen.row("4 like this")[:6], seen.labels[-1], seen.new) == ("4 like", "alone", 0)
    # Nor is it new where another of its cases would stand for it by now.
    matters.alter(Case.objects.get(label="out 3"), amount="9000.00")
    seen.refresh()
    assert (seen.row("4 like this")[:6], seen.new) == ("4 like", 0)
    # When it is no outage any more, its lines come with the next load.
    for n in (1, 2):
        matters.alter(Case.objects.get(label=f"out {n}"), closed_at=clock(), closed_as="moot")
    seen.refresh()
    assert (seen.labels, seen.new) == (["out 3", "alone"], 1)


def test_cases_that_become_an_outage_meanwhile_stay_lines_of_their_own(viewer, monkeypatch):
    monkeypatch.setattr(outages, "MANY", 3)
    for n in range(2):
        matters.open_case(label=f"out {n}", amount=f"{9 - n}.00", opened=ago(hours=2))
    seen = Seen(viewer)
    matters.open_case(label="out 2", amount="1.00", opened=ago(hours=2))
    seen.refresh()
    assert (seen.labels, "like this" in seen.html) == (["out 0", "out 1"], False)


def test_second_page_is_kept_too_and_a_list_that_was_empty_begins_with_what_comes(viewer, monkeypatch):
    seen = Seen(viewer)
    assert seen.shown == ""
    monkeypatch.setattr(inbox, "SIZE", 2)
    for n in range(4):
        matters.open_case(label=f"case {n}", amount=f"{9 - n}.00", opened=ago(hours=2))
    seen.refresh()
    assert seen.labels == ["case 0", "case 1"]
    second = Seen(viewer, f"?after={Case.objects.get(label='case 1').pk}")
    matters.open_case(label="large", amount="99999.00", opened=ago(hours=2))
    second.refresh()
    assert (second.labels, second.new) == (["case 2", "case 3"], 0)


@pytest.mark.parametrize("shown", ["x", "0" * 33 + "x", "9" + "a" * 32, ".", "0" + "a" * 32 + "."])
def test_lines_that_cannot_be_read_are_refused(viewer, shown):
    assert viewer.get(f"{URL}?shown={shown}").status_code == 400
    assert pinned.parsed(".".join(["0" + "a" * 32] * (pinned.MOST + 2))) is None


def test_line_that_there_never_was_keeps_no_place(viewer):
    case = matters.open_case(label="here")
    never = "0" + "a" * 32
    for pins in (never, f"{never}.2{case.pk.hex}"):
        assert Seen(viewer, f"?shown={pins}").labels == ["here"]
