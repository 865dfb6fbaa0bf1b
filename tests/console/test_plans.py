"""Mass actions from the console: a filter or picked rows, the plan, its confirmation, what it left out."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from jobs.models import Job, Plan
from jobs.models.plan import PlanState
from jobs.operations import jobwork, plancounts
from jobs.status import JobStatus
from tests import build
from tests.console.people import ROLES
from tests.console.test_acts import text_of
from tests.operations.test_plans import failed, work

pytestmark = pytest.mark.django_db
NEW = "/plans/new/"


@pytest.fixture
def operator(browse):
    return browse("operator")


def prepare(client, query="?label=batch", action="retry", **more):
    return client.post(NEW + query, {"action": action, "reason": "ticket 7"} | more)


def test_plan_for_a_filter_is_counted_made_confirmed_and_followed(operator):
    ids = failed(22)
    shown = text_of(operator.get(f"{NEW}?label=batch&status=failed"))
    assert "Retry 22" in shown
    assert "Cancel 0" in shown
    answer = prepare(operator, "?label=batch&status=failed")
    plan = Plan.objects.get()
    page = reverse("admin:plan", args=[plan.pk])
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert plan.filters == [["status", "failed"], ["label", "batch"]]
    shown = text_of(operator.get(page))
    for words in ("Nothing is done yet", "22 ended jobs are run again", "Type the number of jobs, 22"):
        assert words in shown
    execute = reverse("admin:plan-execute", args=[plan.pk])
    for typed, status in (("", 409), ("21", 409), ("two", 409)):
        assert operator.post(execute, {"typed": typed}).status_code == status
    assert operator.post(execute, {"typed": "22"}).status_code == 302
    assert "0 of 22" in text_of(operator.get(page))
    build.edit(ids[5], label="moved")
    work()
    headers = {"HX-Request": "true", "HX-Target": "state"}
    shown = text_of(operator.get(page, headers=headers))
    for words in ("22 of 22", "Skipped 1", "The job has changed since you looked"):
        assert words in shown
    assert "Retry" in text_of(operator.get(reverse("admin:plans")))
    again = operator.post(execute, {"typed": "22"})
    assert again.status_code == 409
    assert "The plan has ended: it is done." in text_of(again)


def test_plan_by_tag_takes_the_jobs_that_have_it_and_counts_few_of_them_exactly(operator, monkeypatch):
    ids = [build.id_of(build.job(JobStatus.FAILED, tags=["vip"])) for _ in range(2)]
    failed(2)
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    failed(4)
    assert "Retry 2 " in text_of(operator.get(f"{NEW}?tag=vip"))
    assert prepare(operator, "?tag=vip").status_code == 302
    plan = Plan.objects.get()
    assert plan.filters == [["tag", "vip"]]
    assert set(plan.rows.values_list("job_id", flat=True)) == set(ids)


def test_what_a_glance_did_not_find_may_be_planned_all_the_same(operator, monkeypatch):
    monkeypatch.setattr(plancounts, "LOOKED", 3)
    ids = failed(5)
    build.edit(ids[0], label="the oldest")
    shown = text_of(operator.get(f"{NEW}?label=oldest"))
    assert "Retry 0+ among the newest 3 of each status; the plan looks at all" in shown
    assert prepare(operator, "?label=oldest").status_code == 302
    assert list(Plan.objects.get().rows.values_list("job_id", flat=True)) == [ids[0]]


def test_jobs_that_changed_since_are_told_before_the_plan_begins_and_are_those_that_it_skips(operator):
    ids = failed(3)
    prepare(operator, "?label=batch&status=failed")
    plan = Plan.objects.get()
    page, execute = (reverse(name, args=[plan.pk]) for name in ("admin:plan", "admin:plan-execute"))
    told = text_of(operator.get(page))
    assert "Changed since, skipped 0" in told
    assert told.count("as frozen") == 3
    assert "have changed since" not in told
    seen = build.row(ids[1])["state_version"]
    jobwork.retry(
        ids[1], actor=get_user_model().objects.get(username="operator-1"), reason="8", seen_version=seen
    )
    answer = operator.get(page)
    told = text_of(answer)
    for words in ("Changed since, skipped 1", "1 of 3 jobs has changed since, and will be skipped."):
        assert words in told
    assert (told.count("as frozen"), told.count("changed, skipped")) == (2, 1)
    (row,) = answer.context["changed"]
    assert row == (ids[1], seen, seen + 1, "pending")
    operator.post(execute)
    work()
    assert list(plan.rows.filter(outcome="skipped").values_list("job_id", flat=True)) == [ids[1]]
    told = text_of(operator.get(page))
    assert "Changed since, skipped" not in told
    assert "as frozen" not in told


def test_plan_for_picked_rows_takes_those_only(operator):
    picked, other = failed(2), failed(1)
    first = operator.post(NEW, {"job": [str(i) for i in picked]})
    assert (first.status_code, Plan.objects.count()) == (200, 0)
    assert "2 jobs picked" in text_of(first)
    for i in picked:
        assert f'name="job" value="{i}"' in first.content.decode()
    prepare(operator, "", job=[str(i) for i in picked])
    plan = Plan.objects.get()
    assert sorted(plan.rows.values_list("job_id", flat=True)) == picked
    operator.post(reverse("admin:plan-execute", args=[plan.pk]))
    work()
    assert [build.row(i)["status"] for i in (*picked, *other)] == ["pending", "pending", "failed"]


@pytest.mark.parametrize(
    ("query", "sent", "status", "words"),
    [
        ("", {}, 409, "A plan for all jobs is not made"),
        ("?before=00000000000000000000000000000000", {}, 409, "A plan for all jobs is not made"),
        ("?statuss=failed", {}, 409, "There is no such filter"),
        ("?label=batch", {"reason": " "}, 400, "Nothing was written"),
        ("?label=batch", {"action": "rule"}, 400, "Nothing was written"),
        ("?label=batch", {"action": "unhold"}, 409, "None of these jobs is in a state for it"),
        ("", {"job": ["x"]}, 400, "This is no list of jobs"),
    ],
)
def test_what_cannot_be_planned_is_told_and_plans_nothing(operator, query, sent, status, words):
    failed(1)
    answer = prepare(operator, query, **sent)
    assert (answer.status_code, words in text_of(answer)) == (status, True), text_of(answer)
    assert not Plan.objects.exists()


def test_plans_are_seen_by_all_and_acted_upon_by_who_may(browse, operator):
    failed(1)
    prepare(operator)
    plan = Plan.objects.get()
    page = reverse("admin:plan", args=[plan.pk])
    for role in (*ROLES, "nobody"):
        client, may = browse(role), role in ("operator", "admin")
        listed = text_of(client.get("/jobs/?label=batch"))
        assert ("Plan for this filter" in listed) is may
        assert ("Confirm" in text_of(client.get(page))) is may
        for act in ("execute", "abort"):
            if not may:
                assert client.post(f"{page}{act}/").status_code == 403, (role, act)
        if not may:
            assert prepare(client).status_code in (403, 409), role
    plan.refresh_from_db()
    assert (plan.state, Plan.objects.count()) == (PlanState.PLANNED, 1)
    assert operator.post(f"{page}abort/", follow=True).status_code == 200
    plan.refresh_from_db()
    assert plan.state == PlanState.ABORTED
    assert Job.objects.get().status == "failed"
