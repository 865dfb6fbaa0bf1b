"""What a database needs besides its tables: its single rows, the triggers, room for updates in place."""

from __future__ import annotations

from django.db import connections

from jobs.ledger import triggers

# Updates of these rows touch no index while the row's page has room (HOT); vacuum must keep up with a queue.
_STORAGE = (
    (
        "ALTER TABLE jobs_job SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,"
        " autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)"
    ),
    # Every attempt is written twice, the second time longer: with half a page left, its end touches no index.
    "ALTER TABLE jobs_attempt SET (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02)",
)
_ROW = """
INSERT INTO jobs_scheduler (id, epoch, claims_open, timeline, changed_by, reason)
SELECT 1, 1, {true}, '', '', '' WHERE NOT EXISTS (SELECT 1 FROM jobs_scheduler WHERE id = 1)
"""
# Where there are entries, a missing head is no matter of setting up: verify tells of it, and nobody operates.
_AUDIT_HEAD = """
INSERT INTO jobs_audithead (id, seq, hash)
SELECT 1, 0, '' WHERE NOT EXISTS (SELECT 1 FROM jobs_audithead) AND NOT EXISTS (SELECT 1 FROM jobs_auditentry)
"""


def lay(using: str) -> None:
    """Make the database complete; safe to call again, and cheap when nothing is missing."""
    connection = connections[using]
    if "jobs_scheduler" not in connection.introspection.table_names():
        return
    lay_scheduler(using)
    with connection.cursor() as cursor:
        cursor.execute(_AUDIT_HEAD)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT reloptions FROM pg_class WHERE oid = 'jobs_job'::regclass")
            if not cursor.fetchone()[0]:
                for statement in _STORAGE:
                    cursor.execute(statement)
    triggers.lay(using)


def lay_scheduler(using: str) -> None:
    """Insert the scheduler's one row where it is missing."""
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(_ROW.replace("{true}", "true" if connection.vendor == "postgresql" else "1"))
