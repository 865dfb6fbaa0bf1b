"""What waits for a second person: who finds it, where, and who does not."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from jobs.ledger.clock import clock
from jobs.models import Case
from jobs.operations import approvals
from jobs.outcomes import Refused
from tests import build
from tests.console import matters
from tests.console.test_queries import cost
from tests.operations import scene

pytestmark = pytest.mark.django_db
URL, TAB, NEXT = "/cases/", "/cases/?waiting=me", "/cases/next/"


@pytest.fixture(autouse=True)
def _no_kind_left():
    from jobs import effect_kinds

    yield
    effect_kinds.forget(scene.PAY)


@pytest.fixture
def ruler(browse):
    """Who asks: an adjudicator."""
    return browse("adjudicator")


@pytest.fixture
def approver(browse):
    """Who answers."""
    return browse("approver")


def labels(client, query):
    html = client.get(query).content.decode()
    return re.findall(r'<th scope="row" class="in"><a href="/cases/([0-9a-f-]+)/">', html)


def person(name="adjudicator-1"):
    return User.objects.get(username=name)


def ask(by=None, *, hold=True, **more):
    """Have somebody ask for `did not happen` in a case of his; returns the case."""
    matter = scene.unknown(second_person="always", **more)
    asker = by or person()
    now = build.at(200)
    matter.rule("did_not_happen", asker, now=now)
    case = Case.objects.get(job=matter.job)
    later = clock() + timedelta(hours=1)
    matters.stretch(case, later)
    if hold:
        matters.alter(case, owner=asker.get_username(), owned_until=later)
    return Case.objects.get(pk=case.pk)


def count_in_menu(client):
    html = client.get("/jobs/").content.decode()
    found = re.search(r'href="/cases/\?waiting=me"[^>]*>(.*?)</a>', html, re.S)
    return re.sub("<[^>]*>", "", found[1]).strip() if found else None


def test_ruling_that_waits_is_found_by_who_may_approve_although_another_holds_the_case(ruler, approver):
    case = ask()
    other = matters.open_case(label="another", amount="90000.00")
    assert labels(approver, TAB) == [str(case.pk)]
    assert count_in_menu(approver) == "Approvals1"
    html = " ".join(approver.get("/").content.decode().split())
    row = html.partition("approval waits")[2].partition("</tr>")[0]
    assert "1 ruling" in row
    assert "sending" not in row
    assert 'href="/cases/?waiting=me"' in row
    assert approver.get(f"{NEXT}?waiting=me").url == f"{URL}{case.pk}/"
    # Who only approves is led there before anything else; then to what is free.
    assert approver.get(NEXT).url == f"{URL}{case.pk}/"
    assert approver.get(f"{NEXT}?after={case.pk}").url == f"{URL}{other.pk}/"
    html = approver.get(URL).content.decode()
    assert "adjudicator-1 asks for “It did not happen”" in html


def test_who_may_not_approve_has_no_tab_and_no_entry_and_is_not_led_there(ruler, browse):
    case = ask(hold=False)
    second = browse("operator")
    for client in (ruler, second, browse("viewer")):
        assert count_in_menu(client) is None
        assert "For my approval" not in client.get(URL).content.decode()
        assert labels(client, TAB) == []
        assert labels(client, "/cases/?waiting=anybody") == [str(case.pk)]
        assert client.get(NEXT).url == URL
        assert 'href="/cases/?waiting=anybody"' in client.get("/").content.decode()


def test_own_question_is_not_in_ones_own_tab_under_another_name_either(browse):
    both = browse("admin")
    case = ask(person("admin-1"))
    assert labels(both, TAB) == []
    assert count_in_menu(both) == "Approvals"
    assert "you ask for “It did not happen”" in both.get(URL).content.decode()
    assert "approval waits" not in both.get("/").content.decode()
    assert both.get(f"{NEXT}?waiting=me").url == TAB
    User.objects.filter(username="admin-1").update(username="renamed")
    assert labels(both, TAB) == []
    assert labels(browse("approver"), TAB) == [str(case.pk)]


def test_question_that_is_over_waits_for_nobody(ruler, approver):
    case = ask()
    matters.stretch(case, clock() - timedelta(seconds=1))
    assert labels(approver, TAB) == labels(approver, "/cases/?waiting=anybody") == []
    assert count_in_menu(approver) == "Approvals"
    assert "asks for" not in approver.get(URL).content.decode()
    assert approver.get(NEXT).url == URL  # another has it
    matters.alter(case, owned_until=clock() - timedelta(seconds=1))
    assert ruler.get(NEXT).url == f"{URL}{case.pk}/"


def test_rulings_and_sendings_are_told_apart_and_a_closed_case_waits_for_nobody(ruler, approver):
    sending, again = scene.approval(by="billing"), scene.approval(by="approver-1 by token nightly")
    case = ask()
    html = approver.get("/").content.decode()
    row = " ".join(html.partition("approval waits")[2].partition("</tr>")[0].split())
    assert "1 ruling, 1 sending" in row
    assert "Open 2<" in row
    assert set(labels(approver, TAB)) == {str(case.pk), str(sending.case.pk)}
    assert str(again.case.pk) in labels(approver, "/cases/?waiting=anybody")
    assert "billing asks for “Send it”" in approver.get(TAB).content.decode()
    matters.alter(sending.case, closed_at=clock(), closed_as="moot")
    assert labels(approver, TAB) == [str(case.pk)]
    assert count_in_menu(approver) == "Approvals1"


def test_case_that_waits_for_another_is_passed_over_by_its_asker(ruler):
    case = ask(hold=True)
    free = matters.open_case(amount="0.01")
    assert ruler.get(NEXT).url == f"{URL}{free.pk}/"
    assert ruler.get(f"{NEXT}?after={case.pk}").url == f"{URL}{free.pk}/"


def test_rule_comes_before_answers_for_who_may_do_both(ruler, browse):
    both = browse("admin")
    case = ask()
    large = matters.open_case(amount="90000.00", opened=build.T0)
    assert both.get(NEXT).url == f"{URL}{large.pk}/"
    assert both.get(f"{NEXT}?after={large.pk}").url == f"{URL}{case.pk}/"


@pytest.mark.parametrize("name", ["ada", "bea", "Ada", "ada lovelace", "ada by", "root"])
@pytest.mark.parametrize(
    "by", ["ada", "ada by token nightly", "ada (shell: root)", "adam", "ada lovelace", ""]
)
def test_list_keeps_out_exactly_what_the_ruling_refuses_as_ones_own(name, by):
    matter = scene.approval(by=by)
    user = scene.user(name, "approve_ruling")
    questions = approvals.waiting(scene.LATER)
    assert approvals.for_answer(questions, scene.user("dan", "rule_effect")) == []
    listed = approvals.for_answer(questions, user)
    refused = False
    try:
        matter.approve(user)
    except Refused as error:
        refused = error.code == "SELF_APPROVAL"
        assert refused
    assert (listed == []) is refused


def test_menu_and_tab_say_the_same_number(ruler, approver):
    for _ in range(3):
        ask()
    assert count_in_menu(approver) == "Approvals3"
    html = approver.get(TAB).content.decode()
    assert 'For my approval<span class="n">3</span>' in html
    assert 'All open<span class="n">3</span>' in html
    # One entry of the menu is where one is, and it is this one.
    assert html.count('aria-current="page"') == 2
    assert ">Approvals" in html.partition('aria-current="page"')[2][:200]


def test_outage_hides_nothing_that_waits_for_ones_word(ruler, approver):
    cases = [ask() for _ in range(6)]
    assert sorted(labels(approver, TAB)) == sorted(str(case.pk) for case in cases)


def test_menu_overview_and_tab_cost_the_same_with_few_questions_and_with_many(ruler, approver):
    urls = ("/jobs/", "/", URL, TAB)
    ask()
    few = [cost(approver, url) for url in urls]
    for _ in range(4):
        ask()
    assert [cost(approver, url) for url in urls] == few
    # What the menu reads for who may answer is what the pages show: one query for all of them.
    assert few[2] == few[3] == cost(ruler, URL) + 1
