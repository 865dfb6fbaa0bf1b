"""Mass actions from the console: a filter or picked rows, the plan, its confirmation, what it left out."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from console import csvfile, history
from console.pages import planrows as rows_page
from jobs.models import Change, EffectSlot, Job, Plan, PlanRow
from jobs.models.plan import PlanAction, PlanState
from jobs.operations import jobwork, plancounts, planrows, plans
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
    ((row, who),) = answer.context["changed"]
    assert row == (ids[1], seen, seen + 1, "pending")
    assert re.fullmatch(r"operator-1 retried it at [0-9:]{8}\.", who)
    assert told.count(who) == 2
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


def made(n, action=PlanAction.RETRY):
    """Make a plan for so many failed jobs; returns it with their ids, as they stand in it."""
    ids = failed(n)
    actor = get_user_model().objects.get(username="operator-1")
    return plans.prepare(action, Job.objects.all(), actor=actor, reason="ticket 7", ids=ids), ids


def listed(client, plan, query=""):
    answer = client.get(reverse("admin:plan-rows", args=[plan.pk]) + query)
    return [line.row.job_id for line in answer.context["lines"]], answer


def file_of(client, plan, query=""):
    answer = client.get(reverse("admin:plan-export", args=[plan.pk]) + query)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_every_frozen_row_is_listed_page_by_page(operator, monkeypatch):
    monkeypatch.setattr(rows_page, "SIZE", 4)
    made(3)
    plan, ids = made(10)
    found, query = [], ""
    for _ in range(4):
        page, answer = listed(operator, plan, query)
        assert len(page) <= 4
        found += page
        query = answer.context["next_url"]
        if not query:
            break
    assert found == ids
    assert "All 10 rows" in text_of(operator.get(reverse("admin:plan", args=[plan.pk])))


def test_rows_are_listed_and_exported_by_what_became_of_them(operator, monkeypatch):
    monkeypatch.setattr(csvfile, "CHUNK", 2)
    plan, ids = made(5)
    operator.post(reverse("admin:plan-execute", args=[plan.pk]))
    build.edit(ids[3], label="moved")
    work()
    assert listed(operator, plan, "?outcome=skipped")[0] == [ids[3]]
    assert listed(operator, plan, "?outcome=done")[0] == [*ids[:3], ids[4]]
    assert listed(operator, plan, "?outcome=pending")[0] == []
    assert [row["job"] for row in file_of(operator, plan)] == [str(i) for i in ids]
    (skipped,) = file_of(operator, plan, "?outcome=skipped")
    assert (skipped["outcome"], skipped["code"], skipped["label"]) == ("skipped", "VERSION", "moved")
    assert skipped["why"].startswith("The job has changed since you looked")
    page = text_of(operator.get(reverse("admin:plan", args=[plan.pk])))
    assert "the API tells them all" not in page
    assert "All 1 in the list" in page


def test_file_of_the_rows_computes_nothing_and_sums_are_told(operator):
    ids = failed(2)
    build.edit(ids[0], label="=1+1")
    build.effect(build.nobodys(ids[1]), status="committed", amount="42.00", currency="EUR")
    actor = get_user_model().objects.get(username="operator-1")
    plan = plans.prepare(PlanAction.RETRY, Job.objects.all(), actor=actor, reason="r", ids=ids)
    first, second = file_of(operator, plan)
    assert first["label"] == "'=1+1"
    assert (first["amounts"], second["amounts"]) == ("", "42.00 EUR")
    assert (first["changed_since"], first["outcome"], first["at"]) == ("no", "pending", "")
    assert EffectSlot.objects.count() == 1
    assert "42.00 EUR" in text_of(listed(operator, plan)[1])


@pytest.mark.parametrize(
    "query", ["?outcome=odd", "?after=-1", "?after=x", "?outcom=done", f"?after={2**70}"]
)
def test_address_of_rows_that_cannot_be_applied_is_told_and_lists_nothing(operator, query):
    plan, _ids = made(1)
    answer = operator.get(reverse("admin:plan-rows", args=[plan.pk]) + query)
    assert answer.status_code == 400
    assert "nothing is listed" in text_of(answer)
    led = operator.get(reverse("admin:plan-export", args=[plan.pk]) + query)
    assert (led.status_code, led["Location"].partition("?")[0]) == (
        302,
        reverse("admin:plan-rows", args=[plan.pk]),
    )


def test_rows_of_no_plan_are_not_there(operator):
    nowhere = "00000000-0000-0000-0000-000000000000"
    for name in ("rows", "export"):
        assert operator.get(reverse(f"admin:plan-{name}", args=[nowhere])).status_code == 404


def test_what_a_worker_changed_is_told_without_a_person_and_the_last_change_wins(operator):
    plan, ids = made(3)
    seen = build.row(ids[0])["state_version"]
    actor = get_user_model().objects.get(username="operator-1")
    for job_id in ids[:2]:
        jobwork.retry(job_id, actor=actor, reason="8", seen_version=seen)
    Job.objects.claim_job(ids[1], worker_id="host:1:a", ttl=60)
    told = history.since(ids, plan.created_at, plan.created_at)
    assert told[ids[0]].startswith("operator-1 retried it at ")
    assert re.fullmatch(r"At [0-9:]{8}: a worker claims it\.", told[ids[1]])
    assert ids[2] not in told
    page = text_of(listed(operator, plan)[1])
    assert told[ids[0]] in page
    assert page.count("as frozen") == 1
    later = history.since(ids, plan.created_at + timedelta(hours=1), plan.created_at)
    assert later == {}


def test_who_changed_a_job_is_found_in_the_audit_where_the_feed_is_long(operator, monkeypatch):
    plan, ids = made(1)
    actor = get_user_model().objects.get(username="operator-1")
    jobwork.retry(ids[0], actor=actor, reason="8", seen_version=build.row(ids[0])["state_version"])
    monkeypatch.setattr(history, "READ", 1)
    build.running()
    assert Change.objects.order_by("-id")[0].jobs[0][0] != ids[0].hex
    assert "operator-1 retried it" in history.since(ids, plan.created_at, plan.created_at)[ids[0]]


def test_confirmation_says_the_sum_and_which_paused_queue_holds_the_jobs_back(operator):
    ids = failed(21)
    build.effect(build.nobodys(ids[1]), status="committed", amount="1042.00", currency="EUR")
    actor = get_user_model().objects.get(username="operator-1")
    queue = Job.objects.get(pk=ids[0]).queue
    plan = plans.prepare(PlanAction.RETRY, Job.objects.all(), actor=actor, reason="r", ids=ids)
    page = reverse("admin:plan", args=[plan.pk])
    assert "is paused" not in text_of(operator.get(page))
    Job.objects.pause_queue("other", actor="a", reason="r")
    assert "is paused" not in text_of(operator.get(page))
    Job.objects.pause_queue(queue, actor="a", reason="r")
    told = text_of(operator.get(page))
    assert f"Queue {queue} is paused: none of its 21 jobs starts before it is resumed." in told
    assert "Type the number of jobs, 21 Sum of amounts: 1,042.00 EUR" in told
    plan = plans.prepare(PlanAction.CANCEL, Job.objects.all(), actor=actor, reason="r", ids=[build.enqueue()])
    assert "is paused" not in text_of(operator.get(reverse("admin:plan", args=[plan.pk])))


def test_menu_says_how_many_plans_run(operator):
    plan, _ids = made(1)
    assert "Mass actions 1" not in text_of(operator.get("/"))
    operator.post(reverse("admin:plan-execute", args=[plan.pk]))
    assert "Mass actions 1 running" in text_of(operator.get("/"))
    work()
    assert "Mass actions 1" not in text_of(operator.get("/"))


def test_page_of_rows_reads_along_the_index_of_its_plan(operator):
    made(3)
    plan, ids = made(4)
    assert [row.job_id for row in planrows.after(plan, most=3)] == ids[:3]
    third = PlanRow.objects.get(plan=plan, job_id=ids[2])
    assert [row.job_id for row in planrows.after(plan, third.id, most=3)] == ids[3:]
