"""A young installation: small tables that were never analysed tempt the planner to read them from end to end,
and the row list once for each of their rows. Each presented row is looked up instead."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection

from jobs.models import Job
from jobs.outcomes import Ending, Lease
from tests.build import KIND, QUEUE, at
from tests.ledger.generic import plan_of

pytestmark = pytest.mark.django_db(transaction=True)
V = Job.objects
JOBS = 600
SCAN = re.compile(r"Index Scan (?:Backward )?using (\w+_pkey) on (jobs_job|jobs_attempt)\b.*\n\s*(.*)")


@pytest.fixture
def leases() -> list[Lease]:
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has no planner that statistics could mislead")
    with connection.cursor() as cursor:
        # Emptied anew: the planner must not remember how full the pages of an earlier test were.
        cursor.execute("TRUNCATE jobs_job, jobs_attempt, jobs_effectslot CASCADE")
    V.enqueue_many([(KIND, {"n": n}, None) for n in range(JOBS)], now=at(0))
    return V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], max_claims=JOBS, now=at(1))


def plans_of(verb: Any) -> dict[str, str]:
    """Return the plans of the writes that `verb` sends, explained as they run."""
    plans: dict[str, str] = {}

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "UPDATE jobs_" in sql:
            plans[sql] = plan_of(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        assert all(outcome.landed for outcome in verb())
    return plans


@pytest.mark.parametrize(
    "verb",
    [
        lambda leases: V.commit_many([(lease, 1) for lease in leases], now=at(2)),
        lambda leases: V.runtime.renew(leases, now=at(2)),
        lambda leases: V.runtime.end([Ending.release(lease) for lease in leases], now=at(2)),
    ],
    ids=["commit", "renew", "end"],
)
def test_each_presented_row_is_looked_up_in_a_table_that_was_never_analysed(leases, verb):
    plans = plans_of(lambda: verb(leases))
    found = [(scan, plan) for plan in plans.values() for scan in SCAN.finditer(plan)]
    assert found
    for scan, plan in found:
        assert scan[3].startswith("Index Cond: (id = "), plan
