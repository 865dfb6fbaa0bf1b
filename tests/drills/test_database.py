"""The throw-away database is real, is really reopened, and is gone afterwards."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, connections
from django.test.utils import CaptureQueriesContext

from jobs.drills.database import ALIAS, CannotDrill, throw_away
from jobs.drills.model import JobState
from jobs.drills.run import replay, run
from jobs.drills.scenarios import SCENARIOS
from jobs.ledger import triggers

pytestmark = pytest.mark.django_db
KINDS = ["current", "sqlite"]
PLACES = KINDS if connection.features.has_select_for_update else ["current"]
"""For what replays everything: where the product is on SQLite, both are made in the same way."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_drill_leaves_nothing_behind(kind, unchanged):
    before = unchanged()
    with throw_away(kind) as database:
        run(SCENARIOS[0], database)
        assert unchanged() != before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupted_drill_leaves_nothing_behind(kind, interruption, unchanged):
    def drill() -> None:
        with throw_away(kind):
            JobState.objects.using(ALIAS).create(id="half-way")
            raise interruption

    with pytest.raises(interruption):
        drill()


@pytest.mark.parametrize("kind", KINDS)
def test_a_drill_that_broke_its_connection_leaves_nothing_behind(kind, unchanged):
    def drill() -> None:
        with throw_away(kind), connections[ALIAS].cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT nothing FROM nowhere")

    with pytest.raises(DatabaseError):
        drill()


@pytest.mark.parametrize("kind", PLACES)
def test_a_drill_sends_the_products_database_no_query(kind, unchanged):
    with CaptureQueriesContext(connection) as queries:
        records, _place = replay(SCENARIOS, kind)
    assert all(record.ok for record in records)
    assert not queries.captured_queries


@pytest.mark.parametrize("kind", KINDS)
def test_the_drill_database_holds_the_tables_of_a_claim_and_no_other(kind, unchanged):
    with throw_away(kind):
        tables = connections[ALIAS].introspection.table_names()
        assert sorted(tables) == ["job_state", "jobs_scheduler", "jobs_worker"]


@pytest.mark.parametrize("kind", KINDS)
def test_for_effect_slots_it_holds_the_products_tables_under_the_products_guards(kind, unchanged):
    with throw_away(kind, product=True):
        tables = set(connections[ALIAS].introspection.table_names())
        assert {model._meta.db_table for model in apps.get_app_config("jobs").get_models()} <= tables
        assert triggers.difference(ALIAS) == ([], [])
    assert triggers.difference("default") == ([], [])


@pytest.mark.parametrize("kind", KINDS)
def test_reopening_closes_the_connection_and_finds_the_rows_in_another(kind, unchanged):
    with throw_away(kind) as database:
        JobState.objects.using(ALIAS).create(id="kept")
        before = connections[ALIAS]
        raw = before.connection
        database.reopen()
        assert before.connection is None
        with pytest.raises(Exception, match="closed"):
            raw.execute("SELECT 1")
        assert connections[ALIAS] is not before
        assert connections[ALIAS].connection is not raw
        assert JobState.objects.using(ALIAS).filter(pk="kept").exists()


def test_two_drills_do_not_share_a_database(unchanged):
    with throw_away("sqlite"), pytest.raises(CannotDrill, match="already running"), throw_away("sqlite"):
        pass


def test_sqlite_is_drilled_with_the_products_own_options(unchanged, settings):
    with throw_away("sqlite"), connections[ALIAS].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
        cursor.execute("PRAGMA synchronous")
        assert cursor.fetchone() == (2,)


def test_postgresql_is_refused_where_the_product_runs_on_a_file(unchanged):
    if connection.features.has_select_for_update:
        pytest.skip("the product's database is a server")
    with pytest.raises(CannotDrill, match="DATABASE_URL"), throw_away("postgresql"):
        pass


@pytest.fixture
def powerless(monkeypatch):
    """A role that may connect and nothing else."""
    if not connection.features.has_select_for_update:
        pytest.skip("a file has no roles")
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE drill_powerless LOGIN")
    monkeypatch.setitem(connection.settings_dict, "USER", "drill_powerless")
    return "drill_powerless"


@pytest.mark.django_db(transaction=True)
def test_a_role_that_may_make_no_schema_is_told_so(powerless, unchanged, monkeypatch):
    try:
        with pytest.raises(CannotDrill, match="No temporary schema"), throw_away():
            pass
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE drill_powerless")
