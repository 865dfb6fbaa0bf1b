"""The probe: one question that tells everything there is to do, and nothing that there is not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from jobs.ledger.probe import PAIRS, Findings, held_by, probe
from jobs.ledger.session import Session
from jobs.models import Job
from jobs.outcomes import Lease
from jobs.status import HoldReason, JobStatus
from jobs.vocabulary import JOB
from tests import build
from tests.build import KIND, WORKER, at

pytestmark = pytest.mark.django_db


def look(
    seconds: float = 0, queues: Any = ("default",), kinds: Any = (KIND,), worker: str = WORKER
) -> Findings:
    return probe(Session("default", JOB, at(seconds)), worker=worker, queues=queues, kinds=kinds)


def test_with_nothing_to_do_it_finds_nothing() -> None:
    assert look() == Findings(
        epoch=1, claims_open=True, clock_went_back=False, fenced=False, registered=False, due_in=None,
        past_deadline=False, running=0, expired=0, mine=0, cancels=0, ready=False,
    )  # fmt: skip


def test_ready_is_a_due_job_of_a_queue_and_kind_that_was_asked_for() -> None:
    build.enqueue()
    assert look().ready
    assert not look(queues=["elsewhere"]).ready
    assert not look(kinds=["tests.other"]).ready
    assert look(queues=["elsewhere", "default"], kinds=["tests.other", KIND]).ready


def test_among_more_pairs_than_one_statement_takes_none_is_overlooked() -> None:
    kinds = [f"tests.k{n}" for n in range(PAIRS + 20)]
    queues = ["elsewhere", "default"]
    assert not look(queues=queues, kinds=kinds).ready
    build.enqueue()
    assert look(queues=queues, kinds=[*kinds, KIND]).ready
    assert look(queues=queues, kinds=[KIND, *kinds]).ready


def test_a_job_on_hold_or_already_running_is_not_ready() -> None:
    held = build.enqueue()
    Job.objects.hold(held, actor="ann", reason="wait", now=at(0))
    build.running()
    assert not look().ready


@pytest.mark.parametrize(("seconds", "due_in"), [(0, 30.0), (29.5, 0.5), (30, 0.0), (31, -1.0)])
def test_the_next_due_time_is_told_in_seconds_by_the_databases_clock(seconds: float, due_in: float) -> None:
    build.enqueue(delay=30)
    build.enqueue(delay=99)
    assert look(seconds).due_in == pytest.approx(due_in)


def test_the_due_time_of_a_job_on_hold_wakes_nobody() -> None:
    job_id = build.enqueue(delay=30)
    Job.objects.hold(job_id, actor="ann", reason="wait", now=at(0))
    assert look().due_in is None


@pytest.mark.parametrize(("seconds", "expired"), [(59.999999, 0), (60, 1)])
def test_a_lease_is_expired_from_its_very_end_on(seconds: float, expired: int) -> None:
    build.running()
    assert (look(seconds).expired, look(seconds).running) == (expired, 1)


def test_after_a_raise_every_older_lease_is_expired() -> None:
    build.running()
    Job.objects.raise_epoch(expected=1, actor="ann", reason="drill", now=at(1))
    assert (look(2).epoch, look(2).expired) == (2, 1)


def test_a_quarantined_lease_is_left_out_of_expired_and_mine() -> None:
    lease: Lease = build.running()
    Job.objects.hold(build.id_of(lease), actor="w", reason="x", hold_reason=HoldReason.QUARANTINE, now=at(1))
    found = look(60)
    assert (found.expired, found.mine, found.running) == (0, 0, 1)
    assert held_by(Session("default", JOB, at(60)), WORKER) == []


def test_running_counts_the_queues_that_were_asked_for() -> None:
    build.running(queue="elsewhere")
    assert look().running == 0
    assert look(queues=["elsewhere"]).running == 1


def test_mine_and_cancels_are_those_of_the_worker_that_asks() -> None:
    lease = build.running()
    Job.objects.cancel(build.id_of(lease), actor="ann", now=at(1))
    assert (look(2).mine, look(2).cancels) == (1, 1)
    assert (look(2, worker="other:1:x").mine, look(2, worker="other:1:x").cancels) == (0, 0)


def test_a_deadline_is_passed_from_its_very_instant_on() -> None:
    build.enqueue(delay=100, deadline_at=at(50))
    assert not look(49.999999).past_deadline
    assert look(50).past_deadline


def test_closed_claims_are_seen() -> None:
    Job.objects.close_claims(actor="ann", reason="maintenance", now=at(0))
    assert not look().claims_open


def test_a_lease_read_back_can_be_given_back() -> None:
    lease = build.running()
    (found,) = held_by(Session("default", JOB, at(1)), WORKER)
    assert found.token() == lease.token()
    assert Job.objects.release(found, now=at(1)).status == JobStatus.PENDING


def test_it_writes_nothing() -> None:
    build.running()
    with connection.cursor() as cursor:
        cursor.execute("SELECT state_version FROM jobs_job")
        before = cursor.fetchall()
        look(100)
        cursor.execute("SELECT state_version FROM jobs_job")
        assert cursor.fetchall() == before
