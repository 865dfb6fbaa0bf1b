"""Row lists carry every value as it is, on both databases; a statement binds only the columns it reads."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection

from jobs.ledger.dialect import sql
from jobs.ledger.session import Session, attempt_prefix, transact
from jobs.models import Attempt, Job
from jobs.vocabulary import JOB
from tests.build import KIND, T0

pytestmark = pytest.mark.django_db

TEXTS = [
    "",
    "plain",
    'quoted "text"',
    'back\\slash \\" and \\',
    "{a,b}",
    "NULL",
    " blanks ",
    "new\nline\ttab",
    "it's",
    "100 % %s %(now)s {rows:ids} ?",
    "中文 😀",
    '{"json": ["\\u00e9", null]}',
]


def carried(column: str, values: list[object], shape: str = "closings") -> list[object]:
    """Return what a statement reads of one column, in the order sent."""
    entries = [{"attempt_id": uuid.UUID(int=n).hex, column: value} for n, value in enumerate(values)]

    def work(session: Session) -> list[object]:
        rows = session.run(
            f"SELECT r.attempt_id, r.{column} FROM {{rows:{shape}}} ORDER BY r.attempt_id", {shape: entries}
        )
        return [row[1] for row in rows]

    return transact(work, using="default", vocabulary=JOB, durable=False, fenced=False)


@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS, None], *([text] for text in TEXTS)])
def test_any_text_arrives_as_it_was_sent(texts):
    assert carried("error_message", texts) == texts


def test_numbers_arrive_and_what_is_missing_is_null():
    assert carried("beats", [0, 7, None, 2_000_000_000], "notes") == [0, 7, None, 2_000_000_000]
    assert carried("progress_done", [-(2**63), 2**63 - 1], "notes") == [-(2**63), 2**63 - 1]


def test_a_column_without_any_value_is_null_in_every_row():
    assert carried("log", [None, None, None]) == [None, None, None]
    assert carried("progress_total", [None, None], "notes") == [None, None]


@pytest.mark.parametrize("odd", [None, 0, 59])
def test_a_column_that_is_the_same_in_many_rows_is_the_same_in_each(odd):
    """All but the id may be sent once, a column with one value that differs may not."""
    for column, shape, same, other in [
        *(("error_message", "closings", text, "other") for text in TEXTS),
        ("progress_done", "notes", 2**63 - 1, None),
        ("progress_done", "notes", None, 7),
    ]:
        values = [other if n == odd else same for n in range(60)]
        assert carried(column, values, shape) == values


def test_rows_that_are_all_the_same_are_as_many():
    assert len(carried("log", ["x"] * 60)) == 60
    entries = [{"attempt_id": uuid.UUID(int=7).hex, "log": "x"}] * 60

    def work(session: Session) -> list[Any]:
        return session.run("SELECT r.log FROM {rows:closings}", {"closings": entries})

    found = transact(work, using="default", vocabulary=JOB, durable=False, fenced=False)
    assert [row[0] for row in found] == ["x"] * 60


def test_rows_of_which_nothing_is_read_are_counted():
    ids = [{"id": uuid.UUID(int=n).hex} for n in range(3)]

    def work(session: Session) -> list[Any]:
        return session.run("SELECT COUNT(*) FROM {rows:ids}", {"ids": ids})

    if connection.vendor == "sqlite":  # PostgreSQL has no array to count by
        assert transact(work, using="default", vocabulary=JOB, durable=False, fenced=False)[0][0] == 3


def test_an_empty_list_has_no_rows():
    assert carried("log", []) == []


def test_only_what_a_statement_reads_is_bound():
    text = sql("SELECT r.id FROM {rows:leases} WHERE r.epoch = 1", JOB, "postgresql")
    source = "unnest(%(leases_id)s::uuid[], %(leases_epoch)s::bigint[]) AS r(id, epoch)"
    assert text == f"SELECT r.id FROM {source} WHERE r.epoch = 1"
    assert "%(leases_result_digest)s::text[]" in sql("SELECT r.* FROM {rows:leases}", JOB, "postgresql")


def test_jobs_claimed_together_get_attempt_ids_of_their_own_that_sort_by_time():
    Job.objects.enqueue_many([(KIND, {"n": n}, None) for n in range(300)], now=T0)
    first = Job.objects.claim(worker_id="a", queues=["default"], kinds=[KIND], max_claims=100, now=T0)
    Job.objects.claim(worker_id="b", queues=["default"], kinds=[KIND], max_claims=200, now=T0)
    ids = set(Attempt.objects.values_list("id", flat=True))
    assert len(ids) == 300
    for found in ids:
        assert (found.version, found.variant) == (4, uuid.RFC_4122)
    assert len({lease.attempt_id[:12] for lease in first}) == 1


def test_no_two_claims_number_their_attempts_alike():
    prefixes = {attempt_prefix() for _ in range(1000)}
    assert len(prefixes) == 1000
    assert {len(prefix) for prefix in prefixes} == {27}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT (%s || 'fffff')::uuid", [next(iter(prefixes))])
