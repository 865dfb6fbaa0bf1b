"""The practice inbox: invented cases under the real rules, which nothing is kept of."""

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import plots, practice
from jobs import effect_kinds
from jobs.ledger.clock import clock
from jobs.models.case import VERDICTS, CaseKind, Verdict
from jobs.operations import cases
from jobs.operations.door import Anybody
from jobs.status import OPEN_EFFECT
from tests.operations import scene

URL = "/drills/practice/"
pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


@pytest.fixture
def known():
    return {one.name: one for one in practice.scenarios(clock(), 1)}


def text_of(answer):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_each_case_says_of_each_thing_that_can_be_chosen_what_it_is_worth_and_one_is_right(known):
    assert {one.view.case.kind for one in known.values()} == set(CaseKind)
    for one in known.values():
        offered = {verdict.value for verdict in VERDICTS[CaseKind(one.view.case.kind)]}
        assert set(one.answers) == {*offered, plots.WAIT}, one.name
        assert sum(answer.worth == plots.RIGHT for answer in one.answers.values()) == 1, one.name


def test_what_is_called_right_is_what_the_real_rules_allow(known):
    for one in known.values():
        right = next(name for name, answer in one.answers.items() if answer.worth == plots.RIGHT)
        if right != plots.WAIT:
            assert cases.offer(one.view, Verdict(right), Anybody()).allowed, one.name


def test_what_the_texts_call_refused_is_refused_by_the_real_rules_and_nothing_else(viewer, known):
    offers = {
        (one.name, o.verdict.value): o for one in known.values() for o in cases.offers(one.view, Anybody())
    }
    assert {key: offer.why[0] for key, offer in offers.items() if offer.why} == {
        ("not-found-yet", "did_not_happen"): "NOT_SETTLED",
        ("two-payloads", "rebind"): "KEY_WAS_GRANTED",
    }
    refused = {key for key in offers if "refused" in known[key[0]].answers[key[1]].text}
    assert refused - {("no-connection", "did_not_happen")} == {k for k, offer in offers.items() if offer.why}
    query = {"case": "not-found-yet", "verdict": "did_not_happen"}
    assert "It would have been refused: The provider may still" in text_of(viewer.get(URL, query))


def codes(view):
    """Return what stands against each verdict that is offered."""
    return {offer.verdict: offer.why and offer.why[0] for offer in cases.offers(view, Anybody())}


REAL = {
    "answer-lost": lambda: scene.unknown(settle_after=None).look(),
    "two-payloads": lambda: scene.conflict(sent="committed").look(),
    "approval": lambda: scene.approval(by="billing").look(),
}
"""Cases as the real verbs leave them, seen when all that passes by itself has passed."""


@pytest.mark.parametrize("name", REAL)
def test_practice_offers_what_a_case_that_the_real_verbs_left_behind_offers(known, name):
    try:
        real = REAL[name]()
    finally:
        effect_kinds.forget(scene.PAY)
    assert codes(known[name].view) == codes(real)
    assert known[name].view.job.open_effects == real.job.open_effects
    assert known[name].view.job.status == real.job.status


def test_job_of_a_practice_case_counts_the_effects_that_are_open_as_the_real_ones_do(known):
    for one in known.values():
        assert one.view.job.open_effects == int(one.view.effect.status in OPEN_EFFECT), one.name
    assert {one.view.job.open_effects for one in known.values()} == {0, 1}


def test_every_choice_is_answered_and_nothing_is_written(viewer, known):
    viewer.get(URL)
    asked = [{}, *({"case": name} for name in known)]
    asked += [{"case": one.name, "verdict": choice} for one in known.values() for choice in one.answers]
    with CaptureQueriesContext(connection) as queries:
        for query in asked:
            answer = viewer.get(URL, query)
            assert answer.status_code == 200
            if "verdict" in query:
                page = text_of(answer)
                assert str(known[query["case"]].answers[query["verdict"]].text) in page
    written = [q["sql"] for q in queries if re.match(r"\s*(INSERT|UPDATE|DELETE)", q["sql"], re.IGNORECASE)]
    assert written == []
    assert len(queries) <= 10 * len(asked), "what stands around the page, and nothing of a case"
    assert viewer.post(URL, {"case": "approval", "verdict": "send"}).status_code == 405


@pytest.mark.parametrize("query", [{"case": "nothing"}, {"case": "approval", "verdict": "happened"}])
def test_address_that_names_no_case_or_no_choice_of_it_shows_what_there_is(viewer, query):
    page = text_of(viewer.get(URL, query))
    assert "Practice: invented cases." in page
    assert "Well ruled" not in page


def test_no_link_of_a_practice_case_leads_to_a_job_or_a_case(viewer):
    page = viewer.get(URL, {"case": "contradiction"}).content.decode()
    assert not re.search(r'href="/(jobs|cases)/[0-9a-f]{8}', page)
