"""A caller who has turned autocommit off is in a transaction of his own, atomic block or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.models import Job
from jobs.status import JobStatus
from tests import build

pytestmark = pytest.mark.django_db(transaction=True)
V = Job.objects


@pytest.fixture(autouse=True)
def _autocommit_again() -> Iterator[None]:
    yield
    transaction.rollback()
    transaction.set_autocommit(True)


def _session() -> dict[str, Any]:
    """Return what a ledger transaction sets for itself, on PostgreSQL."""
    if connection.vendor != "postgresql":
        return {}
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "enable_seqscan")
    found = {}
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"SHOW {name}")
            found[name] = cursor.fetchone()[0]
    return found


def test_what_a_person_does_stands_and_falls_with_the_callers_transaction() -> None:
    job_id = build.id_of(build.enqueue())
    transaction.set_autocommit(False)
    before = _session()
    assert V.cancel(job_id, actor="ann", reason="not needed") == JobStatus.CANCELLED
    added = V.enqueue("tests.other", {}).job_id
    assert _session() == before
    transaction.rollback()
    assert V.get(pk=job_id).status == JobStatus.PENDING
    assert not V.filter(pk=added).exists()
    V.cancel(job_id, actor="ann", reason="not needed")
    transaction.commit()
    assert V.get(pk=job_id).status == JobStatus.CANCELLED


def test_what_must_be_final_is_refused_and_nothing_is_written() -> None:
    job_id = build.id_of(build.enqueue())
    transaction.set_autocommit(False)
    with pytest.raises(transaction.TransactionManagementError, match="autocommit off"):
        V.claim_job(job_id, worker_id="w")
    assert V.get(pk=job_id).status == JobStatus.PENDING
