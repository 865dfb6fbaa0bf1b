"""Mass actions: frozen, confirmed, executed once, row by row, and never twice on a row."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import audit, handlers
from jobs.context import Cancelled, Context
from jobs.ledger.clock import clock
from jobs.models import ApiToken, AuditEntry, Job, Plan, PlanRow
from jobs.models.audit import Source
from jobs.models.plan import PlanAction, PlanState
from jobs.operations import jobwork, planrun, plans
from jobs.outcomes import Ending, Refused
from jobs.status import JobStatus
from tests import build
from tests.operations import scene
from tests.worker.scene import Scene

pytestmark = pytest.mark.django_db
MAY = ("view_job", "retry_job", "cancel_job", "hold_job")
TICKET = [("label", "batch")]


@pytest.fixture
def ola():
    """Operates."""
    return scene.user("ola", *MAY)


def failed(count):
    """Return so many failed jobs, oldest first."""
    calls: Any = [(build.KIND, {}, build.options(label="batch"))] * count
    Job.objects.enqueue_many(calls, now=build.T0)
    runtime = Job.objects.runtime
    leases = runtime.claim(
        worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], max_claims=count, ttl=60, now=build.T0
    )
    ends = [Ending.fail(lease, "HANDLER_CONTENT_FAILED", "no good", retry_after=None) for lease in leases]
    assert all(outcome.landed for outcome in runtime.end(ends, now=build.at(1)))
    assert len(leases) == count
    return sorted(build.id_of(lease) for lease in leases)


def prepare(action, who, ids=(), jobs=None, **more):
    given = {"reason": "ticket 7", "filters": () if ids else TICKET} | more
    return plans.prepare(PlanAction(action), jobs or Job.objects.all(), actor=who, ids=ids, **given)


def work(worker=None):
    """Let a worker of the plans' queue take one step."""
    worker = worker or Scene(kinds=[handlers.PLAN])
    worker.seconds = (clock() - build.T0).total_seconds() + 1
    return worker.step()


def outcomes(plan):
    return {row.job_id: (row.outcome, row.code) for row in PlanRow.objects.filter(plan=plan)}


def test_retry_of_250_jobs_skips_what_changed_and_names_it(ola):
    ids = failed(250)
    plan = prepare("retry", ola)
    changed, gone, held = ids[3], ids[77], ids[249]
    jobwork.retry(changed, actor=ola, reason="by hand", seen_version=build.row(changed)["state_version"])
    build.edit(gone, label="another")
    build.edit(held, hold_reason="contradiction", state_version=build.row(held)["state_version"])
    with audit.through(Source.CONSOLE, user="ola"):
        plans.begin(plan.id, actor=ola, typed=250)
    assert work() == 1
    plan.refresh_from_db()
    assert (plan.state, plan.total, plan.done, plan.skipped) == (PlanState.DONE, 250, 247, 3)
    found = outcomes(plan)
    assert {i: found[i] for i in (changed, gone, held)} == {
        changed: ("skipped", "NOT_ENDED"),
        gone: ("skipped", "VERSION"),
        held: ("skipped", "CONTRADICTION"),
    }
    assert Job.objects.filter(label="batch", status=JobStatus.PENDING).count() == 248
    row = PlanRow.objects.get(plan=plan, job_id=gone)
    assert (row.params["seen"], row.params["found"]) == (row.seen_version, row.seen_version + 1)
    entries = AuditEntry.objects.filter(actor="ola").exclude(reason="by hand")
    assert entries.filter(action="retry").count() == 247
    assert {(e.reason, e.source, e.request_id) for e in entries.filter(action="retry")} == {
        ("ticket 7", "console", str(plan.id))
    }
    acts = entries.exclude(action="retry").order_by("seq")
    assert [(e.action, e.object_id) for e in acts] == [("plan", str(plan.id)), ("execute_plan", str(plan.id))]
    assert json.loads(acts[0].after)["statuses"] == {"failed": 250}
    assert Job.objects.get(kind=handlers.PLAN).status == JobStatus.SUCCEEDED


def test_what_has_changed_since_is_read_at_once_by_the_ids_of_the_plans_jobs(ola):
    _first, second, third, fourth = (build.enqueue(label="batch") for _ in range(4))
    plan = prepare("hold", ola)
    assert plans.changed(plan) == []
    build.edit(second, label="moved")
    jobwork.hold(fourth, actor=ola, reason="mine", seen_version=1)
    with connection.cursor() as cursor:
        key = Job._meta.pk.get_db_prep_save(third, connection)
        cursor.execute("DELETE FROM jobs_job WHERE id = %s", [key])
    with CaptureQueriesContext(connection) as asked:
        found = plans.changed(plan)
    assert len(asked) == 1
    assert found == [(second, 1, 2, "pending"), (third, 1, None, None), (fourth, 1, 2, "pending")]


def test_plan_keeps_what_is_at_stake_and_the_rows_that_most_hangs_on(ola):
    ids = []
    for amounts in (("7.50",), (), ("-120.00", "-0.25"), ("5.00",)):
        lease = build.running()
        for n, amount in enumerate(amounts):
            values: Any = {
                "amount": amount,
                "currency": "EUR",
                "status": "committed",
                "response": "{}",
                "grants": 1,
            }
            build.effect(lease, slot=f"s{n}", **values)
        ids.append(build.id_of(lease))
    plan = prepare("cancel", ola, ids=ids)
    assert plan.summary["amounts"] == {"EUR": "-107.7500"}
    rows = plan.summary["largest"]
    assert [row["job_id"] for row in rows] == [str(ids[n]) for n in (2, 0, 3, 1)]
    assert (rows[0]["amounts"], rows[3]["amounts"]) == ({"EUR": "-120.2500"}, {})


@pytest.mark.parametrize(
    ("action", "states"),
    [
        ("retry", {"failed", "cancelled", "skipped"}),
        ("cancel", {"pending", "blocked", "waiting", "running", "uncertain"}),
        ("hold", {"pending", "blocked", "waiting", "running", "uncertain"}),
        ("unhold", {"held"}),
    ],
)
def test_plan_takes_the_jobs_in_a_state_for_it_and_leaves_the_others_out(ola, action, states):
    ids = {build.id_of(build.job(s)): str(s) for s in JobStatus if s != JobStatus.RUNNING}
    ids[build.id_of(build.claim(build.enqueue(), now=clock()))] = "running"
    held = build.enqueue()
    build.hold(held)
    if action == "cancel":
        states = states | {"held"}
    ids[held] = "held"
    plan = prepare(action, ola, ids=[*ids])
    assert {ids[row.job_id] for row in plan.rows.all()} == states
    assert (plan.total, plan.left_out) == (len(states), len(ids) - len(states))
    assert sum(plan.summary["statuses"].values()) == plan.total
    plans.begin(plan.id, actor=ola)
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.done, plan.skipped) == (PlanState.DONE, plan.total, 0)
    requested = {ids[row.job_id] for row in plan.rows.filter(requested=True)}
    assert requested == ({"running", "uncertain"} if action == "cancel" else set())


def test_parents_and_children_of_one_plan_are_each_acted_upon(ola):
    parent = build.enqueue(label="batch")
    child = build.enqueue(label="batch", parent_id=parent)
    for action in ("cancel", "retry"):
        plan = prepare(action, ola)
        plans.begin(plan.id, actor=ola)
        work()
        assert outcomes(plan) == {parent: ("done", ""), child: ("done", "")}, action


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"filters": ()}, "PLAN_FILTER_EMPTY"),
        ({"reason": " "}, "REASON_MISSING"),
        ({"action": "unhold"}, "PLAN_EMPTY"),
    ],
)
def test_plan_that_says_too_little_is_not_made(ola, given, code):
    failed(1)
    with pytest.raises(Refused) as refused:
        prepare(given.pop("action", "retry"), ola, **given)
    assert refused.value.code == code
    assert not Plan.objects.exists()


def test_plan_is_bounded(ola, settings):
    settings.INTERLOCK = settings.INTERLOCK | {"PLAN_ROWS": 2}
    failed(3)
    with pytest.raises(Refused, match="More than 2 jobs"):
        prepare("retry", ola)
    assert not Plan.objects.exists()


def test_more_than_twenty_take_their_number_typed(ola):
    failed(21)
    plan = prepare("retry", ola)
    for typed in (None, 20):
        with pytest.raises(Refused, match="21"):
            plans.begin(plan.id, actor=ola, typed=typed)
    assert plans.look(plan.id).state == PlanState.PLANNED
    assert plans.begin(plan.id, actor=ola, typed=21).state == PlanState.RUNNING


def test_plan_is_executed_once_and_within_ten_minutes(ola):
    failed(2)
    plan, late = prepare("retry", ola), prepare("retry", ola)
    plans.begin(plan.id, actor=ola)
    with pytest.raises(Refused, match="executed already, by ola"):
        plans.begin(plan.id, actor=ola)
    assert Job.objects.filter(kind=handlers.PLAN).count() == 1
    with pytest.raises(Refused, match="expired"):
        plans.begin(late.id, actor=ola, now=late.created_at + timedelta(minutes=10))
    assert plans.begin(late.id, actor=ola, now=late.created_at + timedelta(minutes=9)).started_at


def test_aborted_plan_touches_no_further_row(ola, monkeypatch):
    ids, real = failed(3), jobwork.retry

    def abort_after_the_first(*given, **more):
        answer = real(*given, **more)
        monkeypatch.setitem(planrun.ACTS, "retry", real)
        plans.abort(plan.id, actor=ola)
        return answer

    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola)
    monkeypatch.setitem(planrun.ACTS, "retry", abort_after_the_first)
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.ended_by, plan.done, plan.left) == (PlanState.ABORTED, "ola", 1, 2)
    assert [outcomes(plan)[i][0] for i in ids] == ["done", "pending", "pending"]
    with pytest.raises(Refused, match="aborted"):
        plans.abort(plan.id, actor=ola)


def test_person_who_lost_the_permission_stops_the_plan(ola):
    failed(2)
    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola)
    ola.user_permissions.remove(Permission.objects.get(codename="retry_job"))
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.ended_why, plan.left) == (PlanState.ABORTED, "NOT_PERMITTED", 2)
    with pytest.raises(Refused, match="retry_job"):
        prepare("retry", ola)
    with pytest.raises(Refused, match="retry_job"):
        plans.begin(plan.id, actor=ola)


def test_revoked_token_stops_the_plan(ola):
    failed(2)
    token, _secret = ApiToken.objects.issue("ci", user=ola, scopes=["ops"], queues=[])
    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola, token=token)
    ApiToken.objects.update(revoked_at=clock())
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.ended_why, plan.left) == (PlanState.ABORTED, "TOKEN_UNKNOWN", 2)


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
def test_token_that_ends_while_its_plan_runs_touches_no_further_row(ola, monkeypatch, end):
    ids, real = failed(3), jobwork.retry
    token, _secret = ApiToken.objects.issue("ci", user=ola, scopes=["ops"], queues=[])

    def end_after_the_first(*given, **more):
        ApiToken.objects.update(**{end: clock()})
        return real(*given, **more)

    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola, token=token)
    monkeypatch.setitem(planrun.ACTS, "retry", end_after_the_first)
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.ended_why, plan.left) == (PlanState.ABORTED, "TOKEN_UNKNOWN", 2)
    assert [outcomes(plan)[i][0] for i in ids] == ["done", "pending", "pending"]


def test_killed_run_goes_on_where_it_was_and_does_no_row_twice(ola, monkeypatch):
    """It dies inside the second row's transaction; the next run finds the first one done."""
    ids, real, seen = failed(3), jobwork.retry, []

    def dies_at_the_second(job_id, **more):
        seen.append(job_id)
        answer = real(job_id, **more)
        if len(seen) == 2:
            raise ConnectionError
        return answer

    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola)
    monkeypatch.setitem(planrun.ACTS, "retry", dies_at_the_second)
    worker = Scene(kinds=[handlers.PLAN])
    work(worker)
    plan.refresh_from_db()
    assert (plan.state, plan.done, plan.skipped) == (PlanState.RUNNING, 1, 0)
    stale = PlanRow.objects.get(plan=plan, job_id=ids[0])
    planrun._act(plan, stale, "default")
    assert len(seen) == 2, "a row that is done is not begun again"
    worker.seconds += 3600
    worker.step()
    plan.refresh_from_db()
    assert (plan.state, plan.done, plan.skipped) == (PlanState.DONE, 3, 0)
    assert seen == [ids[0], ids[1], ids[1], ids[2]]
    retried = AuditEntry.objects.filter(action="retry")
    assert sorted(retried.values_list("object_id", flat=True)) == sorted(map(str, ids))


def test_cancelled_run_ends_its_plan(ola, monkeypatch):
    def stop(self):
        raise Cancelled

    failed(1)
    plan = prepare("retry", ola)
    plans.begin(plan.id, actor=ola)
    monkeypatch.setattr(Context, "checkpoint", stop)
    work()
    plan.refresh_from_db()
    assert (plan.state, plan.ended_why, plan.left) == (PlanState.ABORTED, "JOB_CANCELLED", 1)


def test_nobody_else_runs_a_plan_or_serves_its_queue(ola):
    for name, queue in ((handlers.PLAN, "default"), ("tests.other", handlers.PLANS)):
        with pytest.raises(ValueError, match="reserved"):
            handlers.job(name, queue=queue)(lambda: None)
    ids = failed(1)
    plan = prepare("retry", ola, ids=ids)
    plans.begin(plan.id, actor=ola)
    Plan.objects.update(job_id=build.enqueue())
    work()
    assert Job.objects.get(kind=handlers.PLAN).status == JobStatus.SKIPPED
    assert outcomes(plan) == {ids[0]: ("pending", "")}


def test_plans_own_jobs_are_in_no_plan(ola):
    failed(1)
    plans.begin(prepare("retry", ola).id, actor=ola)
    with pytest.raises(Refused) as refused:
        prepare("cancel", ola, filters=[("kind", handlers.PLAN)], jobs=Job.objects.filter(kind=handlers.PLAN))
    assert refused.value.code == "PLAN_EMPTY"
