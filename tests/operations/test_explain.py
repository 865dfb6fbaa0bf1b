"""Why a job is where it is: the effect that is asked about, the deadline that passed, who put it on hold."""

import uuid

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import awaited
from jobs.explain import Surroundings, explain, explain_many
from jobs.models import Job
from jobs.operations import quarantine
from jobs.status import HoldReason, JobStatus
from tests import build
from tests.console import matters

pytestmark = pytest.mark.django_db


def why(job_id, *, now=None):
    return explain(Job.objects.get(pk=build.id_of(job_id)), now=now or build.at(100))


# -- what a person is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["committed", "absent", "unknown"])
def test_payload_conflict_is_what_a_person_must_rule_on_whether_its_effect_is_settled_or_open(status):
    case = matters.open_case("conflict", status=status, grants=1)
    build.edit(case.job_id, open_effects=int(status == "unknown"))
    reason = why(case.job_id)
    assert reason.code == "WHY_CONFLICT"
    assert reason.params["case_id"] == str(case.pk)
    assert reason.text == (
        "Payload conflict: what the job brought for to acme (42.00 EUR) is not what was recorded; "
        "a person must rule."
    )


def test_uncertain_job_names_the_effect_its_amount_and_its_case():
    case = matters.open_case()
    reason = why(case.job_id)
    assert reason.text == "The outcome of to acme (42.00 EUR) is unknown; a person must rule."
    assert reason.params == {
        "open": 1,
        "effect": "to acme (42.00 EUR)",
        "effect_id": case.effect_id,
        "case_id": str(case.pk),
    }


def test_of_several_unknown_effects_the_first_is_named_and_all_are_counted():
    lease = build.running()
    for slot, label in (("one", "to acme"), ("two", "to umbrella")):
        build.effect(lease, slot=slot, label=label)
    assert Job.objects.uncertain(lease, "no answer came", now=build.at(1)).landed
    text = why(lease).text
    assert text.startswith("The outcomes of 2 outside effects are unknown, one of them to ")


def test_effect_without_a_label_is_told_by_its_kind():
    case = matters.open_case(label="", amount=None)
    assert why(case.job_id).text == "The outcome of tests.effect is unknown; a person must rule."


def test_cancel_requested_while_an_effect_is_unknown_names_it_too():
    case = matters.open_case()
    Job.objects.cancel(case.job_id, actor="ada", reason="r", now=build.at(5))
    reason = why(case.job_id)
    assert reason.text.startswith("Cancel requested, but the outcome of to acme (42.00 EUR) is unknown")
    assert reason.params["case_id"] == str(case.pk)


def test_wait_for_an_approval_names_what_is_to_be_approved():
    case = matters.open_case("approval", status="prepared", grants=0)
    job = Job.objects.get(pk=case.job_id)
    lease = build.nobodys(job.id)._replace(
        attempt_id=job.attempt_id.hex,
        generation=job.claim_generation,
        worker_id=job.worker_id,
        epoch=job.scheduler_epoch,
    )
    build.end_waiting_for_approval(lease)
    assert why(job.id).text == ("Waits for a person's approval of to acme (42.00 EUR); it has no due time.")


# -- deadlines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.WAITING, JobStatus.BLOCKED])
@pytest.mark.parametrize("held", [False, True])
def test_idle_job_past_its_deadline_says_so_and_that_recovery_ends_it(status, held):
    lease = build.job(status, held=held, deadline_at=build.at(50))
    assert why(lease, now=build.at(49)).code != "WHY_DEADLINE_PASSED"
    reason = why(lease, now=build.at(50))
    assert reason.params == {"at": build.at(50)}
    assert reason.text == "Its deadline passed at 2026-03-01 12:00:50 UTC; the next recovery pass ends it."
    # And that is what happens.
    Job.objects.runtime.recover(limit=10, now=build.at(50))
    assert build.row(lease)["error_code"] == "JOB_DEADLINE_EXCEEDED"


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.RUNNING])
def test_job_in_quarantine_is_not_said_to_be_ended_by_a_recovery_that_leaves_it_alone(status):
    lease = build.job(status, deadline_at=build.at(50))
    Job.objects.hold(
        build.id_of(lease),
        actor="worker w",
        reason="raised",
        hold_reason=HoldReason.QUARANTINE,
        now=build.at(2),
    )
    assert why(lease).code == "WHY_HELD_BY"
    Job.objects.runtime.recover(limit=10, now=build.at(100))
    assert build.row(lease)["status"] == status


def test_lease_that_ran_out_with_the_deadline_is_told_by_the_deadline():
    lease = build.running(deadline_at=build.at(50))
    assert why(lease, now=build.at(49)).code == "WHY_RUNNING"
    assert why(lease, now=build.at(50)).code == "WHY_DEADLINE_PASSED"
    assert why(build.running(), now=build.at(61)).code == "WHY_EXPIRED"


# -- holds ----------------------------------------------------------------------------------------------


def test_hold_says_who_when_and_why():
    job_id = build.enqueue()
    Job.objects.hold(job_id, actor="ada", reason="look first", now=build.at(3))
    reason = why(job_id)
    assert reason.params["by"] == "ada"
    assert reason.text == "On hold (operator) since 2026-03-01 12:00:03 UTC by ada: look first"


def test_hold_that_was_lifted_is_not_the_one_that_is_told():
    job_id = build.enqueue()
    Job.objects.hold(job_id, actor="ada", reason="first", now=build.at(1))
    Job.objects.unhold(job_id, actor="ada", reason="seen", now=build.at(2))
    assert why(job_id).code == "WHY_NO_WORKER"
    Job.objects.hold(
        job_id, actor="worker w", reason="raised", hold_reason=HoldReason.QUARANTINE, now=build.at(3)
    )
    assert (why(job_id).params["by"], why(job_id).params["hold"]) == ("worker w", "quarantine")
    Job.objects.unhold(job_id, actor="ada", reason="seen", now=build.at(4))
    Job.objects.hold(job_id, actor="bea", reason="second", now=build.at(5))
    assert (why(job_id).params["by"], why(job_id).params["reason"]) == ("bea", "second")


def test_quarantine_of_many_jobs_is_told_of_each_of_them(monkeypatch):
    monkeypatch.setattr(quarantine, "PAGE", 3)
    ids = [build.enqueue() for _ in range(8)]
    free = build.enqueue()
    Job.objects.hold(free, actor="bea", reason="mine", now=build.at(1))
    ada = User.objects.create_user("ada")
    ada.user_permissions.add(Permission.objects.get(codename="hold_job"))
    assert sum(quarantine.quarantine([build.KIND], actor=ada, reason="a failover")) == 8
    reasons = explain_many(Job.objects.all())
    told = {reason.params["reason"] for reason in reasons}
    assert len(reasons) == len(ids) + 1
    assert told == {"a failover", "mine"}
    assert why(ids[-1]).params["by"] == "ada"


def test_quarantine_of_many_is_told_also_of_a_job_that_was_once_held_by_itself():
    job_id = build.enqueue()
    Job.objects.hold(job_id, actor="bea", reason="mine", now=build.at(1))
    Job.objects.unhold(job_id, actor="bea", reason="done", now=build.at(2))
    Job.objects.quarantine([job_id], actor="ada", reason="a failover", now=build.at(3))
    assert (why(job_id).params["by"], why(job_id).params["reason"]) == ("ada", "a failover")


def test_hold_that_the_audit_does_not_know_is_told_without_a_person():
    job_id = build.enqueue()
    build.edit(job_id, hold_reason="operator", ready_at=None)
    assert why(job_id).text == "On hold (operator) until a person lifts it."


# -- what it costs --------------------------------------------------------------------------------------


def test_page_of_jobs_is_explained_in_seven_queries_however_many_cases_and_holds_there_are():
    def cost(times):
        for n in range(times):
            matters.open_case(opened=build.at(n))
            held = build.enqueue(now=build.at(n))
            Job.objects.hold(held, actor="ada", reason="r", now=build.at(n))
            build.edit(build.enqueue(now=build.at(n)), hold_reason="quarantine", ready_at=None)
            build.enqueue(now=build.at(n))
        jobs = list(Job.objects.order_by("-id")[:30])
        with CaptureQueriesContext(connection) as queries:
            explain_many(jobs, around=Surroundings())
        return len(queries)

    assert cost(1) == cost(6) <= 7


def test_jobs_that_ask_nobody_cost_no_query_for_it():
    job_id = build.enqueue()
    around = Surroundings(now=build.at(1))
    explain_many([Job.objects.get(pk=job_id)], around=around)  # what is shared is read once
    with CaptureQueriesContext(connection) as queries:
        explain_many([Job.objects.get(pk=job_id)], around=around)
    assert len(queries) == 1


def test_cases_of_other_jobs_are_not_read(monkeypatch):
    monkeypatch.setattr(awaited, "EACH", 1)
    matters.open_case(label="of another")
    case = matters.open_case(label="of this one")
    reason = why(case.job_id)
    assert uuid.UUID(reason.params["case_id"]) == case.pk
    assert "of this one" in reason.text
