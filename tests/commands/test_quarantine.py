"""`manage.py quarantine`: which jobs it finds from the rows that are left, and what it leaves alone."""

from __future__ import annotations

import json

import pytest

from jobs.models import AuditEntry, Change, Job
from jobs.operations import quarantine
from jobs.status import JobStatus
from tests import build
from tests.build import KIND
from tests.commands.conftest import manage

pytestmark = pytest.mark.django_db
RUN = ("--non-replayable", "--as", "grace", "--reason", "failover")


def test_unfinished_jobs_of_a_kind_that_left_a_slot_are_held(chief):
    ended = build.job(JobStatus.SUCCEEDED)
    build.effect(ended, status="committed", replay="non_replayable")
    pending, running = build.enqueue(), build.running()
    held = build.enqueue()
    build.hold(held)
    dry = manage("quarantine", *RUN, "--dry-run", "--json").document
    assert dry == {"kinds": [KIND], "held": 2, "dry_run": True}
    assert not AuditEntry.objects.filter(action="quarantine").exists()
    answer = manage("quarantine", *RUN, "--json")
    assert (answer.code, answer.document["held"]) == (0, 2)
    assert build.row(pending)["hold_reason"] == build.row(running)["hold_reason"] == "quarantine"
    assert build.row(held)["hold_reason"] == "operator"
    assert build.row(ended)["hold_reason"] == ""
    assert Job.objects.claim_job(pending, worker_id="w") is None
    assert Job.objects.commit(running, 1, now=build.at(1)).reason == "HELD"
    entry = AuditEntry.objects.get(action="quarantine")
    assert (entry.user, entry.source) == ("grace", "command")
    assert sorted(json.loads(entry.after)["jobs"]) == sorted([str(pending), str(build.id_of(running))])
    assert len(Change.objects.filter(verb="hold").latest("id").jobs) == 2
    assert manage("quarantine", *RUN, "--json").document["held"] == 0


def test_other_effects_and_kinds_are_left_alone_unless_named(chief):
    lease = build.running()
    build.effect(lease, status="committed", replay="queryable")
    answer = manage("quarantine", *RUN, "--json")
    assert (answer.document["kinds"], answer.document["held"]) == ([], 0)
    answer = manage("quarantine", *RUN, "--kind", KIND, "--json")
    assert (answer.document["kinds"], answer.document["held"]) == ([KIND], 1)


def test_it_goes_page_by_page_with_one_audit_entry_each(chief, monkeypatch):
    monkeypatch.setattr(quarantine, "PAGE", 2)
    for _ in range(5):
        build.enqueue()
    assert manage("quarantine", *RUN, "--kind", KIND, "--json").document["held"] == 5
    assert AuditEntry.objects.filter(action="quarantine").count() == 3


def test_nobody_quarantines_without_the_permission(person):
    person("grace", "raise_epoch", "pause_queue", "fence_worker")
    build.enqueue()
    answer = manage("quarantine", *RUN, "--kind", KIND, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "NOT_PERMITTED")
    assert not Job.objects.exclude(hold_reason="").exists()
