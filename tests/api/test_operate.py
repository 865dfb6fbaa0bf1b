"""What an operator does to one job: on the version that he saw, with a reason, told what changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from jobs.models import AuditEntry, Job
from jobs.status import JobStatus
from tests import build
from tests.api.caller import ROOT, Api, operator, person, secret
from tests.build import at, claim, enqueue
from tests.console import matters

pytestmark = pytest.mark.looks_alike

ACTS = ("force-cancel", "retry", "revise", "hold", "unhold")
BODIES = {act: {"reason": "because"} for act in ACTS} | {
    "revise": {"reason": "because", "arguments": {"n": 2}}
}
READY = {
    "force-cancel": JobStatus.RUNNING,
    "retry": JobStatus.FAILED,
    "revise": JobStatus.PENDING,
    "hold": JobStatus.PENDING,
    "unhold": JobStatus.PENDING,
}


def audited():
    """Return what operators did, besides what made the job ready for it."""
    return AuditEntry.objects.exclude(actor="someone")


def ready(act):
    """Return a job that the act can be done to."""
    lease = build.job(READY[act])
    if act == "unhold":
        build.hold(lease)
    return Job.objects.get(pk=build.id_of(lease))


@pytest.mark.parametrize("act", ACTS)
def test_act_on_the_version_that_was_seen_is_done_and_audited(ops, act):
    job = ready(act)
    answer = ops.act(f"/jobs/{job.id}/{act}", BODIES[act], job.state_version)
    assert answer.status_code == 200, answer.content
    job.refresh_from_db()
    assert answer["ETag"] == f'"{job.state_version}"'
    assert (answer.json()["status"], answer.json()["state_version"]) == (job.status, job.state_version)
    entry = audited().get()
    assert (entry.object_id, entry.reason, entry.source) == (str(job.id), "because", "api")
    assert (entry.actor, entry.user) == ("operator by token ci", "operator")


@pytest.mark.parametrize("act", ACTS)
def test_act_without_if_match_is_428_and_on_another_version_412_with_what_is(ops, act):
    job = ready(act)
    before = Job.objects.filter(pk=job.pk).values().get()
    assert ops.act(f"/jobs/{job.id}/{act}", BODIES[act]).status_code == 428
    for tag in (
        '"99"',
        "*",
        f'W/"{job.state_version}"',
        str(job.state_version),
        "",
        '"',
        f'"{job.state_version - 1}"',
    ):
        answer = ops.act(f"/jobs/{job.id}/{act}", BODIES[act], tag)
        assert (answer.status_code, answer.json()["code"]) == (412, "stale"), tag
        assert answer.json()["current"]["state_version"] == job.state_version
    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert not audited().exists()


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("reason", [None, "", " \t", "x" * 1001, 5, "\0"])
@pytest.mark.looks_alike
def test_act_without_a_reason_is_refused_with_its_place(ops, act, reason):
    job = ready(act)
    body = BODIES[act] | {"reason": reason}
    answer = ops.act(f"/jobs/{job.id}/{act}", body, job.state_version)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/reason"]
    assert not audited().exists()


def test_who_loses_the_race_after_looking_is_told_what_is(ops, monkeypatch):
    """The version moves between our look and the lock: the operation refuses, with the same answer."""
    from jobs.operations import jobwork

    job_id, real = enqueue(), jobwork.hold

    def late(*given, **more):
        claim(job_id)
        return real(*given, **more)

    monkeypatch.setattr(jobwork, "hold", late)
    answer = ops.act(f"/jobs/{job_id}/hold", {"reason": "r"}, 1)
    assert (answer.status_code, answer.json()["refusal"]) == (412, "VERSION")
    assert answer.json()["current"]["status"] == "running"


def test_cancel_honours_if_match_and_does_without(ops):
    job_id = enqueue()
    assert ops.act(f"/jobs/{job_id}/cancel", {"reason": "r"}, 7).status_code == 412
    assert Job.objects.get().status == JobStatus.PENDING
    assert ops.act(f"/jobs/{job_id}/cancel", {"reason": "r"}, 1).json()["cancel"] == "cancelled"
    assert ops.act(f"/jobs/{enqueue()}/cancel", {"reason": "r"}).status_code == 200


def test_state_that_does_not_allow_an_act_is_409_with_the_refusals_code(ops):
    job = ready("hold")
    answer = ops.act(f"/jobs/{job.id}/retry", BODIES["retry"], job.state_version)
    assert (answer.status_code, answer.json()["code"], answer.json()["refusal"]) == (
        409,
        "refused",
        "NOT_ENDED",
    )


def test_retry_may_bring_a_new_deadline(ops):
    job = ready("retry")
    body = BODIES["retry"] | {"deadline_at": "2027-01-01T00:00:00Z"}
    answer = ops.act(f"/jobs/{job.id}/retry", body, job.state_version)
    assert answer.json()["deadline_at"] == "2027-01-01T00:00:00Z"


@pytest.mark.parametrize("logged_in", [None, timedelta(hours=1)])
def test_force_cancel_asks_a_recent_log_in_of_the_tokens_owner(db, logged_in):
    owner = operator("late")
    moment = None if logged_in is None else timezone.now() - logged_in
    get_user_model().objects.filter(pk=owner.pk).update(last_login=moment)
    job = ready("force-cancel")
    answer = Api(secret("ops", owner=owner)).act(
        f"/jobs/{job.id}/force-cancel", {"reason": "r"}, job.state_version
    )
    assert (answer.status_code, answer.json()["refusal"]) == (403, "LOGIN_NOT_RECENT")
    assert Job.objects.get().status == JobStatus.RUNNING


def test_history_tells_attempts_effects_events_family_and_why(ops):
    parent = enqueue(now=at(0))
    lease = build.running(parent_id=parent)
    job_id = build.id_of(lease)
    grandchild = enqueue(parent_id=job_id)
    assert not Job.objects.commit(lease, {"late": 1}, now=at(900)).landed
    Job.objects.hold(job_id, actor="ada", reason="look first", now=at(3))
    (attempt,) = ops.look(f"/jobs/{job_id}/attempts").json()["results"]
    assert (attempt["generation"], attempt["worker_id"], attempt["status"]) == (1, build.WORKER, "running")
    assert ops.look(f"/jobs/{job_id}/effects").json() == {"results": []}
    events = ops.look(f"/jobs/{job_id}/events").json()
    assert [(e["verb"], e["actor"], e["reason"]) for e in events["results"]] == [
        ("hold", "ada", "look first")
    ]
    assert [r["reason"] for r in events["refusals"]] == ["LEASE_EXPIRED"]
    family = ops.look(f"/jobs/{job_id}/lineage").json()
    assert [job["id"] for job in family["ancestors"]] == [str(parent)]
    assert [job["id"] for job in family["children"]] == [str(grandchild)]
    why = ops.look(f"/jobs/{parent}/explain").json()
    assert (why["code"], why["params"]) == ("WHY_NO_WORKER", {"queue": "default"})


def test_explanation_names_the_effect_and_its_case_or_who_put_it_on_hold(ops):
    case = matters.open_case()
    why = ops.look(f"/jobs/{case.job_id}/explain").json()
    assert why["code"] == "WHY_UNCERTAIN"
    assert why["params"] == {
        "open": 1,
        "effect": "to acme (42.00 EUR)",
        "effect_id": case.effect_id,
        "case_id": str(case.pk),
    }
    held = enqueue()
    Job.objects.hold(held, actor="ada", reason="look first", now=at(3))
    why = ops.look(f"/jobs/{held}/explain").json()
    assert (why["code"], why["params"]["by"], why["params"]["reason"]) == ("WHY_HELD_BY", "ada", "look first")
    assert why["params"]["at"].startswith("2026-03-01T12:00:03")


def test_lineage_stops_where_the_tokens_queues_end(db):
    parent = enqueue(queue="other")
    child = enqueue(queue="mail", parent_id=parent)
    api = Api(secret("jobs:read", queues=("mail",)))
    assert api.look(f"/jobs/{child}/lineage").json() == {"ancestors": [], "children": [], "more": False}


def test_session_without_the_csrf_token_operates_nothing(db):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator())
    job = ready("hold")
    answer = strict.post(
        f"{ROOT}/jobs/{job.id}/hold",
        {"reason": "r"},
        "application/json",
        HTTP_IF_MATCH=f'"{job.state_version}"',
    )
    assert answer.status_code == 403
    assert not audited().exists()


def test_viewer_gets_no_further_than_looking(db):
    viewer = Api(secret("jobs:read", "ops", owner=person("viewer", "view_job")))
    job = ready("hold")
    assert viewer.look(f"/jobs/{job.id}/explain").status_code == 200
    assert viewer.act(f"/jobs/{job.id}/hold", {"reason": "r"}, job.state_version).status_code == 403
