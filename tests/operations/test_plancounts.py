"""What a plan would take is told at a glance: exactly where there is little to look through."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from jobs.models.plan import PlanAction
from jobs.operations import plancounts, planparts, plans
from jobs.operations.plancounts import Glance
from tests import build
from tests.operations.test_plans import failed

pytestmark = pytest.mark.django_db
LABEL = [("label", "batch")]


@pytest.mark.parametrize(
    ("status", "action", "parts", "count"),
    [("failed", "cancel", 0, 0), ("failed", "retry", 1, 2), ("running", "hold", 1, 0)],
)
def test_part_that_holds_no_status_filtered_for_is_not_read(db, status, action, parts, count):
    failed(2)
    with CaptureQueriesContext(connection) as queries:
        jobs = Job.objects.filter(status=status)
        found = plancounts.counts([PlanAction(action)], jobs, filters=[("status", status)])
    assert sum("jobs_job" in query["sql"] for query in queries) == parts
    assert found == {action: Glance(count)}


def test_who_was_asked_to_stop_already_is_not_counted_however_many_they_are(db, settings):
    settings.INTERLOCK = settings.INTERLOCK | {"PLAN_ROWS": 1}
    for asked in (True, True, False):
        job_id = build.id_of(build.running())
        if asked:
            Job.objects.cancel(job_id, actor="ada", reason="not needed", now=build.T0)
    counts = plancounts.counts([PlanAction.HOLD, PlanAction.CANCEL], Job.objects.all())
    assert counts == {"hold": Glance(2), "cancel": Glance(1)}


@pytest.mark.parametrize("action", PlanAction)
def test_jobs_are_looked_for_along_the_indexes_of_their_states(db, action):
    if connection.features.has_select_for_update:
        pytest.skip("this database chooses by the sizes of tables; `make bench-console` has large ones")
    for part in planparts.sources(action, Job.objects.filter(label__icontains="x"), ()):
        plan = part.values_list(*plans.FIELDS)[:11].explain()
        assert re.search("job_(ready|due|running|abnormal|held)", plan), plan


@pytest.mark.parametrize("name", ["ended", "odd"])
def test_the_newest_of_each_status_are_looked_for_along_the_index(db, name):
    if connection.features.has_select_for_update:
        pytest.skip("this database chooses by the sizes of tables; `make bench-console` has large ones")
    jobs, end = Job.objects.filter(label__icontains="x"), build.enqueue()
    ends = {str(status): end for status in planparts.HOLDS[name]}
    pieces = plancounts._newest(name, jobs, [], ends)
    assert len(pieces) == len(ends)
    for piece in pieces:
        plan = piece.values("cancel_requested_at")[:11].explain()
        assert "job_abnormal (status=? AND" in plan, plan


def glance(action, jobs, filters=LABEL, **more):
    return plancounts.counts([PlanAction(action)], jobs, filters=filters, **more)[PlanAction(action)]


def test_of_many_ended_jobs_the_newest_are_looked_at_and_said_to_be(db, monkeypatch):
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    ids = failed(5)
    newest, oldest = Job.objects.filter(id__in=ids[-1:]), Job.objects.filter(id__in=ids[:1])
    assert glance("retry", newest) == Glance(1, more=True)
    assert glance("retry", oldest) == Glance(0, more=True)
    assert glance("retry", Job.objects.all()) == Glance(3, more=True)


def test_as_many_ended_jobs_as_are_looked_at_are_counted_exactly(db, monkeypatch):
    monkeypatch.setattr(plancounts, "LOOKED", 5)
    ids = failed(5)
    assert glance("retry", Job.objects.filter(id__in=ids[:1])) == Glance(1)


def test_each_status_is_looked_at_by_itself(db, monkeypatch):
    """Five cancelled jobs that are newer do not hide a failed one."""
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    (one,) = failed(1)
    for _ in range(5):
        Job.objects.cancel(build.enqueue(), actor="ada", reason="not needed", now=build.T0)
    assert glance("retry", Job.objects.filter(id=one)) == Glance(1, more=True)
    assert glance("retry", Job.objects.filter(id=one), [*LABEL, ("status", "failed")]) == Glance(1)


@pytest.mark.parametrize("given", [{"filters": [("status", "failed")]}, {"filters": []}, {"picked": True}])
def test_a_status_alone_and_picked_jobs_are_counted_whole(db, monkeypatch, given):
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    failed(5)
    assert glance("retry", Job.objects.all(), **given) == Glance(5)


def test_what_runs_or_waits_is_counted_whole_beside_many_ended_jobs(db, monkeypatch):
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    failed(5)
    for _ in range(5):
        build.running()
    assert glance("hold", Job.objects.all()) == Glance(5)


@pytest.mark.parametrize("never", [Job.objects.none, lambda: Job.objects.filter(id__in=[])])
def test_a_filter_that_nothing_can_match_takes_none(db, never):
    failed(1)
    assert set(plancounts.counts(list(PlanAction), never(), filters=LABEL).values()) == {Glance(0)}


@pytest.mark.parametrize("delay", [0, 60], ids=["ready", "due later"])
def test_of_many_claimable_jobs_with_a_common_tag_the_first_are_looked_at_and_said_to_be(
    db, monkeypatch, delay
):
    monkeypatch.setattr(plancounts, "ASKED", 3)
    for _ in range(5):
        build.enqueue(delay=delay)
    jobs = Job.objects.all()
    assert glance("hold", jobs, [("tag", "eu")]) == Glance(3, more=True)
    assert glance("hold", jobs, [("tag", "eu")], picked=True) == Glance(5), "few have it"
    assert glance("hold", jobs) == Glance(5), "by a label each is looked at"
