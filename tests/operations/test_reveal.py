"""What is hidden of a job or a case is shown to who may see it, and the audit says to whom and why."""

import json
import uuid

import pytest
from django.contrib.auth.models import Permission, User

from jobs import audit
from jobs.models import AuditEntry, Job
from jobs.models.audit import Source
from jobs.operations.reveal import reveal, reveal_case
from jobs.outcomes import Refused
from tests import build
from tests.operations import scene

pytestmark = pytest.mark.django_db
SECRET = "hunter2"


@pytest.fixture
def reader():
    """A person who may see payloads."""
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="view_payload"))
    return user


def test_it_is_shown_as_it_is_and_the_audit_says_to_whom_and_why(reader):
    job_id = build.enqueue({"password": SECRET})
    with audit.through(Source.CONSOLE, user="reader"):
        found = reveal(job_id, actor=reader, reason="the provider asks for it")
    assert (json.loads(found.input), found.result) == ({"password": SECRET}, None)
    entry = AuditEntry.objects.get()
    told = (entry.action, entry.object_id, entry.user, entry.reason)
    assert told == ("reveal", str(job_id), "reader", "the provider asks for it")
    assert SECRET not in entry.before + entry.after


def test_result_is_shown_too(reader):
    lease = build.running()
    assert Job.objects.commit(lease, {"token": SECRET}, now=build.at(1)).landed
    found = reveal(build.id_of(lease), actor=reader, reason="r")
    assert json.loads(found.result or "null") == {"token": SECRET}


@pytest.mark.parametrize(
    ("who", "reason", "code"),
    [("nobody", "r", "NOT_PERMITTED"), ("reader", " ", "REASON_MISSING"), ("reader", "r", "NOT_FOUND")],
)
def test_refused_reveal_shows_nothing_and_leaves_no_entry(reader, who, reason, code):
    User.objects.create_user("nobody")
    job_id = build.enqueue({"password": SECRET})
    wanted = uuid.uuid4() if code == "NOT_FOUND" else job_id
    with pytest.raises(Refused) as refused:
        reveal(wanted, actor=User.objects.get(username=who), reason=reason)
    assert refused.value.code == code
    assert not AuditEntry.objects.exists()


# -- a case


def test_case_shows_all_that_it_hides_and_the_audit_keeps_none_of_it(reader):
    matter = scene.conflict(sent="unknown")
    with audit.through(Source.CONSOLE, user="reader"):
        found = reveal_case(matter.of("conflict").id, actor=reader, reason="which one is right?")
    assert json.loads(found.payload) == scene.PAYLOAD
    assert json.loads(found.brought or "null")["to"] == "umbrella"
    entry = AuditEntry.objects.get()
    told = (entry.action, entry.object_type, entry.object_id, entry.user, entry.reason)
    assert told == ("reveal", "case", str(matter.of("conflict").id), "reader", "which one is right?")
    assert not any(text in entry.before + entry.after for text in ("umbrella", "acme", "50.00"))


@pytest.mark.parametrize(
    ("who", "reason", "code"),
    [("nobody", "r", "NOT_PERMITTED"), ("reader", " ", "REASON_MISSING"), ("reader", "r", "CASE_NOT_FOUND")],
)
def test_refused_reveal_of_a_case_leaves_no_entry(reader, who, reason, code):
    User.objects.create_user("nobody")
    case_id = scene.unknown().case.id
    wanted = uuid.uuid4() if code == "CASE_NOT_FOUND" else case_id
    with pytest.raises(Refused) as refused:
        reveal_case(wanted, actor=User.objects.get(username=who), reason=reason)
    assert refused.value.code == code
    assert not AuditEntry.objects.exists()


def test_nothing_is_shown_where_the_audit_cannot_be_written(reader, monkeypatch):
    case_id = scene.unknown().case.id
    monkeypatch.setattr("jobs.ledger.audit.lock_head", lambda _session: None)
    with pytest.raises(audit.HeadMissing):
        reveal_case(case_id, actor=reader, reason="r")
