"""The invariants of contract §11 that concern tables which exist, each broken by name and seen to hold.

INV-1 to INV-3 are about batches and mirrors, INV-4 about occupancy slots: none of these tables exists yet.
The constraints and triggers themselves are broken one by one in test_constraints.py and test_triggers.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection

from jobs.models import Attempt, EffectSlot, Job
from jobs.outcomes import Ending, Lease
from jobs.status import TERMINAL, UNFINISHED, JobStatus, WaitReason
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "someone", "reason": "because"}


def _claims_nothing(lease: Lease, now: Any) -> bool:
    by_queue = V.claim(worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], max_claims=9, now=now)
    return not by_queue and V.claim_job(build.id_of(lease), worker_id="w", now=now) is None


def test_inv_5_only_the_committed_attempts_result_is_the_jobs():
    old = build.running()
    assert V.stage(old, {"from": "old"}, now=at(1)).landed
    new = build.claim(build.id_of(old), now=at(60))
    assert V.stage(new, {"from": "new"}, now=at(61)).landed
    assert V.commit(old, staged_digest="x", now=at(62)).reason == "GENERATION"
    assert Job.objects.get().result_commit_id is None
    assert V.commit(new, {"from": "new"}, now=at(63)).landed
    named = Attempt.objects.get(pk=Job.objects.get().result_commit_id)
    assert (named.status, named.value) == ("committed", {"from": "new"})
    assert Attempt.objects.exclude(pk=named.pk).get().status == "lost"


def test_inv_6_a_cancel_requested_job_is_never_claimed():
    """From pending a constraint stands behind it; a running one that expires is cancelled, not taken over."""
    lease = build.running()
    V.cancel(build.id_of(lease), **BY, now=at(1))
    assert _claims_nothing(lease, at(61))
    assert build.row(lease)["status"] == "cancelled"


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_inv_7_a_terminal_job_is_never_claimed(status):
    assert _claims_nothing(build.job(status), at(9_999))


def test_inv_8_generations_only_grow():
    """At claim, recovery, takeover and force cancel, and whatever else happens in between."""
    lease = build.running(max_attempts=50)
    seen = [build.row(lease)["claim_generation"]]
    for step in range(12):
        now = at(100 * (step + 1))
        match step % 4:
            case 0:
                V.recover(now=now)
            case 1:
                lease = build.claim(build.id_of(lease), now=now)
            case 2:
                lease = build.claim(build.id_of(lease), now=now, worker=build.RIVAL)
            case 3:
                version = build.row(lease)["state_version"]
                V.force_cancel(build.id_of(lease), state_version=version, **BY, now=now)
                V.retry(build.id_of(lease), state_version=version + 1, **BY, now=now)
                lease = build.claim(build.id_of(lease), now=now)
        seen.append(build.row(lease)["claim_generation"])
    assert seen == sorted(set(seen))


def test_inv_9_a_job_has_one_committed_attempt():
    lease = build.running()
    for value in ("first", "second", "first"):
        V.commit(lease, value, now=at(1))
    assert Attempt.objects.filter(status="committed").count() == 1
    assert build.attempt(lease)["result"] == '"first"'


AUTHORISING: dict[str, Callable[[Lease], Any]] = {
    "renew": lambda lease: V.renew(lease, now=at(5)),
    "stage": lambda lease: V.stage(lease, 1, now=at(5)),
    "commit": lambda lease: V.commit(lease, 1, now=at(5)),
    "fail": lambda lease: V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", now=at(5)),
    "release": lambda lease: V.release(lease, now=at(5)),
    "wait": lambda lease: V.wait(lease, WaitReason.TIMER, seconds=1, now=at(5)),
    "skip": lambda lease: V.skip(lease, "NOTHING_TO_DO", now=at(5)),
    "uncertain": lambda lease: V.uncertain(lease, "?", now=at(5)),
}


@pytest.mark.parametrize("verb", AUTHORISING)
def test_inv_10_nothing_of_an_old_epoch_is_accepted(verb):
    lease = build.running()
    build.raise_epoch(now=at(2))
    before = build.row(lease)
    assert AUTHORISING[verb](lease).reason == "EPOCH"
    assert build.row(lease) == before


def test_inv_10_a_claim_under_an_old_epoch_takes_nothing():
    job_id = build.enqueue()
    build.raise_epoch(now=at(2))
    assert V.claim_job(job_id, worker_id="w", epoch=1, now=at(5)) is None
    assert V.claim(worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], epoch=1, now=at(5)) == []
    assert V.claim_job(job_id, worker_id="w", epoch=2, now=at(5)) is not None


def test_inv_11_a_key_that_may_have_been_sent_keeps_its_payload():
    build.effect(build.running())

    def rebind() -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_effectslot SET payload_digest = 'other', version = version + 1")

    with pytest.raises(IntegrityError, match="INV-11"), build.savepoint():
        rebind()


def test_inv_12_every_accepted_job_stays_in_exactly_one_status():
    wanted = {status: build.id_of(build.job(status)) for status in JobStatus}
    wanted_ids = {*wanted.values(), build.enqueue()}
    V.recover(now=at(10_000))
    V.runtime.promote(now=at(10_000))
    V.claim(worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], max_claims=99, now=at(10_000))
    rows = Job.objects.values_list("id", "status")
    assert {job_id for job_id, _ in rows} == wanted_ids
    assert {status for _, status in rows} <= set(JobStatus)


def _recover_with(lease: Lease, **columns: Any) -> Any:
    build.edit(lease, **columns)
    return V.recover(now=at(61))


ENDINGS: dict[str, Callable[[Lease], Any]] = {
    "fail": lambda lease: V.fail(lease, "HANDLER_CONTENT_FAILED", now=at(5)),
    "skip": lambda lease: V.skip(lease, "NOTHING_TO_DO", now=at(5)),
    "uncertain": lambda lease: V.uncertain(lease, "?", now=at(5)),
    "commit": lambda lease: V.commit(lease, 1, now=at(5)),
    "cancel and acknowledge": lambda lease: (
        V.cancel(build.id_of(lease), **BY, now=at(5)),
        V.acknowledge_cancel(lease, now=at(6)),
    ),
    "force_cancel": lambda lease: V.force_cancel(
        build.id_of(lease), state_version=build.row(lease)["state_version"], **BY, now=at(5)
    ),
    "recovery on the last attempt": lambda lease: _recover_with(lease, max_attempts=1),
    "recovery past the deadline": lambda lease: _recover_with(lease, deadline_at=at(60)),
    "cancel after recovery": lambda lease: (
        V.recover(now=at(61)),
        V.cancel(build.id_of(lease), **BY, now=at(62)),
    ),
    "deadline after recovery": lambda lease: (
        V.recover(now=at(60)),
        _recover_with(lease, deadline_at=at(61)),
    ),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_inv_13_a_job_with_an_open_effect_does_not_end(how):
    lease = build.running()
    key = build.effect(lease, status="executing", replay="queryable")
    ENDINGS[how](lease)
    row = build.row(lease)
    assert JobStatus(row["status"]) in UNFINISHED
    assert row["open_effects"] == 1
    slot = EffectSlot.objects.get(pk=key)
    assert slot.status == ("executing" if row["status"] == "running" else "unknown")
    with pytest.raises(IntegrityError, match="INV-13"), build.savepoint():
        _delete_all_jobs()


def _delete_all_jobs() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_job")


@pytest.mark.parametrize("status", list(JobStatus))
def test_inv_14_status_and_columns_say_the_same(status):
    lease = build.job(status)
    row = build.row(lease)
    runs = status == JobStatus.RUNNING
    assert (row["finished_at"] is not None) == (status in TERMINAL)
    assert (row["lease_expires_at"] is not None) == runs
    assert (row["worker_id"] is not None) == runs
    assert row["attempt_id"] == uuid.UUID(lease.attempt_id), "the last attempt is kept"


def test_endings_in_one_batch_keep_the_invariants_of_each():
    leases = [build.running() for _ in range(3)]
    build.effect(leases[1])
    V.runtime.end([Ending.skip(lease, "NOTHING_TO_DO") for lease in leases], now=at(5))
    assert [build.row(lease)["status"] for lease in leases] == ["skipped", "uncertain", "skipped"]
