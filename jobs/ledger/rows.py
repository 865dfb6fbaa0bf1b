"""Thousands of rows at once, as the driver gives them: what Django does to each row took as long as the query.

For values that need no conversion: numbers, texts, and instants as `Epoch`.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet


def fetch(values: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a `values_list`, PostgreSQL's in binary."""
    if (composed := statement(values)) is None:
        return []
    with _cursor(connections[values.db]) as cursor:
        cursor.execute(*composed)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def statement(values: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...]] | None:
    """Return a query's text and parameters; None where what it asks for can never be."""
    try:
        text, given = values.query.get_compiler(values.db).as_sql()
    except EmptyResultSet:
        return None
    return text, tuple(given)


def _cursor(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """Return a cursor of Django's, wrappers and errors included."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    import psycopg

    connection.ensure_connection()
    binary = psycopg.Cursor(connection.connection)
    binary.format = psycopg.pq.Format.BINARY
    return CursorWrapper(binary, connection)
