"""One notification to whoever listens on a channel of PostgreSQL."""

from __future__ import annotations

from django.db import connections


def notify(using: str, channel: str, payload: str) -> None:
    """Send `payload` at once, outside of any transaction of the caller's."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, payload])
