"""The overview says what the open cases ask, in the order in which they press, with what is at stake."""

from datetime import timedelta
from decimal import Decimal

import pytest

from console import pressing
from jobs.ledger.clock import clock
from jobs.operations import approvals
from tests.console import matters
from tests.console.test_queries import cost

pytestmark = pytest.mark.django_db


def ago(**time):
    return clock() - timedelta(**time)


def told(now=None):
    now = now or clock()
    found = [*pressing.matters(now), *pressing.approvals(approvals.waiting(now))]
    return [(m.what, m.effect_kind, m.count, dict(m.sums)) for m in found]


def open_of_each():
    matters.open_case(amount="42.00", opened=ago(hours=3))
    matters.open_case(amount="8.50", opened=ago(hours=2))
    mail = matters.open_case(amount=None, opened=ago(hours=2))
    matters.alter(mail, effect_kind="mail.send")
    matters.open_case("approval", amount="5.00", opened=ago(hours=9), status="prepared", grants=0)
    matters.open_case("conflict", amount="7.00", opened=ago(hours=1))
    matters.open_case("contradiction", amount="0.01", opened=ago(minutes=1), status="committed")
    matters.open_case(amount="900.00", opened=ago(hours=2), sla=60)


def test_matters_come_in_the_order_in_which_they_press(db):
    open_of_each()
    assert told() == [
        ("contradiction", matters.KIND, 1, {"EUR": Decimal("0.01")}),
        ("late", matters.KIND, 1, {"EUR": Decimal(900)}),
        ("unknown", matters.KIND, 2, {"EUR": Decimal("50.5")}),
        ("unknown", "mail.send", 1, {}),
        ("conflict", matters.KIND, 1, {"EUR": Decimal(7)}),
        ("approval", matters.KIND, 1, {"EUR": Decimal(5)}),
    ]


def test_parked_case_asks_nothing_until_it_comes_back_or_is_late(db):
    now = clock()
    case = matters.open_case(opened=ago(hours=1), sla=7200)
    matters.alter(case, parked_until=now + timedelta(minutes=30))
    assert told(now) == []
    assert [what for what, *_ in told(now + timedelta(minutes=31))] == ["unknown"]
    matters.alter(case, parked_until=now + timedelta(days=2))
    assert [what for what, *_ in told(now + timedelta(hours=2))] == ["late"]


@pytest.mark.looks_alike
def test_overview_names_each_matter_and_leads_to_its_cases(viewer):
    open_of_each()
    html = viewer.get("/").content.decode()
    assert "950.50" not in html[html.index('id="needs"') :]
    for shown in (
        "50.50 EUR",
        "900.00 EUR",
        "over by",
        "payload conflict",
        "approval waits",
        "contradiction",
    ):
        assert shown in html
    assert f"?kind=unknown&amp;effect_kind={matters.KIND}" in html


@pytest.mark.looks_alike
def test_overview_costs_the_same_with_one_matter_and_with_many(viewer):
    matters.open_case(opened=ago(hours=3))
    few = cost(viewer, "/")
    open_of_each()
    assert cost(viewer, "/") == few
