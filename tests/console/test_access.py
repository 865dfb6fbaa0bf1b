"""Who sees what: every address × every role. An address without a row here fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import reverse

from console.groups import GROUPS
from jobs import canon
from jobs.models import (
    ApiToken,
    Attempt,
    AuditEntry,
    Change,
    EffectSlot,
    FenceRefusal,
    Job,
    Minute,
    Plan,
    Queue,
    RaiseProposal,
    Scheduler,
    Worker,
)
from jobs.models.plan import PlanAction
from jobs.operations import exposure, plans
from tests import build
from tests.console import matters, urltable
from tests.console.people import ROLES

EVERY_ROLE = (*ROLES, "nobody", "outsider", "anonymous")
EVERYBODY = "everybody"
STAFF = "staff"
ANYBODY = "anybody"
pytestmark = pytest.mark.looks_alike


@dataclass(frozen=True)
class Row:
    """What an address asks for, its arguments, and what it answers to whom it lets in."""

    permission: str
    arguments: Callable[[Any], list[Any]] = lambda job: []
    answer: int = 200
    query: str = ""


def window(model: Any) -> dict[str, Row]:
    """Return the rows of a read-only window."""
    name = f"jobs_{model._meta.model_name}"
    permission = f"view_{model._meta.model_name}"
    return {
        f"admin:{name}_changelist": Row(permission),
        f"admin:{name}_change": Row(permission, lambda job: [model.objects.order_by("pk").first().pk]),
    }


MATRIX: dict[str, Row] = {
    "admin:index": Row("view_job"),
    "admin:inbox": Row("view_case"),
    "admin:case": Row("view_case", lambda job: [matters.of(job)]),
    **{
        f"admin:case-{act}": Row("view_case", lambda job: [matters.of(job)], answer=302)
        for act in ("rule", "take", "give-back", "park", "comment", "inquire")
    },
    **{
        f"admin:case-{act}": Row("view_case", lambda job: [matters.of(job), job.id], answer=302)
        for act in ("approve", "reject")
    },
    "admin:case-reveal": Row("view_payload", lambda job: [matters.of(job)]),
    "admin:casefile": Row("view_case", lambda job: [matters.of(job)]),
    "admin:next-case": Row("view_case", answer=302),
    "admin:handover": Row("view_case"),
    "admin:search": Row("view_job"),
    "admin:second-factor": Row(STAFF),
    "admin:preferences": Row("view_job"),
    "admin:view-keep": Row("view_job", lambda job: ["inbox"], answer=302),
    "admin:view-forget": Row("view_job", lambda job: ["jobs", 1], answer=302),
    "admin:jobs": Row("view_job"),
    "admin:jobs-export": Row("view_job"),
    "admin:inbox-export": Row("view_case"),
    "admin:audit-export": Row("view_auditentry"),
    "admin:job": Row("view_job", lambda job: [job.id]),
    "admin:queues": Row("view_queue"),
    "admin:workers": Row("view_worker"),
    "admin:refusals": Row("view_fencerefusal"),
    "admin:scheduler": Row("view_scheduler"),
    "admin:tokens": Row("manage_token"),
    "admin:token-revoke": Row("manage_token", lambda job: [1], answer=302),
    "admin:drain": Row("view_scheduler"),
    "admin:audit": Row("view_auditentry"),
    **{
        f"admin:job-{act}": Row(f"{act.replace('-', '_')}_job", lambda job: [job.id])
        for act in ("cancel", "force-cancel", "retry", "revise", "hold")
    },
    "admin:job-unhold": Row("hold_job", lambda job: [job.id]),
    "admin:job-reveal": Row("view_payload", lambda job: [job.id]),
    "admin:queue-pause": Row("pause_queue", query="?queue=mail"),
    "admin:queue-resume": Row("pause_queue", query="?queue=mail"),
    "admin:worker-fence": Row("fence_worker", query="?worker=host:1:a"),
    "admin:epoch-raise": Row("raise_epoch"),
    **{
        f"admin:raise-{answer}": Row("view_scheduler", lambda job: [RaiseProposal.objects.get().pk])
        for answer in ("confirm", "decline")
    },
    "admin:claims-close": Row("raise_epoch"),
    "admin:claims-open": Row("raise_epoch"),
    "admin:plans": Row("view_job"),
    "admin:plan-new": Row("view_job", query="?status=failed"),
    "admin:plan": Row("view_job", lambda job: [Plan.objects.get().pk]),
    **{
        f"admin:plan-{name}": Row("view_job", lambda job: [Plan.objects.get().pk])
        for name in ("rows", "export")
    },
    "admin:plan-execute": Row("view_job", lambda job: [Plan.objects.get().pk], answer=302),
    "admin:plan-abort": Row("view_job", lambda job: [Plan.objects.get().pk], answer=302),
    "admin:drills": Row("view_job"),
    "admin:practice": Row("view_job"),
    "admin:conversions": Row("view_job"),
    "admin:conversion-file": Row("view_job", lambda job: [job.id], answer=404),
    "language": Row(ANYBODY, answer=302),
    "admin:login": Row(EVERYBODY),
    "admin:logout": Row(STAFF, answer=405),
    "admin:password_change": Row(STAFF),
    "admin:password_change_done": Row(STAFF),
    "admin:": Row(STAFF, answer=404),
    **window(Attempt),
    **window(EffectSlot),
    **window(Change),
    **window(Minute),
    **window(FenceRefusal),
    **window(Worker),
    **window(Queue),
    **window(Scheduler),
    **window(ApiToken),
}


@pytest.fixture
def one_of_each(job, django_user_model):
    """A row in every table."""
    from jobs.ledger import raising
    from jobs.ledger import worker as worker_rows
    from jobs.ledger.session import transact
    from jobs.vocabulary import JOB

    def write(session):
        worker_rows.register(
            session,
            id="host:1:a",
            host="host",
            pid=1,
            boot_id="",
            pid_namespace="",
            pid_started=None,
            version="1",
            queues=["default"],
            kinds=[build.KIND],
            concurrency=1,
            epoch=1,
        )
        row = {
            "minute": build.T0,
            "queue": "",
            "kind": "",
            "measure": "m",
            "bucket": 0,
            "count": 1,
            "total": 0.0,
        }
        worker_rows.add_minutes(session, [row])
        asked: dict[str, Any] = {
            "floor": 0,
            "close_claims": False,
            "reason": "why",
            "by": "ann",
            "account": "0",
        }
        price = canon.canonical(exposure.of_all("default").document())
        assert raising.propose(session, expected=1, price=price, seconds=3600, **asked)

    transact(write, using="default", vocabulary=JOB, now=build.T0, durable=False, fenced=False)
    Job.objects.pause_queue("mail", actor="someone", reason="why", now=build.T0)
    ApiToken.objects.issue("t", user=django_user_model.objects.create_user("o"), scopes=[], queues=[])
    root = django_user_model.objects.create_superuser("root")
    plans.prepare(PlanAction.CANCEL, Job.objects.all(), actor=root, reason="why", ids=[build.enqueue()])
    return job


def test_every_address_has_a_row():
    found = urltable.names()
    assert sorted(found) == sorted(MATRIX)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("role", EVERY_ROLE)
def test_pages_are_for_whom_their_permissions_say(role, browse, one_of_each):
    client, wrong = browse(role), {}
    for name, row in MATRIX.items():
        with build.undone():
            url = "/no/such/page/" if name == "admin:" else reverse(name, args=row.arguments(one_of_each))
            answer = client.get(url + row.query).status_code
        if row.permission == ANYBODY:
            expected = row.answer
        elif row.permission == EVERYBODY:
            # Somebody who may use the console is past the log-in already.
            expected = 302 if role in (*ROLES, "nobody") else 200
        elif role in ("outsider", "anonymous"):
            expected = 302
        elif row.permission == STAFF or row.permission in GROUPS.get(role, ()):
            expected = row.answer
        else:
            expected = 403
        if answer != expected:
            wrong[name] = (answer, expected)
    assert wrong == {}


def test_nothing_can_be_written_through_a_window(browse, one_of_each):
    for name, row in MATRIX.items():
        if name.startswith("admin:jobs_"):
            url = reverse(name, args=row.arguments(one_of_each))
            answer = browse("admin").post(url, {"status": "x", "name": "x", "action": "delete_selected"})
            assert answer.status_code in (200, 302, 403), name
    assert one_of_each.__class__.objects.get(pk=one_of_each.pk).state_version == one_of_each.state_version
    assert Queue.objects.get(pk="mail").paused_by == "someone"


@pytest.mark.parametrize(
    "name",
    [
        "admin:index",
        "admin:inbox",
        "admin:case",
        "admin:casefile",
        "admin:handover",
        "admin:search",
        "admin:jobs",
        "admin:job",
        "admin:queues",
        "admin:workers",
    ],
)
def test_page_of_ours_is_for_reading_only(name, browse, job):
    url = reverse(name, args=MATRIX[name].arguments(job))
    for method in ("post", "put", "patch", "delete"):
        assert getattr(browse("admin"), method)(url).status_code == 405


ACTS: dict[str, set[str]] = {
    **{act: {"adjudicator", "approver", "admin"} for act in ("take", "give-back", "park", "comment")},
    **{act: {"adjudicator", "approver", "admin"} for act in ("rule", "reject")},
    "inquire": {"adjudicator", "admin"},
    "reveal": {"adjudicator", "approver", "admin"},
    "approve": {"approver", "admin"},
}
"""Who may send each form of a case. What is sent here says not what was seen, so that nothing happens."""


@pytest.mark.parametrize("role", EVERY_ROLE)
def test_forms_of_a_case_are_for_whom_they_say(role, browse, job):
    client, wrong = browse(role), {}
    for act, roles in ACTS.items():
        expected = 302 if role in ("outsider", "anonymous") else 400 if role in roles else 403
        with build.undone():
            answer = client.post(
                reverse(f"admin:case-{act}", args=MATRIX[f"admin:case-{act}"].arguments(job))
            ).status_code
        if answer != expected:
            wrong[act] = (answer, expected)
    assert wrong == {}


OPERATIONS = [name for name in MATRIX if name.startswith(("admin:job-", "admin:queue-", "admin:worker-"))]
OPERATIONS += [name for name in MATRIX if name.startswith(("admin:epoch-", "admin:claims-"))]


@pytest.mark.parametrize("role", EVERY_ROLE)
def test_operations_are_sent_only_by_whom_their_permissions_say_and_never_without_a_reason(
    role, browse, one_of_each
):
    client, wrong = browse(role), {}
    before = AuditEntry.objects.count()
    for name in OPERATIONS:
        row = MATRIX[name]
        expected = 302 if role in ("outsider", "anonymous") else 403
        expected = 400 if row.permission in GROUPS.get(role, ()) else expected
        with build.undone():
            answer = client.post(reverse(name, args=row.arguments(one_of_each)) + row.query).status_code
            assert AuditEntry.objects.count() == before, name
        if answer != expected:
            wrong[name] = (answer, expected)
    assert wrong == {}


def test_every_form_of_a_case_has_a_row():
    assert {f"admin:case-{act}" for act in ACTS} == {
        name for name in MATRIX if name.startswith("admin:case-")
    }


def test_tokens_digest_is_on_no_page(browse, one_of_each):
    token = ApiToken.objects.get()
    client = browse("admin")
    pages = [
        client.get(reverse("admin:jobs_apitoken_changelist")).content.decode(),
        client.get(reverse("admin:jobs_apitoken_change", args=[token.pk])).content.decode(),
    ]
    assert token.prefix in pages[0]
    assert not any(token.digest in page for page in pages)
