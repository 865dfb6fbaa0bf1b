"""`manage.py jobs cancel|retry|hold|unhold`: who may, what is kept of it, and how it is refused."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db import OperationalError

from jobs import audit
from jobs.management.commands.jobs import PERMISSIONS
from jobs.models import Change, Job
from jobs.models.audit import Source
from jobs.operations import door
from jobs.operations.actor import signed
from jobs.outcomes import Refused
from jobs.status import JobStatus
from tests import build
from tests.commands.conftest import jobs

pytestmark = pytest.mark.django_db
SHELL = pwd.getpwuid(os.getuid()).pw_name


def act(verb: str, job_id: uuid.UUID, *more: object, who: str = "ada"):
    """Use a verb for the reason "typing"."""
    return jobs(verb, job_id, "--reason", "typing", "--as", who, *more)


def test_cancel_ends_a_pending_job_and_keeps_person_account_and_reason(operator):
    job_id = build.enqueue()
    answer = act("cancel", job_id)
    assert answer.code == 0
    assert answer.out == f"{job_id} cancelled: Cancelled by ada (shell: {SHELL}).\n"
    row = build.row(job_id)
    assert (row["status"], row["cancel_requested_by"], row["cancel_reason"]) == (
        "cancelled",
        f"ada (shell: {SHELL})",
        "typing",
    )
    change = Change.objects.get(verb="cancel")
    assert (change.actor, change.reason) == (f"ada (shell: {SHELL})", "typing")


def test_cancel_of_a_running_job_is_a_request_that_its_holder_hears(operator):
    lease = build.running()
    answer = act("cancel", build.id_of(lease), "--json")
    assert (answer.code, answer.document["status"], answer.document["changed"]) == (0, "running", True)
    assert Job.objects.renew(lease, now=build.at(1)).reason == "CANCELLED"
    again = act("cancel", build.id_of(lease), "--json")
    assert (again.code, again.document["changed"]) == (0, False)


def test_cancel_of_a_job_that_has_succeeded_is_refused_with_the_sentence(operator):
    lease = build.job(JobStatus.SUCCEEDED)
    answer = act("cancel", build.id_of(lease))
    assert (answer.code, answer.errors) == (1, "The job has already ended: its status is succeeded.\n")
    answer = act("cancel", build.id_of(lease), "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "ALREADY_ENDED")
    assert build.row(lease)["status"] == "succeeded"


def test_retry_brings_a_failed_job_back(operator):
    lease = build.job(JobStatus.FAILED)
    answer = act("retry", build.id_of(lease), "--json")
    assert (answer.code, answer.document["status"]) == (0, "pending")
    assert build.row(lease)["attempts_excused"] == 1
    assert Change.objects.get(verb="retry").actor == f"ada (shell: {SHELL})"


def test_retry_of_a_passed_deadline_needs_a_new_one(operator):
    lease = build.job(JobStatus.FAILED, deadline=30)
    answer = act("retry", build.id_of(lease))
    assert (answer.code, answer.errors) == (1, "The job's deadline has passed; give a new one.\n")
    assert act("retry", build.id_of(lease), "--deadline", "2999-01-31T12:00:00Z").code == 0
    assert build.row(lease)["deadline_at"].isoformat() == "2999-01-31T12:00:00+00:00"


def test_hold_and_unhold_change_once_and_say_when_they_did_not(operator):
    job_id = build.enqueue()
    assert act("hold", job_id, "--json").document["changed"] is True
    assert build.row(job_id)["hold_reason"] == "operator"
    again = act("hold", job_id)
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    assert Job.objects.claim_job(job_id, worker_id="w") is None
    assert act("unhold", job_id, "--json").document["changed"] is True
    assert build.row(job_id)["hold_reason"] == ""


@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "unhold"])
def test_a_job_that_moved_on_since_it_was_seen_is_left_alone(verb, operator):
    lease = build.job(JobStatus.FAILED if verb == "retry" else JobStatus.PENDING)
    before = build.row(lease)
    answer = act(verb, build.id_of(lease), "--version", before["state_version"] - 1, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "VERSION")
    assert build.row(lease) == before
    assert act(verb, build.id_of(lease), "--version", before["state_version"]).code == 0


@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "unhold"])
def test_nobody_acts_without_the_permission_of_the_verb(verb, person):
    lease = build.job(JobStatus.FAILED if verb == "retry" else JobStatus.PENDING)
    before = build.row(lease)
    others = {"cancel_job", "retry_job", "hold_job", "view_job"} - {PERMISSIONS[verb].split(".")[1]}
    person("eve", *others)
    person("gone", "cancel_job", "retry_job", "hold_job", is_active=False)
    for who, code in (("eve", "NOT_PERMITTED"), ("gone", "USER_INACTIVE"), ("nobody", "USER_UNKNOWN")):
        answer = act(verb, build.id_of(lease), "--json", who=who)
        assert (answer.code, answer.document["error"]["code"]) == (1, code)
    assert build.row(lease) == before


def test_who_may_not_act_does_not_learn_whether_the_job_exists(person):
    person("eve")
    answer = act("cancel", uuid.uuid4(), who="eve")
    assert (answer.code, answer.errors) == (
        1,
        "eve may not do this; it takes the permission jobs.cancel_job.\n",
    )


@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "unhold"])
def test_reason_and_person_are_asked_for(verb, operator):
    job_id = build.enqueue()
    with pytest.raises(CommandError, match="--reason"):
        jobs(verb, job_id, "--as", "ada")
    with pytest.raises(CommandError, match="--as"):
        jobs(verb, job_id, "--reason", "typing")


@pytest.mark.parametrize("reason", [" ", "x" * 1001])
@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "unhold"])
def test_a_reason_that_says_nothing_or_too_much_is_bad_usage(verb, reason, operator):
    lease = build.job(JobStatus.FAILED if verb == "retry" else JobStatus.PENDING)
    before = build.row(lease)
    answer = jobs(verb, build.id_of(lease), "--reason", reason, "--as", "ada")
    assert (answer.code, bool(answer.errors)) == (2, True)
    assert build.row(lease) == before


@pytest.mark.parametrize("verb", ["cancel", "retry", "hold", "unhold"])
def test_a_job_that_is_not_there_ends_with_3(verb, operator):
    assert act(verb, uuid.uuid4()).code == 3


def test_a_very_long_name_leaves_room_for_the_account(person):
    with audit.through(Source.COMMAND, account=SHELL):
        actor = signed("a" * 150)
    assert len(actor) == 150
    assert actor.endswith(f"a (shell: {SHELL})")


def test_an_account_without_a_name_is_recorded_by_its_number(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 987654321)
    assert door.account() == "987654321"


def test_the_account_is_not_taken_from_the_environment(monkeypatch):
    for name in ("LOGNAME", "USER", "SUDO_USER"):
        monkeypatch.setenv(name, "mallory")
    assert door.account() == SHELL


def test_a_job_that_vanishes_between_look_and_act_ends_with_3(operator, monkeypatch):
    def gone(job_id: uuid.UUID, **_by: object) -> None:
        raise Refused("NOT_FOUND", job_id=str(job_id))

    monkeypatch.setattr(Job.objects, "cancel", gone)
    assert act("cancel", build.enqueue()).code == 3


def test_a_database_that_is_away_is_a_sentence_and_not_a_traceback(monkeypatch):
    def away(*_: object, **__: object) -> None:
        raise OperationalError("connection refused\nmore")

    monkeypatch.setattr("jobs.operations.listing.newest", away)
    answer = jobs("list")
    assert (answer.code, answer.errors) == (4, "The database cannot be used: connection refused.\n")


def test_from_a_shell_bad_usage_ends_with_2():
    ended = subprocess.run(
        [sys.executable, "manage.py", "jobs", "cancel", "0" * 32, "--as", "ada"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "--reason" in ended.stderr


def test_bytes_that_are_no_text_are_bad_usage(operator):
    with pytest.raises(CommandError, match="UTF-8"):
        jobs("cancel", build.enqueue(), "--as", "ada", "--reason", "\udcff")
