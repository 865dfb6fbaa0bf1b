"""Mass actions over HTTP: the same plans as the console's, within the caller's scopes and queues."""

from __future__ import annotations

import pytest

from jobs import handlers
from jobs.models import Job, Plan
from jobs.status import JobStatus
from tests import build
from tests.api.caller import Api, operator, secret
from tests.operations.test_plans import failed, work

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


def prepare(api, action="retry", **more):
    given = {"action": action, "reason": "ticket 7", "filters": {"label": "batch"}} | more
    return api.send({name: value for name, value in given.items() if value is not None}, "/bulk-plans")


def test_plan_is_prepared_executed_and_followed(ops):
    failed(3)
    answer = prepare(ops)
    assert answer.status_code == 201, answer.content
    plan = answer.json()
    assert answer["Location"] == f"/api/v1/bulk-plans/{plan['id']}"
    assert (plan["state"], plan["total"], plan["statuses"]) == ("planned", 3, {"failed": 3})
    assert plan["filters"] == [{"name": "label", "value": "batch"}]
    at = f"/bulk-plans/{plan['id']}"
    assert ops.send({}, f"{at}/execute").status_code == 202
    again = ops.send({}, f"{at}/execute")
    assert (again.status_code, again.json()["refusal"]) == (409, "PLAN_STARTED")
    first = ops.look(f"{at}/items?limit=2").json()
    assert [row["outcome"] for row in first["results"]] == ["pending"] * 2
    build.edit(Job.objects.order_by("id").first().id, label="moved")
    work()
    assert ops.look(at).json() | {"state": "done", "done": 2, "skipped": 1} == ops.look(at).json()
    rest = ops.get(first["next"]).json()
    assert (len(rest["results"]), rest["next"]) == (1, None)
    (skipped,) = ops.look(f"{at}/items?outcome=skipped").json()["results"]
    assert skipped["code"] == "VERSION"
    assert "changed since you looked" in skipped["why"]


def test_plan_by_tag_takes_the_jobs_that_have_it(ops):
    failed(1)
    wanted = build.id_of(build.job(JobStatus.FAILED, tags=["vip"]))
    answer = prepare(ops, filters={"tag": "vip"})
    assert (answer.status_code, answer.json()["total"]) == (201, 1)
    assert list(Plan.objects.get().rows.values_list("job_id", flat=True)) == [wanted]
    assert prepare(ops, filters={"arg": "nothing=1"}).status_code in (400, 422)


def test_abort_before_the_start_leaves_everything(ops):
    failed(1)
    at = f"/bulk-plans/{prepare(ops).json()['id']}"
    assert ops.send(b"", f"{at}/abort").json()["code"] == "invalid-body"
    assert ops.send({}, f"{at}/abort").json()["state"] == "aborted"
    assert ops.send({}, f"{at}/execute").json()["refusal"] == "PLAN_ENDED"
    assert not Job.objects.filter(kind=handlers.PLAN).exists()


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"filters": None}, "/filters"),
        ({"filters": {}}, "/filters"),
        ({"filters": {"statee": "failed"}}, "/filters/statee"),
        ({"filters": {"status": "failed"}}, "/filters/status"),
        ({"filters": {"status": ["faild"]}}, "/filters/status"),
        ({"filters": {"status": []}}, "/filters/status"),
        ({"filters": {"priority": "1"}}, "/filters/priority"),
        ({"filters": {"label": 5}}, "/filters/label"),
        ({"filters": []}, "/filters"),
        ({"ids": []}, "/ids"),
        ({"ids": ["x"]}, "/ids/0"),
        ({"action": "rule"}, "/action"),
        ({"reason": " "}, "/reason"),
    ],
    ids=str,
)
@pytest.mark.looks_alike
def test_what_is_wrong_is_told_by_its_place_and_plans_nothing(ops, given, at):
    answer = prepare(ops, **given)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [at]
    assert not Plan.objects.exists()


def test_number_of_many_jobs_has_to_be_typed(ops):
    failed(21)
    at = f"/bulk-plans/{prepare(ops).json()['id']}/execute"
    answer = ops.send({"typed": 20}, at)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/typed")
    assert ops.send({"typed": 21}, at).status_code == 202


def test_scope_goes_by_the_plans_action():
    build.enqueue(label="batch")
    owner = operator()
    canceller, ops = (Api(secret("jobs:read", scope, owner=owner)) for scope in ("jobs:cancel", "ops"))
    for action, may, may_not in (("cancel", canceller, ops), ("hold", ops, canceller)):
        assert prepare(may_not, action).status_code == 403
        at = f"/bulk-plans/{prepare(may, action).json()['id']}"
        for act in ("execute", "abort"):
            assert may_not.send({}, f"{at}/{act}").status_code == 403
        assert may.send({}, f"{at}/execute").status_code == 202


def test_queue_limit_bounds_what_is_planned_and_which_plans_exist(ops):
    mail, default = build.enqueue(queue="mail", label="batch"), build.enqueue(label="batch")
    owner = operator()
    limited = Api(secret("jobs:read", "ops", owner=owner, queues=("mail",)))
    other = f"/bulk-plans/{prepare(ops, 'hold').json()['id']}"
    for look in (other, f"{other}/items"):
        assert limited.look(look).status_code == 404
    for act in ("execute", "abort"):
        assert limited.send({}, f"{other}/{act}").status_code == 404
    plan = prepare(limited, "hold", ids=[str(mail), str(default)], filters=None).json()
    assert (plan["total"], plan["left_out"]) == (1, 1)
    limited.send({}, f"/bulk-plans/{plan['id']}/execute")
    work()
    assert [build.row(i)["hold_reason"] for i in (mail, default)] == ["operator", ""]
    assert Job.objects.filter(status=JobStatus.PENDING).count() == 2
