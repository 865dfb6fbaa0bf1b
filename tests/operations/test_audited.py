"""An operation stands with its entry in the audit, or not at all."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from jobs import audit
from jobs.models import Job
from jobs.models.audit import AuditEntry, AuditHead, Source
from jobs.outcomes import Refused
from jobs.status import JobStatus
from tests import build
from tests.build import at
from tests.ledger.chained import faults, last

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "because"}


def _told() -> tuple[str, str, Any, Any]:
    entry = last()
    assert (entry.actor, entry.reason) == ("ann", "because")
    assert faults() == []
    return entry.action, entry.object_type, json.loads(entry.before), json.loads(entry.after)


def test_cancel_of_a_family_is_one_entry_that_names_its_descendants():
    parent = build.enqueue()
    child = build.enqueue(parent_id=parent)
    assert V.cancel(parent, **BY, now=at(1)) == JobStatus.CANCELLED
    action, kind, before, after = _told()
    assert (action, kind, last().object_id) == ("cancel", "job", str(parent))
    assert (before["status"], after["status"]) == ("pending", "cancelled")
    assert after["descendants_named"] == {str(child): "cancelled"}
    assert AuditEntry.objects.count() == 1
    V.cancel(parent, **BY, now=at(2))
    assert AuditEntry.objects.count() == 1, "a second request changes nothing"


def test_every_verb_of_a_person_leaves_an_entry_with_before_and_after():
    lease = build.running()
    job_id = build.id_of(lease)

    def version() -> int:
        return int(build.row(job_id)["state_version"])

    V.revise(job_id, {"x": 2}, state_version=version(), **BY, now=at(2))
    action, _, before, after = _told()
    assert (action, before["revision"], after["revision"]) == ("revise", 1, 2)
    assert before["input_digest"] != after["input_digest"]
    V.hold(job_id, **BY, now=at(3))
    assert _told()[0] == "hold"
    assert (_told()[2]["hold_reason"], _told()[3]["hold_reason"]) == ("", "operator")
    V.hold(job_id, **BY, now=at(3))
    assert AuditEntry.objects.count() == 2
    V.unhold(job_id, **BY, now=at(4))
    assert (_told()[0], _told()[3]["hold_reason"]) == ("unhold", "")
    V.cancel(job_id, **BY, now=at(5))
    assert (_told()[0], _told()[3]["cancel_requested"]) == ("cancel", True)
    V.force_cancel(job_id, state_version=version(), **BY, now=at(6))
    action, _, before, after = _told()
    assert (action, before["status"], after["status"]) == ("force_cancel", "running", "cancelled")
    assert after["claim_generation"] == before["claim_generation"] + 1
    V.retry(job_id, state_version=version(), **BY, now=at(7))
    assert (_told()[0], _told()[3]["status"]) == ("retry", "pending")
    assert [e.object_id for e in AuditEntry.objects.all()] == [str(job_id)] * 6


def test_every_verb_on_the_cluster_leaves_an_entry():
    V.close_claims(**BY, now=at(1))
    assert (_told()[0], _told()[2]["claims_open"], _told()[3]["claims_open"]) == ("close_claims", True, False)
    V.open_claims(**BY, now=at(2))
    assert _told()[:2] == ("open_claims", "scheduler")
    epoch = build.epoch()
    V.raise_epoch(expected=epoch, **BY, now=at(3))
    assert (_told()[0], _told()[2]["epoch"], _told()[3]["epoch"]) == ("raise_epoch", epoch, epoch + 1)
    V.pause_queue("mail", **BY, until=at(90), now=at(4))
    action, kind, before, after = _told()
    assert (action, kind, last().object_id, before) == ("pause_queue", "queue", "mail", {})
    assert after == {
        "paused_at": at(4).isoformat(),
        "paused_until": at(90).isoformat(),
        "paused_by": "ann",
    }
    V.resume_queue("mail", **BY, now=at(5))
    assert (_told()[0], _told()[3]["paused_at"]) == ("resume_queue", None)
    assert _told()[2] == after
    assert V.resume_queue("mail", **BY, now=at(6)) is False
    assert AuditEntry.objects.count() == 5


def test_refused_operation_and_rolled_back_operation_leave_no_entry():
    job_id = build.enqueue()
    with pytest.raises(Refused):
        V.hold(job_id, **BY, state_version=9, now=at(1))
    with transaction.atomic():
        assert V.hold(job_id, **BY, now=at(1))
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()
    assert AuditHead.objects.get().seq == 0


def test_entry_tells_the_door_and_what_was_known_there():
    job_id = build.enqueue()
    known = {"user": "ann", "request_id": "r", "snapshot": "5" * 64, "approver": "bob"}
    with audit.through(Source.CONSOLE, **known):
        V.hold(job_id, **BY, now=at(1))
    entry = last()
    assert (entry.source, {name: getattr(entry, name) for name in known}) == ("console", known)
    V.unhold(job_id, **BY, now=at(2))
    assert (last().source, last().user) == ("automatic", "")


def test_cancel_through_the_api_is_told_so():
    from tests.api.caller import EVERY_SCOPE, Api, secret

    job_id = build.enqueue()
    answer = Api(secret(*EVERY_SCOPE)).send({"reason": "wrong letter"}, f"/jobs/{job_id}/cancel")
    assert answer.status_code == 200
    entry = last()
    assert (entry.source, entry.user, entry.actor) == ("api", "owner", "owner by token ci")


def test_jobs_command_says_through_which_door(django_user_model):
    django_user_model.objects.create_superuser("root")
    job_id = build.enqueue()
    call_command("jobs", "hold", str(job_id), "--reason", "r", "--as", "root", stdout=StringIO())
    assert (last().source, last().user) == ("command", "root")
    assert last().actor.startswith("root (shell: ")
