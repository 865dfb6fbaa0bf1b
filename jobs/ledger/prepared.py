"""Statements that PostgreSQL parses and plans once for a connection: half of what a small verb costs it.

Only where the plan is pinned (session.py) or there is none to speak of, because a prepared statement keeps the
plan that it was first given. Behind a pooler that hands out another server connection for each transaction,
nothing is prepared.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

_direct: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def cursor(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """Return a cursor of Django's, wrappers and errors included, that prepares what it executes if it may."""
    connection.ensure_connection()
    raw = connection.connection
    if connection.vendor != "postgresql" or not is_direct(raw):
        return connection.cursor()
    return CursorWrapper(_preparing()(raw), connection)


def is_direct(raw: Any) -> bool:
    """Whether a connection leads to the server itself; a pooler tells of a process that is not the server's."""
    direct = _direct.get(raw)
    if direct is None:
        (pid,) = raw.execute("SELECT pg_backend_pid()").fetchone()
        direct = _direct[raw] = pid == raw.info.backend_pid
        if direct:
            raw.prepare_threshold = 0  # Django switches it off; its own cursors never prepare
    return direct


def _preparing() -> Any:
    """psycopg is there only where PostgreSQL is used, so its class is made when first asked for."""
    global _class
    if _class is None:
        from psycopg import Cursor

        class Preparing(Cursor):
            def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
                return super().execute(query, params, **(more | {"prepare": True}))

        _class = Preparing
    return _class


_class: Any = None
