"""What a claim takes and leaves, at its edges."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.handlers import job
from jobs.models import Attempt, Job
from jobs.runtime import KINDS_PER_CLAIM
from tests import build
from tests.build import KIND, QUEUE, at

pytestmark = pytest.mark.django_db
V = Job.objects


def _claim(count: int = 1, *, queues: Any = (QUEUE,), kinds: Any = (KIND,), **more: Any) -> Any:
    return V.claim(worker_id="w", queues=queues, kinds=kinds, max_claims=count, now=at(1), **more)


@pytest.mark.parametrize("nothing", [{"kinds": []}, {"queues": []}, {"count": 0}, {"count": -1}], ids=str)
def test_worker_that_asks_for_nothing_gets_nothing(nothing):
    build.enqueue()
    assert _claim(**nothing) == []
    assert Job.objects.get().claim_generation == 0


@pytest.mark.parametrize("count", [1, 2, 7, 10, 50])
def test_claim_never_takes_more_than_asked(count):
    for _ in range(10):
        build.enqueue()
    assert len(_claim(count)) == min(count, 10)
    assert Job.objects.filter(status="running").count() == min(count, 10)
    assert Attempt.objects.count() == min(count, 10)


def test_claim_of_two_queues_never_takes_more_than_asked_and_begins_with_the_first():
    for queue in ("a", "b"):
        for _ in range(3):
            build.enqueue(queue=queue, priority=5 if queue == "b" else 0)
    leases = _claim(4, queues=["a", "b"])
    assert [lease.queue for lease in leases] == ["a", "a", "a", "b"]


def test_claim_takes_the_kinds_it_knows_in_the_order_of_all():
    ids = [
        V.enqueue(kind, {}, now=at(n / 10)).job_id
        for n, kind in enumerate(["x.a", "x.b", "x.c", "x.a", "x.b"])
    ]
    leases = _claim(9, kinds=["x.b", "x.a"])
    assert [build.id_of(lease) for lease in leases] == [ids[0], ids[1], ids[3], ids[4]]
    assert [build.id_of(lease) for lease in _claim(9, kinds=["x.c", "nobody.knows"])] == [ids[2]]


def test_same_kind_named_twice_is_one_kind():
    build.enqueue()
    assert len(_claim(5, kinds=[KIND, KIND])) == 1


def test_more_kinds_than_fit_are_cut_and_not_an_error():
    build.enqueue()
    many = [f"x.k{n}" for n in range(KINDS_PER_CLAIM)]
    assert _claim(kinds=[*many, KIND]) == []
    assert len(_claim(kinds=[KIND, *many])) == 1


def test_two_claims_get_different_attempts_and_a_lease_tells_all_that_the_row_says():
    @job("x.told", lease=90, max_attempts=7)
    def told(n): ...

    V.enqueue("x.told", {"n": 1}, options=build.options(priority=3, label="one", deadline=500.0), now=at(0))
    (lease,) = _claim(kinds=["x.told"])
    row = Job.objects.get()
    assert (lease.job_id, lease.attempt_id) == (row.pk.hex, row.attempt_id.hex)  # type: ignore[union-attr]
    assert lease.lease_expires_at == row.lease_expires_at == at(91)
    told_of_row = (
        lease.generation,
        lease.epoch,
        lease.revision,
        lease.input,
        lease.input_digest,
        lease.kind,
        lease.queue,
        lease.label,
        lease.priority,
        lease.deadline_at,
        lease.attempt_count,
        lease.max_attempts,
        lease.created_at,
        lease.started_at,
        lease.due_at,
        lease.ttl_seconds,
    )
    assert told_of_row == (
        row.claim_generation,
        row.scheduler_epoch,
        row.revision,
        row.input,
        row.input_digest,
        row.kind,
        row.queue,
        row.label,
        row.priority,
        row.deadline_at,
        row.attempt_count,
        row.max_attempts,
        row.created_at,
        row.started_at,
        row.next_attempt_at,
        90,
    )


@pytest.mark.parametrize(("ttl", "ends"), [(5, 6), (60, 61), (61, 61), (9_999, 61)])
def test_claim_may_ask_for_a_shorter_lease_and_gets_no_longer_one(ttl, ends):
    build.enqueue()
    (lease,) = _claim(ttl=ttl)
    assert lease.lease_expires_at == at(ends)
    assert lease.ttl_seconds == ends - 1


def test_attempt_ids_are_never_used_twice_and_sort_by_age():
    ids = []
    for _ in range(30):
        build.enqueue()
        ids += [lease.attempt_id for lease in _claim(5)]
    assert len(set(ids)) == 30
    prefixes = [attempt_id[:12] for attempt_id in ids]
    assert prefixes == sorted(prefixes)


def test_expired_job_is_not_taken_by_a_claim_of_its_queue():
    lease = build.running()
    assert V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], now=at(9_999)) == []
    assert build.row(lease)["claim_generation"] == 1


def test_claim_by_id_at_another_version_takes_nothing_not_even_an_expired_job():
    lease = build.running()
    version = build.row(lease)["state_version"]
    for seen in (version - 1, version + 1):
        assert V.claim_job(build.id_of(lease), worker_id="w", expected_state_version=seen, now=at(99)) is None
    assert V.claim_job(build.id_of(lease), worker_id="w", expected_state_version=version, now=at(99))


def test_takeover_closes_the_old_attempt_in_the_same_breath():
    old = build.running()
    new = build.claim(build.id_of(old), worker=build.RIVAL, now=at(60))
    assert (build.attempt(old)["status"], build.attempt(old)["error_code"]) == (
        "lost",
        "LEASE_TIMEOUT_RECOVERED",
    )
    assert (build.attempt(new)["status"], new.generation, new.attempt_count) == ("running", 2, 2)
    assert build.row(new)["attempts_excused"] == 0, "a job that kills its worker must end"


def test_takeover_after_a_raise_costs_no_attempt():
    old = build.running(max_attempts=1)
    build.raise_epoch(now=at(1))
    new = build.claim(build.id_of(old), worker=build.RIVAL, now=at(2))
    assert (new.attempt_count, new.attempts_excused, new.max_attempts) == (2, 1, 1)
