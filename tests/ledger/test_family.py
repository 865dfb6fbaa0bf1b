"""A cancel reaches the whole family in one transaction, and each member as its status asks (contract §7)."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job
from jobs.status import JobStatus
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "not needed"}


def _child(parent: Any, status: JobStatus) -> Any:
    lease = build.claim(build.enqueue(parent_id=build.id_of(parent)))
    build.end(lease, status)
    return lease


AFTER = {
    JobStatus.PENDING: "cancelled",
    JobStatus.BLOCKED: "cancelled",
    JobStatus.WAITING: "cancelled",
    JobStatus.RUNNING: "running",
    JobStatus.UNCERTAIN: "uncertain",
    JobStatus.SUCCEEDED: "succeeded",
    JobStatus.FAILED: "failed",
    JobStatus.SKIPPED: "skipped",
}


@pytest.mark.parametrize("force", [False, True], ids=["cancel", "force_cancel"])
@pytest.mark.parametrize("status", AFTER)
def test_child_is_cancelled_asked_or_left_alone(status, force):
    parent = build.running()
    child = _child(parent, status)
    before = build.row(child)
    if force:
        V.force_cancel(build.id_of(parent), state_version=build.row(parent)["state_version"], **BY, now=at(5))
    else:
        V.cancel(build.id_of(parent), **BY, now=at(5))
    row = build.row(child)
    assert row["status"] == AFTER[status]
    if status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.SKIPPED):
        assert row == before
    else:
        assert (row["cancel_requested_at"], row["cancel_requested_by"]) == (at(5), "ann")
        assert row["cancel_generation"] == 1
        assert row["state_version"] == before["state_version"] + 1
        assert row["claim_generation"] == before["claim_generation"], "force is for the one that was named"


def test_request_reaches_grandchildren_through_an_ended_child():
    parent = build.running()
    child = _child(parent, JobStatus.SUCCEEDED)
    grandchild = build.enqueue(parent_id=build.id_of(child))
    assert V.cancel(build.id_of(parent), **BY, now=at(5)) == "running"
    assert build.row(grandchild)["status"] == "cancelled"


def test_cancel_of_a_child_leaves_parent_and_sister_alone():
    parent = build.running()
    one, two = _child(parent, JobStatus.PENDING), _child(parent, JobStatus.PENDING)
    V.cancel(build.id_of(one), **BY, now=at(5))
    assert [build.row(lease)["status"] for lease in (parent, one, two)] == ["running", "cancelled", "pending"]


def test_child_says_that_its_parent_was_cancelled():
    parent = build.enqueue()
    child = build.enqueue(parent_id=parent)
    V.cancel(parent, **BY, now=at(5))
    assert build.row(parent)["cancel_reason"] == "not needed"
    assert build.row(child)["cancel_reason"] == f"parent {parent} cancelled"


def test_running_child_acknowledges_in_its_own_time():
    parent = build.enqueue()
    child = _child(parent, JobStatus.RUNNING)
    V.cancel(parent, **BY, now=at(5))
    assert V.commit(child, 1, now=at(6)).code == "CANCELLED"
    assert V.acknowledge_cancel(child, now=at(7)).status == "cancelled"


def test_family_of_three_hundred_is_cancelled_in_a_few_statements(django_assert_max_num_queries):
    parent = build.enqueue()
    V.enqueue_many([(build.KIND, {}, build.options(parent_id=parent))] * 300, now=at(0))
    with django_assert_max_num_queries(20):
        V.cancel(parent, **BY, now=at(5))
    assert set(Job.objects.values_list("status", flat=True)) == {"cancelled"}
