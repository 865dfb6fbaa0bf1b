"""Instants come from PostgreSQL as Django's own loader would give them, and quicker."""

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's instants are texts"),
]

INSTANTS = [
    ("2026-11-30 13:46:58+00", datetime(2026, 11, 30, 13, 46, 58, tzinfo=UTC)),
    ("2026-11-30 13:46:58.09+00", datetime(2026, 11, 30, 13, 46, 58, 90_000, tzinfo=UTC)),
    ("2026-11-30 13:46:58.000001+00", datetime(2026, 11, 30, 13, 46, 58, 1, tzinfo=UTC)),
    ("2026-11-30 13:46:58+05:30", datetime(2026, 11, 30, 8, 16, 58, tzinfo=UTC)),
    ("0001-01-01 00:00:00+00", datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31 23:59:59.999999+00", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
]


def read(text):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        return cursor.fetchone()[0]


@pytest.mark.parametrize(("text", "instant"), INSTANTS)
def test_an_instant_is_read_to_the_microsecond_and_in_utc(text, instant):
    found = read(text)
    assert found == instant
    assert found.tzinfo is UTC


def test_a_session_in_another_zone_gives_the_same_instant_in_utc():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'Asia/Kathmandu'")
    found = read("2026-11-30 13:46:58.5+00")
    assert (found, found.tzinfo) == (datetime(2026, 11, 30, 13, 46, 58, 500_000, tzinfo=UTC), UTC)


@pytest.mark.parametrize("text", ["infinity", "0044-03-15 12:00:00+00 BC", "12026-01-01 00:00:00+00"])
def test_what_no_datetime_can_hold_is_the_drivers_error(text):
    with pytest.raises(DataError):
        read(text)


def test_the_quick_loader_is_the_one_in_use():
    """Django keeps its loaders in a place of its own: a new version that moves it would pass unnoticed."""
    connection.ensure_connection()
    loader = connection.connection.adapters.get_loader(
        connection.connection.adapters.types["timestamptz"].oid, 0
    )
    assert loader.__module__ == "jobs.ledger.instants"
