"""The inbox: what comes first, what is filtered, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from console import inbox, outages, providers, ranking
from jobs.ledger.clock import clock
from jobs.models import Case, SavedView
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


def test_currencies_that_are_not_shown_are_counted(viewer):
    for currency in ("EUR", "USD", "GBP", "CHF", "JPY"):
        matters.open_case(amount="10.00", currency=currency, opened=ago(hours=9))
    for url in (URL, "/cases/handover/"):
        html = viewer.get(url).content.decode()
        # Of all that is open, and of the one outage that they are.
        assert html.count("and 2 more currencies") == 2, url


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
    assert 'href="/drills/practice/"' in html
    assert 'href="/drills/"' in html.partition('id="result_list"')[0].partition("<main")[2]


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


def test_filter_by_time_limit_is_where_the_overview_leads(viewer):
    matters.open_case(label="late", opened=ago(hours=2), sla=60)
    matters.open_case(label="in time", opened=ago(hours=2))
    assert labels(viewer, "?sla=breached") == ["late"]
    row = viewer.get("/").content.decode().partition("past its SLA")[2].partition("</tr>")[0]
    assert 'href="/cases/?sla=breached">Open 1<' in row


def test_filter_by_provider_keeps_declared_ones_and_those_named_like_it(viewer):
    kinds = ("payments.charge", "payments.odd", "smtp.send", "paymentsx.charge", "documents.deliver")
    for kind in kinds:
        matters.alter(matters.open_case(label=kind), effect_kind=kind)
    shown = {kind: providers.named([kind])[kind] for kind in kinds}
    assert shown["payments.charge"] != "payments"  # it declares whom it asks
    for provider in {*shown.values(), "payments"}:
        wanted = sorted(kind for kind in kinds if shown[kind] == provider)
        assert sorted(labels(viewer, f"?provider={provider}")) == wanted, provider


def test_filter_by_evidence_keeps_what_the_row_says_the_sender_met(viewer):
    said = {
        "no_connection": ("ConnectTimeout", "no connection"),
        "broke": ("BrokenPipeError", "connection broke"),
        "no_answer": ("ReadTimeout", "no answer in time"),
        "unreadable": ("JSONDecodeError", "unreadable answer"),
        "lost": ("", "sender lost"),
    }
    for word, (cause, _) in said.items():
        matters.alter(matters.open_case(label=word), cause=cause)
    matters.open_case("conflict", label="no unknown outcome")
    for word, (_, shown) in said.items():
        assert labels(viewer, f"?evidence={word}") == [word]
        assert shown in viewer.get(f"{URL}?evidence={word}").content.decode().partition("<tbody>")[2]


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
    monkeypatch.setattr(outages, "MANY", 99)
    for n in range(5):
        matters.open_case(label=f"case {n}", amount=f"{n + 1}.00")
    pages, query, ids = [], "", []
    while query is not None:
        html = viewer.get(URL + query).content.decode()
        pages.append(labels(viewer, query))
        found = re.search(r'href="(\?after=[0-9a-f-]+)">Next<', html)
        query = found[1] if found else None
        ids.append(query)
    assert pages == [["case 4", "case 3"], ["case 2", "case 1"], ["case 0"]]
    # The case that a page begins after is closed meanwhile: the page is still the one that came after it.
    matters.alter(Case.objects.get(label="case 3"), closed_at=clock(), closed_as="moot")
    assert labels(viewer, ids[0]) == ["case 2", "case 1"]
    assert f'href="{ids[0]}">Back<' not in viewer.get(URL + ids[0]).content.decode()


def test_an_outage_is_one_line_that_opens_into_its_members(viewer):
    start = ago(hours=2)
    members = [
        matters.open_case(label=f"out {n}", amount="10.00", opened=start + timedelta(minutes=n))
        for n in range(outages.MANY)
    ]
    matters.open_case(label="too late", amount="9.00", opened=start + timedelta(minutes=60))
    matters.open_case("conflict", label="another matter", amount="8.00", opened=start)
    other = matters.open_case(label="another error", amount="1.00", opened=start)
    matters.alter(other, cause="ReadTimeout")
    html = viewer.get(URL).content.decode()
    assert f"{outages.MANY} like this since" in html
    assert "50.00 EUR" in html
    assert "8 open cases, 5 of them in outages" in " ".join(html.split())
    assert labels(viewer) == ["another matter", "too late", "another error"]
    # Named by any of its members, even one that was ruled meanwhile.
    matters.alter(members[0], closed_at=clock(), closed_as="moot")
    assert labels(viewer, f"?like={members[0].pk}") == ["out 1", "out 2", "out 3", "out 4"]


def test_case_of_an_outage_says_so_and_leads_to_the_others(viewer, monkeypatch):
    monkeypatch.setattr(outages, "MANY", 3)
    start = ago(hours=2)
    cases = [
        matters.open_case(label=f"out {n}", opened=start + timedelta(minutes=minutes))
        for n, minutes in enumerate((0, 9, 18, 40, 49))
    ]
    for case in cases[:3]:
        html = " ".join(viewer.get(f"{URL}{case.pk}/").content.decode().split())
        assert "One of 3 like this since" in html
        assert f'href="{URL}?like={case.pk}"' in html
    assert len(labels(viewer, f"?like={cases[1].pk}")) == 3
    matters.alter(cases[0], closed_at=clock(), closed_as="moot")
    matters.open_case("conflict", label="another matter", opened=start + timedelta(minutes=10))
    for case in cases:
        assert "like this since" not in viewer.get(f"{URL}{case.pk}/").content.decode()


def test_outage_of_a_case_is_the_one_that_the_list_shows(db, monkeypatch):
    monkeypatch.setattr(outages, "MANY", 2)
    start = ago(hours=5)
    cases = [
        matters.open_case(opened=start + timedelta(seconds=n * n * 50, microseconds=123457)) for n in range(9)
    ]
    groups = outages.groups(ranking.rank(inbox.open_cases(), clock()).oldest)
    for case in cases:
        group, told = groups.get(case.pk.hex), outages.around(case)
        assert (told and told[0]) == (group and group.n)
        assert group is None or told is None or abs((told[1] - group.since).total_seconds()) < 0.001
    monkeypatch.setattr(ranking, "READ", 4)
    assert outages.around(cases[-1]) is None


def test_row_says_whom_the_effect_goes_to(viewer):
    matters.open_case(label="one", target="card …1234")
    html = viewer.get(URL).content.decode()
    assert "to card …1234" in html


def test_next_case_passes_over_what_is_parked_or_anothers(browse):
    client = browse("adjudicator")
    parked, taken = matters.open_case(label="parked"), matters.open_case(label="taken")
    matters.alter(parked, parked_until=clock() + timedelta(minutes=5))
    matters.alter(taken, owner="else", owned_until=clock() + timedelta(minutes=5))
    assert client.get("/cases/next/").url == URL
    mine, free = matters.open_case(amount="9.00"), matters.open_case(amount="1.00")
    matters.alter(mine, owner="adjudicator-1", owned_until=clock() + timedelta(minutes=5))
    assert client.get("/cases/next/").url == f"/cases/{mine.pk}/"
    assert client.get(f"/cases/next/?after={mine.pk}").url == f"/cases/{free.pk}/"
    assert client.get("/cases/next/?after=none").url == f"/cases/{mine.pk}/"


def test_next_case_leads_through_all_of_them_and_begins_anew(viewer):
    amounts = ["9.00", "7.00", "5.00", "3.00"]
    cases = [matters.open_case(amount=amount, opened=ago(hours=1)) for amount in amounts]
    for case, following in zip(cases, [*cases[1:], cases[0]], strict=True):
        assert viewer.get(f"/cases/next/?after={case.pk}").url == f"/cases/{following.pk}/"
    matters.alter(cases[1], parked_until=clock() + timedelta(minutes=5))
    assert viewer.get(f"/cases/next/?after={cases[0].pk}").url == f"/cases/{cases[2].pk}/"
    assert viewer.get(f"/cases/next/?after={cases[1].pk}").url == f"/cases/{cases[0].pk}/"


def test_case_is_taken_and_parked_from_the_list_and_the_list_comes_back(browse):
    client, case = browse("adjudicator"), matters.open_case()
    here = f"{URL}?kind=unknown"
    for act, more in (("take", {}), ("park", {"minutes": "30"})):
        answer = client.post(f"{URL}{case.pk}/{act}/", {"version": case.version, "return": here} | more)
        assert (answer.status_code, answer.url) == (302, here)
    case.refresh_from_db()
    assert case.owner == "adjudicator-1"
    assert case.parked_until
    assert case.parked_until > clock()
    answer = client.post(f"{URL}{case.pk}/take/", {"version": 1, "return": "//evil.example/cases/"})
    assert answer.url == f"{URL}{case.pk}/"
    assert client.post(f"{URL}{case.pk}/take/", {"version": 99, "return": here}).status_code == 409


def test_views_are_kept_by_name_and_shared_by_permission(browse):
    mine, other, plain = browse("adjudicator"), browse("approver"), browse("viewer")
    keep = {"name": " Big  ones ", "query": "least=1000&owner=nobody", "shared": "on"}
    assert mine.post("/views/inbox/keep/", keep).url == f"{URL}?{keep['query']}"
    assert plain.post("/views/inbox/keep/", keep).status_code == 302  # told that it may not share
    view = SavedView.objects.get()
    assert (view.name, view.owner.get_username(), view.shared) == ("Big ones", "adjudicator-1", True)
    html = plain.get(URL).content.decode()
    assert 'href="?least=1000&amp;owner=nobody"' in html
    assert "Forget" not in html
    plain.post(f"/views/inbox/{view.pk}/forget/")
    assert SavedView.objects.count() == 1
    plain.post("/views/jobs/keep/", {"name": "own", "query": "status=failed"})
    other.post(f"/views/jobs/{SavedView.objects.get(name='own').pk}/forget/")
    assert SavedView.objects.filter(name="own", shared=False).exists()
    other.post(f"/views/inbox/{view.pk}/forget/")
    assert not SavedView.objects.filter(shared=True).exists()
    assert plain.post("/views/nowhere/keep/", keep).status_code == 404


@pytest.mark.parametrize("name", ["", " ", "\u200b", "a\0b", "x" * 61])
def test_view_is_not_kept_under_a_name_that_cannot_be_read_or_stored(viewer, name):
    answer = viewer.post("/views/inbox/keep/", {"name": name, "query": "owner=me"}, follow=True)
    assert "A saved view needs a name" in answer.content.decode()
    assert not SavedView.objects.exists()


def test_contradiction_is_never_cut_off(viewer, monkeypatch):
    monkeypatch.setattr(ranking, "READ", 2)
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
