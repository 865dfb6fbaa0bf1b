"""Verbs on many jobs at once: each job is judged alone, and the answers come back in order."""

from __future__ import annotations

import pytest

from jobs.models import Job
from jobs.outcomes import Ending
from jobs.status import JobStatus
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db


def test_every_job_of_a_batch_is_judged_alone():
    leases = [build.running() for _ in range(6)]
    Job.objects.cancel(build.id_of(leases[1]), actor="a", reason="r", now=at(1))
    build.hold(leases[2], now=at(1))
    build.effect(leases[3])
    batch = [(lease, number) for number, lease in enumerate(leases[:5])]
    batch.append((leases[5]._replace(generation=0), 5))
    outcomes = Job.objects.commit_many(batch, now=at(30))
    assert [o.reason for o in outcomes] == ["", "CANCELLED", "HELD", "EFFECT_UNRESOLVED", "", "GENERATION"]
    statuses = [build.row(lease)["status"] for lease in leases]
    assert statuses == ["succeeded", "running", "running", "running", "succeeded", "running"]
    assert build.attempt(leases[4])["result"] == "4"


def test_endings_of_different_verbs_come_back_in_the_order_given():
    leases = [build.running() for _ in range(4)]
    endings = [
        Ending.skip(leases[0], "NOTHING_TO_DO"),
        Ending.release(leases[1]),
        Ending.acknowledge_cancel(leases[2]),
        Ending.skip(leases[3], "NOTHING_TO_DO"),
    ]
    outcomes = Job.objects.runtime.end(endings, now=at(30))
    assert [o.status for o in outcomes] == [
        JobStatus.SKIPPED,
        JobStatus.PENDING,
        JobStatus.RUNNING,
        JobStatus.SKIPPED,
    ]
    assert outcomes[2].reason == "STATUS"


def test_nothing_to_do_is_no_transaction(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Job.objects.runtime.commit([]) == []
        assert Job.objects.runtime.renew([]) == []
        assert Job.objects.runtime.end([]) == []
        assert Job.objects.enqueue_many([]) == []
