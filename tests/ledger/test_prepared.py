"""Hot statements are parsed and planned once for a connection, except where connections are not kept."""

from __future__ import annotations

import pytest
from django.db import connection

from jobs.ledger import prepared
from jobs.models import Job
from tests.build import KIND, QUEUE, at

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not connection.features.has_select_for_update_skip_locked, reason="this database prepares for itself"
    ),
]


def statements() -> dict[str, int]:
    """Return how often each prepared statement of this connection was run with its kept plan."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, generic_plans FROM pg_prepared_statements")
        return dict(cursor.fetchall())


def work() -> None:
    Job.objects.enqueue(KIND, {}, now=at(0))
    (lease,) = Job.objects.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], now=at(1))
    assert Job.objects.commit(lease, 1, now=at(2)).landed


@pytest.fixture
def anew() -> None:
    connection.close()


def test_the_second_claim_is_planned_no_more(anew: None) -> None:
    work()
    first = statements()
    work()
    second = statements()
    assert first.keys() == second.keys()
    claims = [text for text in second if "'running'" in text and "UPDATE jobs_job" in text]
    assert claims
    assert all(second[text] == first[text] + 1 for text in claims)


def test_behind_a_pooler_nothing_is_prepared(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler tells its clients of a process id that is not the server's."""
    connection.ensure_connection()
    prepared._direct[connection.connection] = False
    work()
    assert statements() == {}


def test_a_connection_of_django_s_own_is_told_from_a_pooled_one(anew: None) -> None:
    work()
    assert prepared._direct[connection.connection] is True
