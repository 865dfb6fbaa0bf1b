"""The plan that a prepared statement keeps, as PostgreSQL makes it without knowing any parameter."""

from __future__ import annotations

import re

from django.db import connection

PLACE = re.compile(r"%\((\w+)\)s|%%")


def plan_of(sql: str) -> str:
    """Return the generic plan of a ledger statement, on the connection and with the settings of the
    moment."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}" if found[1] else "%"

    with connection.connection.cursor() as cursor:  # beside any wrapper
        cursor.execute(f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {PLACE.sub(number, sql)}")
        return "\n".join(row[0] for row in cursor.fetchall())
