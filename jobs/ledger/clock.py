"""The database's clock: what leases and schedules are judged by (contract §2)."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import DEFAULT_DB_ALIAS, connections


def clock(using: str = DEFAULT_DB_ALIAS) -> datetime:
    """Return what the database's clock says now. Only for what is shown to people: a verb judges T in its own statement."""
    connection = connections[using]
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
