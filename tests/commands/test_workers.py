"""Fencing one worker: after it has returned nothing of that worker lands, and its jobs are taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from jobs import failpoints
from jobs.ledger import session
from jobs.ledger import worker as worker_rows
from jobs.models import AuditEntry, Change, Job, Worker
from jobs.outcomes import Lease, Refused
from jobs.status import WaitReason
from tests import build
from tests.build import KIND, QUEUE, RIVAL, WORKER, at
from tests.commands.conftest import manage

pytestmark = pytest.mark.django_db
BY = ("--as", "grace", "--reason", "drill")
BECAUSE: dict[str, Any] = {"actor": "ann", "reason": "drill"}
V = Job.objects

HOLDERS: dict[str, Callable[[Lease], Any]] = {
    "renew": lambda lease: V.renew(lease, now=at(10)),
    "stage": lambda lease: V.stage(lease, 1, now=at(10)),
    "commit": lambda lease: V.commit(lease, 1, now=at(10)),
    "fail": lambda lease: V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", now=at(10)),
    "release": lambda lease: V.release(lease, now=at(10)),
    "wait": lambda lease: V.wait(lease, WaitReason.TIMER, seconds=5, now=at(10)),
    "skip": lambda lease: V.skip(lease, "NOTHING_TO_DO", now=at(10)),
    "uncertain": lambda lease: V.uncertain(lease, "no answer", now=at(10)),
}


@pytest.mark.parametrize("verb", list(HOLDERS))
def test_no_verb_of_a_fenced_worker_lands(verb):
    build.register(WORKER)
    lease = build.running()
    with build.undone():
        assert HOLDERS[verb](lease).landed, "it is the fence that refuses"
    assert V.fence_worker(WORKER, **BECAUSE, now=at(10)) == 1
    before = build.row(lease)
    outcome = HOLDERS[verb](lease)
    assert (outcome.landed, outcome.reason) == (False, "LEASE_EXPIRED")
    assert build.row(lease) == before


def test_fenced_worker_claims_nothing_by_either_door():
    build.register(WORKER)
    job_id = build.enqueue()
    V.fence_worker(WORKER, **BECAUSE, now=at(1))
    assert not V.claim(worker_id=WORKER, queues=[QUEUE], kinds=[KIND], now=at(2))
    assert V.claim_job(job_id, worker_id=WORKER, now=at(2)) is None
    assert V.claim_job(job_id, worker_id=RIVAL, now=at(2))


def test_its_jobs_are_taken_back_with_their_attempts_lost_and_others_go_on():
    build.register(WORKER)
    lease, other = build.running(), build.claim(build.enqueue(), worker=RIVAL)
    build.effect(lease, status="executing")
    V.fence_worker(WORKER, **BECAUSE, now=at(1))
    assert [ended.id for ended in V.recover(now=at(1))] == [lease.job_id]
    assert (build.attempt(lease)["status"], build.row(lease)["status"]) == ("lost", "pending")
    assert Job.objects.get(pk=build.id_of(lease)).effects.get().status == "unknown"
    assert V.commit(other, 1, now=at(2)).landed


def test_fence_is_written_audited_and_told_once():
    build.register(WORKER)
    lease = build.running()
    V.fence_worker(WORKER, **BECAUSE, now=at(1))
    with pytest.raises(Refused) as again:
        V.fence_worker(WORKER, actor="bob", reason="too", now=at(2))
    assert (again.value.code, again.value.params) == ("WORKER_FENCED", {"worker": WORKER, "by": "ann"})
    with pytest.raises(Refused) as unknown:
        V.fence_worker("nobody", **BECAUSE, now=at(2))
    assert unknown.value.code == "WORKER_UNKNOWN"
    row = Worker.objects.get()
    assert (row.fenced_at, row.fenced_by) == (at(1), "ann")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_type, entry.object_id) == ("fence_worker", "worker", WORKER)
    assert '"leases_ended":1' in entry.after
    change = Change.objects.get(verb="fence_worker")
    assert change.jobs == [[lease.job_id, "running"]]


def test_lease_that_had_run_out_is_left_as_it_was():
    build.register(WORKER)
    lease = build.running()
    assert V.fence_worker(WORKER, **BECAUSE, now=at(70)) == 0
    assert build.row(lease)["lease_expires_at"] == at(60)


def test_row_of_a_fenced_worker_is_kept_so_that_it_never_claims_again():
    build.register(WORKER)
    build.register(RIVAL)
    V.fence_worker(WORKER, **BECAUSE, now=at(1))
    assert build.ledger(worker_rows.prune, now=at(10 * 86400)) == 1
    assert Worker.objects.get().id == WORKER


def test_command_lists_tells_the_price_and_fences(chief, typed):
    build.register(WORKER)
    build.running()
    (row,) = manage("workers", "list", "--json").document["workers"]
    assert (row["id"], row["leases"], row["fenced_at"]) == (WORKER, 1, None)
    answer = manage("workers", "fence", WORKER, *BY, "--json")
    assert (answer.code, answer.document["price"]["attempts_lost"]) == (1, 1)
    typed("no")
    assert manage("workers", "fence", WORKER, *BY).code == 1
    assert Worker.objects.get().fenced_at is None
    typed("fence")
    answer = manage("workers", "fence", WORKER, *BY)
    assert (answer.code, Worker.objects.get().fenced_at is None) == (0, False)
    assert "fenced" in manage("workers", "list").out
    again = manage("workers", "fence", WORKER, *BY, "--yes", "--json")
    assert (again.code, again.document["error"]["code"]) == (1, "WORKER_FENCED")


def test_nobody_fences_without_the_permission(person):
    person("grace", "raise_epoch", "pause_queue", "hold_job")
    build.register(WORKER)
    answer = manage("workers", "fence", WORKER, *BY, "--yes", "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "NOT_PERMITTED")
    assert Worker.objects.get().fenced_at is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["commit", "renew", "claim"])
def test_write_under_way_lands_before_the_fence_or_not_at_all(verb, monkeypatch):
    """The write is sent and not committed when the fence is asked for: the fence waits for it."""
    if not connection.features.has_select_for_update:
        pytest.skip("this database has one writer at a time, so that nothing is under way beside it")
    monkeypatch.setattr(session, "OPEN_EXCLUSIVE", session.OPEN_EXCLUSIVE.replace("'2s'", "'30s'"))
    build.register(WORKER)
    lease = V.claim_job(build.enqueue(), worker_id=WORKER)
    assert lease is not None
    ready = build.enqueue()
    sent, goes_on, answers = threading.Event(), threading.Event(), {}
    real = failpoints.failpoint

    def pausing(name: str) -> None:
        real(name)
        if name == f"{verb}.sent" and threading.current_thread() is writer:
            sent.set()
            assert goes_on.wait(30)

    monkeypatch.setattr("jobs.runtime.failpoint", pausing)
    writes: dict[str, Callable[[], Any]] = {
        "commit": lambda: V.commit(lease, 1).landed,
        "renew": lambda: V.renew(lease).landed,
        "claim": lambda: bool(V.claim_job(ready, worker_id=WORKER)),
    }

    def run(name: str, work: Callable[[], Any]) -> None:
        answers[name] = work()
        connections.close_all()

    writer = threading.Thread(target=run, args=("write", writes[verb]))
    fencer = threading.Thread(target=run, args=("fence", lambda: V.fence_worker(WORKER, **BECAUSE)))
    writer.start()
    assert sent.wait(30)
    fencer.start()
    while not _waits():
        pass
    assert "fence" not in answers
    goes_on.set()
    writer.join()
    fencer.join()
    assert answers["write"] is True
    assert answers["fence"] == {"commit": 0, "renew": 1, "claim": 2}[verb], "it saw what had been under way"
    assert not V.renew(lease).landed
    assert not Job.objects.filter(worker_id=WORKER, lease_expires_at__gt=Worker.objects.get().fenced_at)


def _waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE relation = 'jobs_scheduler'::regclass AND NOT granted"
        )
        return bool(cursor.fetchone()[0])
