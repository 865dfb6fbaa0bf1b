"""One notification to whoever listens on a channel of PostgreSQL."""

from __future__ import annotations

from django.db import connections

# A transaction that only notifies is made durable like any other, and for as long it keeps every other one
# that notifies from its commit. A hint that a crash may swallow needs no such wait.
NOTIFY = "SET LOCAL synchronous_commit = off; SELECT pg_notify(%s, %s)"


def notify(using: str, channel: str, payload: str) -> None:
    """Send `payload` at once, outside of any transaction of the caller's."""
    with connections[using].cursor() as cursor:
        cursor.execute(NOTIFY, [channel, payload])
