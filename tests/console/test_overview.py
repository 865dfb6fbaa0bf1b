"""The overview's first sentence, what became of a day's cases, the audit chain's state, and the standby."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import pressing
from console.pages import overview
from jobs import chain
from jobs.ledger import counts, standby
from jobs.ledger.clock import clock
from jobs.ledger.standby import Standby
from tests import build
from tests.console import matters
from tests.console.test_acts import text_of
from tests.console.test_pressing import ago, open_of_each
from tests.ledger import chained

pytestmark = pytest.mark.django_db


def fragment(client, region):
    return client.get("/", headers={"HX-Request": "true", "HX-Target": region}).content.decode()


# -- the first sentence


@pytest.mark.looks_alike
def test_first_sentence_says_how_many_cases_wait_how_many_are_late_and_what_is_unknown(viewer):
    assert "Everything below is read from" in text_of(viewer.get("/"))
    open_of_each()
    sentence = "7 cases need a person, 1 past their SLA. 950.50 EUR of unknown outcome."
    told = text_of(viewer.get("/"))
    assert sentence in told
    assert "Everything below is read from" not in told
    # What refreshes itself brings the sentence along, for its place in the head.
    alone = fragment(viewer, "needs")
    assert alone.count('<p id="summary" hx-swap-oob="innerHTML">') == 1
    assert sentence in alone
    assert 'id="summary"' not in fragment(viewer, "proof")


def test_first_sentence_sums_unknown_outcomes_only_whatever_row_they_stand_in(viewer):
    matters.open_case(amount="42.00", opened=ago(hours=1))
    matters.open_case(amount="3.00", opened=ago(hours=2), sla=60)
    matters.open_case("conflict", amount="7.00", opened=ago(hours=2), sla=60)
    assert "3 cases need a person, 2 past their SLA. 45.00 EUR of unknown outcome." in text_of(
        viewer.get("/")
    )


def test_first_sentence_of_cases_without_amounts_names_none(viewer):
    matters.open_case(amount=None, opened=ago(hours=1))
    told = text_of(viewer.get("/"))
    assert "1 case needs a person." in told
    assert "unknown outcome" not in told


def test_first_sentence_is_for_who_may_see_cases(browse, django_user_model):
    matters.open_case(opened=ago(hours=1))
    client = browse("viewer")
    user = django_user_model.objects.get(username="viewer-1")
    user.groups.clear()
    user.user_permissions.add(*_permissions("view_job"))
    told = text_of(client.get("/"))
    assert "needs a person." not in told
    assert "Cases, last 24 h" not in told


def _permissions(*names):
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename__in=names)


def test_more_cases_than_are_read_are_told_as_so_many_at_least():
    found = [pressing.Matter("unknown", count=pressing.READ + 3)]
    assert overview.summary(found).startswith("2,000+ cases need a person.")
    assert overview.summary([]) == ""


# -- the cases of a day


def closed(as_, *, after, opened):
    case = matters.open_case(opened=opened)
    matters.alter(case, closed_at=opened + after, closed_as=as_)


def test_cases_of_a_day_are_told_by_how_they_ended_with_the_median_of_the_rulings(viewer):
    now = clock()
    for minutes in (4, 6, 90):
        closed("ruled", after=timedelta(minutes=minutes), opened=now - timedelta(hours=5))
    for _ in range(2):
        closed("resolved", after=timedelta(minutes=1), opened=now - timedelta(hours=2))
    closed("moot", after=timedelta(minutes=1), opened=now - timedelta(hours=2))
    matters.open_case(opened=now - timedelta(hours=1))
    closed("ruled", after=timedelta(hours=1), opened=now - timedelta(hours=25))
    found = counts.cases_since("default", now - overview.DAY, most=100)
    assert (found.opened, found.inquired, found.ruled) == (7, 2, 3)
    assert found.median == pytest.approx(360, abs=0.01)
    told = text_of(viewer.get("/"))
    for words in ("Opened 7", "By inquiry 2, no person needed", "Ruled 3 half of them within 6 min"):
        assert words in told


def test_day_without_a_case_says_so_and_names_no_median(viewer):
    found = counts.cases_since("default", clock() - overview.DAY, most=100)
    assert found == counts.Lately(0, 0, 0, None)
    told = text_of(viewer.get("/"))
    assert "Opened none" in told
    assert "By inquiry" not in told


def test_of_very_many_cases_the_newest_are_looked_at(viewer, monkeypatch):
    for _ in range(4):
        matters.open_case(opened=clock() - timedelta(minutes=5))
    assert counts.cases_since("default", clock() - overview.DAY, most=3).opened == 3
    monkeypatch.setattr(overview, "OPENED", 3)
    assert "Opened 3+" in text_of(viewer.get("/"))


def test_cases_of_a_day_are_read_along_their_ids():
    for _ in range(3):
        matters.open_case(opened=clock())
    with CaptureQueriesContext(connection) as asked:
        counts.cases_since("default", clock() - overview.DAY, most=5000)
    (query,) = (one for one in asked.captured_queries if "lately" in one["sql"])
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            ("EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN ") + query["sql"]
        )
        plan = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "SCAN jobs_case" not in plan
    assert "Seq Scan on jobs_case" not in plan
    assert "jobs_case_pkey" in plan or "sqlite_autoindex_jobs_case_1" in plan or "case_newest" in plan


# -- the audit chain


def test_chain_that_is_whole_says_when_it_was_verified_and_what_came_since(viewer):
    assert "Audit chain never verified" in text_of(viewer.get("/"))
    chained.append(3)
    chain.note("default", chain.verify("default"))
    chained.append(2)
    told = text_of(viewer.get("/"))
    assert "Audit chain whole 3 entries checked" in told
    assert ", 2 since" in told
    assert "audit chain broken" not in told


@pytest.mark.looks_alike
def test_broken_chain_needs_a_person_now(browse):
    client = browse("viewer")
    with build.unguarded():
        chained.append(3)
        chained.sql("UPDATE jobs_auditentry SET reason = 'other' WHERE seq = 2")
        chain.note("default", chain.verify("default"))
        told = text_of(client.get("/"))
        assert "Nothing needs you" not in told
        assert "audit chain broken an entry was changed" in told
        assert "Audit chain broken" in told
        assert "audit chain broken" in fragment(client, "needs")


def test_chain_whose_end_was_lost_is_broken(viewer):
    with build.unguarded():
        chained.sql("DELETE FROM jobs_audithead")
        assert "audit chain broken its end was lost" in text_of(viewer.get("/"))


# -- the standby


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Standby(wanted=True, connected=1, told=1, in_sync=1), "synchronous standby in sync"),
        (Standby(wanted=True, connected=3, told=3, in_sync=2), "2 synchronous standbys in sync"),
        (Standby(wanted=True, connected=0, told=0, in_sync=0), "no synchronous standby is in sync"),
        (Standby(wanted=True, connected=1, told=1, in_sync=0), "no synchronous standby is in sync"),
        (Standby(wanted=True, connected=1, told=0, in_sync=0), "this role may not see"),
        (Standby(wanted=False, connected=1, told=1, in_sync=0), ""),
        (None, ""),
    ],
)
def test_standby_is_told_as_far_as_the_role_may_see(viewer, monkeypatch, found, words):
    monkeypatch.setattr(overview, "standby", lambda _using: found)
    told = text_of(viewer.get("/"))
    if words:
        assert words in told
    else:
        assert "standby in sync" not in told
        assert "this role may not see" not in told


def test_database_is_asked_for_its_standbys_once_and_only_where_it_can_have_one(viewer):
    found = standby.standby("default")
    if connection.vendor == "sqlite":
        assert found is None
    else:
        assert found == Standby(wanted=False, connected=0, told=0, in_sync=0)
    with CaptureQueriesContext(connection) as asked:
        viewer.get("/")
    times = sum("pg_stat_replication" in query["sql"] for query in asked)
    assert times == (connection.vendor == "postgresql")


@pytest.mark.django_db(transaction=True)
def test_database_that_will_not_say_is_no_error(viewer, monkeypatch):
    monkeypatch.setattr(standby, "STANDBYS", "SELECT 1 FROM no_such_table")
    assert standby.standby("default") is None
    assert viewer.get("/").status_code == 200
