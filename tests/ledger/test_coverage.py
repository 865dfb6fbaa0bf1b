"""Every acceptance point counts what it checked and accepted, so that a write past the fence is seen."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable

import pytest

from jobs import measures
from jobs.fenced import REFUSALS_KEPT
from jobs.models import FenceRefusal, Job
from jobs.outcomes import Lease, Outcome
from jobs.status import WaitReason
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects

POINTS: dict[str, Callable[[Lease], Outcome]] = {
    "renew": lambda lease: V.renew(lease, now=at(30)),
    "stage": lambda lease: V.stage(lease, 1, now=at(30)),
    "commit": lambda lease: V.commit(lease, 1, now=at(30)),
    "fail": lambda lease: V.fail(lease, "HANDLER_CONTENT_FAILED", now=at(30)),
    "release": lambda lease: V.release(lease, now=at(30)),
    "wait": lambda lease: V.wait(lease, WaitReason.TIMER, seconds=5, now=at(30)),
    "skip": lambda lease: V.skip(lease, "NOTHING_TO_DO", now=at(30)),
    "uncertain": lambda lease: V.uncertain(lease, "?", now=at(30)),
    "acknowledge_cancel": lambda lease: V.acknowledge_cancel(lease, now=at(30)),
}


def _counted() -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in measures.drain():
        counts[str(row["measure"])] += int(str(row["count"]))
    return counts


def _ready(point: str) -> Lease:
    lease = build.running()
    if point == "acknowledge_cancel":
        V.cancel(build.id_of(lease), actor="someone", reason="stop", now=at(1))
    measures.drain()
    return lease


@pytest.mark.parametrize("point", POINTS)
def test_accepted_write_was_checked(point):
    assert POINTS[point](_ready(point)).landed
    counts = _counted()
    assert (counts[f"fence.{point}.checked"], counts[f"fence.{point}.accepted"]) == (1, 1)
    assert not [measure for measure in counts if measure.startswith("refused.")]


@pytest.mark.parametrize("point", POINTS)
def test_refused_write_was_checked_and_is_kept_for_people(point):
    lease = _ready(point)
    outcome = POINTS[point](lease._replace(generation=0))
    assert outcome.reason == "GENERATION"
    counts = _counted()
    assert (counts[f"fence.{point}.checked"], counts[f"fence.{point}.accepted"]) == (1, 0)
    assert counts[f"refused.{point}.GENERATION"] == 1
    refusal = FenceRefusal.objects.get()
    assert (refusal.point, refusal.reason) == (point, "GENERATION")
    assert (refusal.worker_id, refusal.attempt_id) == (lease.worker_id, uuid.UUID(lease.attempt_id))
    assert (refusal.presented["generation"], refusal.found["generation"]) == (0, 1)
    assert refusal.found["status"] == "running"


@pytest.mark.parametrize("door", ["claim", "claim_job", "takeover"])
def test_claim_was_checked(door):
    if door == "takeover":
        job_id, now = build.id_of(build.running()), at(60)
    else:
        job_id, now = build.enqueue(), at(30)
    measures.drain()
    if door == "claim":
        taken = bool(V.claim(worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], now=now))
    else:
        taken = bool(V.claim_job(job_id, worker_id="w", now=now))
    counts = _counted()
    assert taken
    assert (counts["fence.claim.checked"], counts["fence.claim.accepted"]) == (1, 1)


def test_replay_is_no_second_acceptance_of_the_row():
    """It is answered as landed, and nothing is written."""
    lease = _ready("commit")
    assert POINTS["commit"](lease).landed
    before = build.row(lease)
    again = POINTS["commit"](lease)
    assert (again.landed, again.replay) == (True, True)
    assert build.row(lease) == before
    assert not FenceRefusal.objects.exists()


def test_accepted_writes_equal_what_the_rows_say():
    """100 % of what landed went through a counted check: versions and attempts add up to the counts."""
    measures.drain()
    leases = [build.running() for _ in range(4)]
    V.commit(leases[0], 1, now=at(1))
    V.skip(leases[1], "NOTHING_TO_DO", now=at(1))
    V.release(leases[2], now=at(1))
    build.claim(build.id_of(leases[2]), now=at(2))
    counts = _counted()
    accepted = sum(n for measure, n in counts.items() if measure.endswith(".accepted"))
    written = sum(Job.objects.values_list("state_version", flat=True)) - len(leases)
    assert accepted == written == 8


def test_only_the_newest_refusals_of_a_job_are_kept():
    lease = build.running()
    for number in range(REFUSALS_KEPT + 5):
        V.renew(lease._replace(generation=-number), now=at(1))
    kept = FenceRefusal.objects.order_by("id")
    assert [r.presented["generation"] for r in kept] == [-n for n in range(5, REFUSALS_KEPT + 5)]


def test_refusals_of_another_job_are_left_alone():
    first, second = build.running(), build.running()
    V.renew(first._replace(generation=0), now=at(1))
    for _ in range(REFUSALS_KEPT + 2):
        V.renew(second._replace(generation=0), now=at(1))
    assert FenceRefusal.objects.filter(job_id=build.id_of(first)).count() == 1
    assert FenceRefusal.objects.filter(job_id=build.id_of(second)).count() == REFUSALS_KEPT


def test_refusal_of_a_job_that_is_not_there_is_kept_too():
    lease = build.running()._replace(job_id="0" * 32)
    assert V.renew(lease, now=at(1)).reason == "NOT_FOUND"
    assert FenceRefusal.objects.get().found == {}
