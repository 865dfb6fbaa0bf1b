"""Empties the database after a transactional test, faster than Django's flush and around our own triggers.

Rows that migrate laid (content types, permissions, groups) stay; all else goes, and the single rows are laid
anew: epoch 1, claims open, an audit chain without entries. Only tables that hold rows are touched.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.core.management.sql import emit_post_migrate_signal
from django.db import connections, transaction
from django.test import TransactionTestCase

from jobs.ledger import install, triggers


@cache
def laid_by_migrate(using: str) -> dict[str, frozenset[Any]]:
    """Return the primary keys that a fresh database holds, by table. First called before any test."""
    connection = connections[using]
    tables = set(connection.introspection.table_names())
    kept = {}
    for model in apps.get_models(include_auto_created=True):  # the permissions of groups too
        if model._meta.db_table not in tables:
            continue
        keys = frozenset(model._base_manager.using(using).values_list("pk", flat=True))
        if keys and model._meta.label not in ("jobs.Scheduler", "jobs.AuditHead"):
            kept[model._meta.db_table] = keys
    return kept


def empty(using: str) -> None:
    """Delete what tests wrote; waits at most ten seconds for a connection that a test has left open."""
    connection = connections[using]
    kept = laid_by_migrate(using)
    with transaction.atomic(using=using), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL lock_timeout = '10s'")
            _empty_on_the_server(cursor, set(kept))
        else:
            tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
            triggers.lift(using, "DELETE")
            for statement in connection.ops.sql_flush(no_style(), _filled(cursor, tables - set(kept))):
                cursor.execute(statement)
            triggers.lay(using)
        missing = [table for table, keys in kept.items() if not _keep(cursor, table, keys)]
        install.lay(using)
    if missing:  # a test has deleted what migrate laid
        emit_post_migrate_signal(verbosity=0, interactive=False, db=using)
        laid_by_migrate.cache_clear()
        laid_by_migrate(using)


def _filled(cursor: Any, tables: set[str]) -> list[str]:
    """Return those of `tables` that hold rows."""
    if not tables:
        return []
    each = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in sorted(tables))
    cursor.execute(" UNION ALL ".join(each))
    return [row[0] for row in cursor.fetchall()]


def _empty_on_the_server(cursor: Any, kept: set[str]) -> None:
    """Delete the rows of all tables but these; a table that was analysed, or has grown, is a new one then.

    TRUNCATE makes a new one of each, with new indexes, which every connection has to learn anew: it took the
    server ten times as long.
    """
    cursor.execute(
        "SELECT relname, reltuples <> -1 OR pg_relation_size(oid) > 81920 FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        " AND relname <> 'django_migrations' AND (reltuples <> -1 OR pg_relation_size(oid) > 0)"
    )
    worn = {table: bool(old) for table, old in cursor.fetchall() if table not in kept}
    filled = _filled(cursor, {table for table, old in worn.items() if not old})
    anew = sorted(table for table, old in worn.items() if old)
    if not filled and not anew:
        return
    cursor.execute("SELECT current_setting('is_superuser')")
    if cursor.fetchone()[0] != "on":
        # Nobody else may pass the triggers by, but TRUNCATE does it for all tables but these two.
        for table in ("jobs_auditentry", "jobs_audithead"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(f"TRUNCATE {', '.join(filled + anew)} CASCADE")
        for table in ("jobs_auditentry", "jobs_audithead"):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        return
    cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger fires
    if filled:
        cursor.execute(f"LOCK TABLE {', '.join(filled)} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(";".join(f"DELETE FROM {table}" for table in filled))
    if anew:
        cursor.execute(f"TRUNCATE {', '.join(anew)} CASCADE")
    cursor.execute("SET LOCAL session_replication_role = origin")


def _keep(cursor: Any, table: str, keys: frozenset[Any]) -> bool:
    """Delete the rows of `table` that tests added; return whether those of `keys` are all there."""
    cursor.execute(f"SELECT id FROM {table}")
    present = {row[0] for row in cursor.fetchall()}
    if added := present - keys:
        marks = ", ".join(["%s"] * len(added))
        cursor.execute(f"DELETE FROM {table} WHERE id IN ({marks})", list(added))
    return keys <= present


def replace_djangos() -> None:
    """Make every transactional test end with `empty` instead of Django's flush."""

    def teardown(self: TransactionTestCase) -> None:
        for using in self._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
            empty(using)

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[attr-defined]
