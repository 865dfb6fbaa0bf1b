"""Plans are pinned: no verb reads the job table from end to end, whatever the statistics say.

The statements are explained as they run, inside their own transaction, on a table never analysed, analysed,
and analysed while nothing ran: the state in which a planner believes that `running` is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from jobs.handlers import Options
from jobs.models import Job
from jobs.outcomes import Ending, Lease
from tests import build
from tests.build import KIND, QUEUE, at
from tests.ledger.generic import plan_of

pytestmark = pytest.mark.django_db(transaction=True)
V = Job.objects
EXPLAINED = re.compile(r"^\s*(WITH|SELECT|UPDATE|INSERT)\b")


@pytest.fixture(autouse=True)
def _plans_can_be_pinned():
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has no planner that statistics could mislead, and no row locks")
    _sql("ALTER TABLE jobs_job SET (autovacuum_enabled = off)")
    yield
    _sql("ALTER TABLE jobs_job RESET (autovacuum_enabled)")


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _claim(count: int, now: Any) -> list[Lease]:
    return V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND, "x.y"], max_claims=count, now=now)


def _fill() -> None:
    """2,000 ready, 500 far off, 500 ended, none running."""
    V.enqueue_many([(KIND, {"n": n}, None) for n in range(2_500)], now=at(0))
    V.enqueue_many([(KIND, {"n": n}, Options(delay=86_400.0)) for n in range(500)], now=at(0))
    for _ in range(2):
        V.commit_many([(lease, 1) for lease in _claim(250, at(1))], now=at(2))


def _never_analysed() -> None:
    _fill()
    _sql("DELETE FROM pg_statistic WHERE starelid = 'jobs_job'::regclass")


def _analysed() -> None:
    _fill()
    _claim(200, at(3))
    _sql("ANALYZE jobs_job")


def _analysed_while_nothing_ran() -> None:
    _fill()
    _sql("ANALYZE jobs_job")


@contextmanager
def _explained() -> Iterator[dict[str, str]]:
    """Explain every statement of the ledger just before it runs; plans by the statement's text."""
    plans: dict[str, str] = {}

    def run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if EXPLAINED.match(sql) and "jobs_job" in sql:
            plans[sql] = plan_of(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        yield plans


@pytest.mark.parametrize("statistics", [_never_analysed, _analysed, _analysed_while_nothing_ran])
def test_no_verb_reads_the_job_table_from_end_to_end(statistics):
    statistics()
    with _explained() as plans:
        leases = _claim(200, at(4))
        assert len(leases) == 200
        V.runtime.renew(leases, now=at(10))
        V.stage(leases[0], 1, now=at(10))
        V.commit_many([(lease, 1) for lease in leases[:50]], now=at(10))
        V.runtime.end([Ending.release(lease) for lease in leases[50:100]], now=at(10))
        V.runtime.end([Ending.skip(lease, "NOTHING_TO_DO") for lease in leases[100:150]], now=at(10))
        V.recover(limit=25, now=at(80))
        V.claim_job(build.id_of(leases[-1]), worker_id="v", now=at(80))
        V.runtime.promote(now=at(90_000))
    assert len(plans) >= 12
    for sql, plan in plans.items():
        assert "Seq Scan on jobs_job" not in plan, f"{sql}\n\n{plan}"
        assert not re.search(r"(Hash|Merge) (Semi )?Join", plan), f"{sql}\n\n{plan}"


@pytest.mark.parametrize("statistics", [_never_analysed, _analysed, _analysed_while_nothing_ran])
def test_each_presented_row_is_found_by_its_key(statistics):
    """Not by the running index, which reads every lease in flight once for each ending."""
    statistics()
    leases = _claim(200, at(4))
    with _explained() as plans:
        V.runtime.renew(leases[:60], now=at(10))
        V.commit_many([(lease, 1) for lease in leases[:50]], now=at(10))
        V.runtime.end([Ending.release(lease) for lease in leases[50:60]], now=at(10))
    touching = [plan for plan in plans.values() if "on jobs_job" in plan]
    assert len(touching) >= 5
    for plan in touching:
        used = set(re.findall(r"Index (?:Only )?Scan using (\w+) on jobs_job", plan))
        assert used == {"jobs_job_pkey"}, plan


@pytest.mark.parametrize("statistics", [_never_analysed, _analysed, _analysed_while_nothing_ran])
def test_claim_walks_the_claim_index(statistics):
    statistics()
    with _explained() as plans:
        assert len(_claim(10, at(4))) == 10
        assert len(V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], max_claims=10, now=at(4))) == 10
    picks = [plan for sql, plan in plans.items() if "UPDATE jobs_job" in sql and "'running'" in sql]
    assert len(picks) == 2
    for plan in picks:
        assert "using job_ready on jobs_job" in plan, plan


def test_no_index_names_a_column_that_a_renewal_writes():
    """HOT: a heartbeat that wrote index entries would double the work of an idle fleet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'jobs_job'")
        definitions = [row[0] for row in cursor.fetchall()]
    assert len(definitions) > 5
    assert [d for d in definitions if "lease_expires_at" in d or "heartbeat_at" in d] == []


def test_renewals_stay_on_their_page():
    _fill()
    leases = _claim(100, at(4))
    for beats in (range(30), range(30, 60), range(60, 90)):
        if _hot_share(leases, beats) > 0.9:
            return
    # An old version goes only when no transaction on the whole server is older than the new one.
    assert _others_at_work(), "renewals leave their pages although nobody else holds a snapshot"
    pytest.skip("others use this server, and their transactions keep old versions alive")


def _others_at_work() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND datname <> current_database()"
        )
        count: int = cursor.fetchone()[0]
        return count


def _hot_share(leases: list[Lease], beats: range) -> float:
    before = _updates()
    for beat in beats:
        assert all(o.landed for o in V.runtime.renew(leases, now=at(5 + beat / 2)))
    total, hot = (after - start for after, start in zip(_updates(), before, strict=True))
    assert total == len(leases) * len(beats)
    return hot / total


def _updates() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'jobs_job'")
        total, hot = cursor.fetchone()
        return total, hot
