"""Recovery: expired leases come back, one bad row blocks nothing, a mass expiry is looked at twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from jobs import handlers
from jobs.manager import HOOKS
from jobs.models import AuditEntry, Job
from jobs.status import AttemptStatus, HoldReason, JobStatus
from jobs.worker import duties
from tests.build import at
from tests.worker.scene import Scene, attempts, kind, put, row

pytestmark = pytest.mark.django_db


def abandoned(count: int = 1, **options: Any) -> list[Any]:
    """Enqueue and claim jobs for a worker that will never be heard of again."""
    scene = Scene(kinds=[kind().name])
    ids = [scene.enqueue(kind(), **options) for _ in range(count)]
    for job_id in ids:
        assert Job.objects.claim_job(job_id, worker_id="gone:1:x", ttl=60, now=at(0))
    return ids


def raise_for(*bad: Any) -> Any:
    def callback(ids: Any) -> None:
        if {b.hex for b in bad} & set(ids):
            raise ValueError("a callback that cannot cope with this row")

    return callback


def test_an_expired_lease_is_taken_back_and_the_job_runs_again_in_one_step() -> None:
    (job_id,) = abandoned()
    scene = Scene(kinds=[kind().name])
    scene.seconds = 59.9
    assert scene.step() == 0
    scene.seconds = 60
    assert scene.step() == 1
    assert [a.status for a in attempts(job_id)] == [AttemptStatus.LOST, AttemptStatus.COMMITTED]


def test_recovery_goes_on_while_claims_are_closed() -> None:
    (job_id,) = abandoned()
    Job.objects.close_claims(actor="ann", reason="maintenance", now=at(1))
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    assert scene.step() == 0
    assert row(job_id).status == JobStatus.PENDING


def test_a_row_whose_callback_raises_is_quarantined_and_the_others_are_recovered() -> None:
    ids = abandoned(3)
    HOOKS.on_recovered.append(raise_for(ids[1]))
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    assert [row(i).status for i in ids] == [JobStatus.SUCCEEDED, JobStatus.RUNNING, JobStatus.SUCCEEDED]
    assert row(ids[1]).hold_reason == HoldReason.QUARANTINE
    assert attempts(ids[1])[0].status == AttemptStatus.RUNNING
    entry = AuditEntry.objects.get()
    assert (entry.source, entry.action, entry.object_id) == ("automatic", "hold", str(ids[1]))


def test_a_quarantined_row_is_not_tried_again_until_a_person_lifts_the_hold() -> None:
    (job_id,) = abandoned()
    HOOKS.on_recovered.append(raise_for(job_id))
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    HOOKS.on_recovered.clear()
    assert not scene.worker.attend(now=at(70)).expired
    Job.objects.unhold(job_id, actor="ann", reason="callback mended", now=at(80))
    scene.seconds = 90
    scene.step()
    assert row(job_id).status == JobStatus.SUCCEEDED


def test_a_job_past_its_deadline_whose_callback_raises_is_quarantined_too() -> None:
    scene = Scene(kinds=[kind().name])
    bad, good = (scene.enqueue(kind(), delay=100, deadline_at=at(50)) for _ in range(2))
    HOOKS.on_ended.append(raise_for(bad))
    scene.seconds = 50
    scene.step()
    assert (row(bad).status, row(bad).hold_reason) == (JobStatus.PENDING, HoldReason.QUARANTINE)
    assert (row(good).status, row(good).error_code) == (JobStatus.FAILED, "JOB_DEADLINE_EXCEEDED")
    assert not scene.worker.attend(now=at(60)).past_deadline


def test_an_outage_in_the_middle_of_recovery_quarantines_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    (job_id,) = abandoned()

    def gone(ids: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    HOOKS.on_recovered.append(gone)
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.worker.register(now=scene.now)
    with pytest.raises(OperationalError):
        scene.worker.attend(now=scene.now)
    assert row(job_id).hold_reason == ""


def test_an_outage_between_the_rows_quarantines_nobody_either() -> None:
    ids = abandoned(2)

    def callback(recovered: Any) -> None:
        raise ValueError("the page") if len(recovered) > 1 else OperationalError("and then the connection")

    HOOKS.on_recovered.append(callback)
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.worker.register(now=scene.now)
    with pytest.raises(OperationalError):
        scene.worker.attend(now=scene.now)
    assert {row(i).hold_reason for i in ids} == {""}


def test_when_most_leases_run_out_at_once_recovery_waits_for_the_next_pass_to_confirm_it() -> None:
    ids = abandoned(10)
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    assert {row(i).status for i in ids} == {JobStatus.RUNNING}
    scene.seconds = 61
    scene.step()
    assert JobStatus.RUNNING not in {row(i).status for i in ids}


def test_a_mass_expiry_that_turned_out_to_be_a_hiccup_costs_nobody_an_attempt() -> None:
    ids = abandoned(10)
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    scene.seconds = 59  # the clock is put right
    scene.step()
    scene.seconds = 60
    scene.step()
    assert {row(i).status for i in ids} == {JobStatus.RUNNING}, "one odd pass must not count for another"


@pytest.mark.parametrize(("lapsed", "alive"), [(9, 0), (10, 10)])
def test_few_expired_leases_or_a_minority_are_recovered_at_once(lapsed: int, alive: int) -> None:
    ids = abandoned(lapsed)
    living = Scene(kinds=[kind().name], concurrency=50)
    living.seconds = 30
    for _ in range(alive):
        living.enqueue(kind())
    living.claim()
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    assert JobStatus.RUNNING not in {row(i).status for i in ids}


def test_more_than_a_page_of_expired_leases_is_recovered_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duties, "PAGE", 5)
    ids = abandoned(12)
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    scene.step()
    assert not Job.objects.filter(pk__in=ids, worker_id="gone:1:x").exists()


def test_a_job_that_kills_its_worker_ends_after_its_attempts() -> None:
    scene = Scene(kinds=[kind().name])
    job_id = scene.enqueue(kind(), max_attempts=3)
    for _ in range(3):
        assert Job.objects.claim_job(job_id, worker_id="dies:1:x", ttl=60, now=scene.now)
        scene.seconds += 60
        scene.worker.duties.recover(now=scene.now)
    assert (row(job_id).status, row(job_id).error_code) == (JobStatus.FAILED, "LEASE_TIMEOUT_MAX_ATTEMPTS")


def test_a_cancel_whose_holder_died_is_honoured_by_recovery() -> None:
    (job_id,) = abandoned()
    Job.objects.cancel(job_id, actor="ann", now=at(1))
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    scene.step()
    assert (row(job_id).status, row(job_id).attempt_count) == (JobStatus.CANCELLED, 1)


def test_a_duty_that_raises_does_not_keep_the_worker_from_its_other_turns() -> None:
    """In the threaded loop each turn is taken again after a pause; nothing that failed is forgotten."""
    (job_id,) = abandoned()
    scene = Scene(kinds=[kind().name])
    scene.seconds = 60
    broken = iter([KeyError("a bug")])
    recover = scene.worker.duties.recover

    def once_broken(**options: Any) -> int:
        for error in broken:
            raise error
        return recover(**options)

    put(scene.worker.duties, "recover", once_broken)
    scene.step()
    assert row(job_id).status == JobStatus.RUNNING
    scene.step()
    assert row(job_id).status == JobStatus.SUCCEEDED


def test_a_worker_that_knows_no_kind_still_does_the_duties() -> None:
    (job_id,) = abandoned()
    handlers.forget("tests.kind")
    scene = Scene(kinds=[], queues=[])
    scene.worker.kinds = scene.worker.plain = scene.worker.queues = []
    scene.seconds = 60
    assert scene.step() == 0
    assert row(job_id).status == JobStatus.PENDING
