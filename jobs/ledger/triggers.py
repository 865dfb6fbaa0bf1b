"""Laying the triggers of jobs/guards.py, after every migrate and only where they differ."""

from __future__ import annotations

import hashlib

from django.db import connections

from jobs.guards import Trigger, guarding

_SET_UP = """
CREATE OR REPLACE FUNCTION jobs_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation'; END $$
"""


def lay(using: str) -> None:
    """Make the database's triggers what jobs/guards.py says.

    Needed after every migrate: on SQLite, Django rebuilds a table to add a constraint and drops its
    triggers without a word. Each trigger's name carries a digest of its text, so that laying them
    again costs one query.
    """
    connection = connections[using]
    wanted = {_name(trigger): trigger for trigger in guarding(connection.vendor)}
    with connection.cursor() as cursor:
        present = _present(cursor, connection.vendor)
        if present == set(wanted):
            return
        for name in present - set(wanted):
            _drop(cursor, connection.vendor, name)
        if connection.vendor == "postgresql":
            cursor.execute(_SET_UP)
        for name, trigger in wanted.items():
            if name not in present:
                for statement in _statements(name, trigger, connection.vendor):
                    cursor.execute(statement)


def difference(using: str) -> tuple[list[str], list[str]]:
    """Return the names of the guards that the database lacks, and of those that are none of ours."""
    connection = connections[using]
    wanted = {_name(trigger): trigger.name for trigger in guarding(connection.vendor)}
    with connection.cursor() as cursor:
        present = _present(cursor, connection.vendor)
    return sorted(wanted[name] for name in wanted.keys() - present), sorted(present - wanted.keys())


def lift(using: str, event: str = "") -> None:
    """Drop every trigger, or those of one event; the test suite's flush is the only caller."""
    connection = connections[using]
    guards = {_name(trigger): trigger for trigger in guarding(connection.vendor)}
    with connection.cursor() as cursor:
        for name in _present(cursor, connection.vendor):
            if not event or (name in guards and guards[name].event == event):
                _drop(cursor, connection.vendor, name)


def _name(trigger: Trigger) -> str:
    text = f"2 {trigger.table} {trigger.event} {trigger.when} {trigger.also} {trigger.message}"
    return f"guard_{trigger.name}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _present(cursor: object, vendor: str) -> set[str]:
    # A drill has the same tables in a schema of its own: only what this connection looks into is meant.
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'guard!_%' ESCAPE '!'"
        if vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE 'guard!_%' ESCAPE '!'"
        " AND pg_table_is_visible(tgrelid)"
    )
    cursor.execute(query)  # type: ignore[attr-defined]
    return {row[0] for row in cursor.fetchall()}  # type: ignore[attr-defined]


def _drop(cursor: object, vendor: str, name: str) -> None:
    if vendor == "sqlite":
        cursor.execute(f'DROP TRIGGER IF EXISTS "{name}"')  # type: ignore[attr-defined]
        return
    cursor.execute(  # type: ignore[attr-defined]
        "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = %s AND pg_table_is_visible(tgrelid)",
        [name],
    )
    for (table,) in cursor.fetchall():  # type: ignore[attr-defined]
        cursor.execute(f'DROP TRIGGER IF EXISTS "{name}" ON {table}')  # type: ignore[attr-defined]


def _statements(name: str, trigger: Trigger, vendor: str) -> list[str]:
    message = trigger.message.replace("'", "''")
    if vendor == "sqlite":
        when = f"({trigger.when})" + (f" AND ({trigger.also})" if trigger.also else "")
        return [
            (
                f'CREATE TRIGGER "{name}" BEFORE {trigger.event} ON {trigger.table} FOR EACH ROW WHEN {when}'
                f" BEGIN SELECT RAISE(ABORT, '{message}'); END"
            )
        ]
    head = f'CREATE TRIGGER "{name}"'
    if trigger.event == "TRUNCATE" or not trigger.also:
        each = "STATEMENT" if trigger.event == "TRUNCATE" else "ROW"
        return [
            (
                f"{head} BEFORE {trigger.event} ON {trigger.table} FOR EACH {each} WHEN ({trigger.when})"
                f" EXECUTE FUNCTION jobs_refuse('{message}')"
            )
        ]
    # PostgreSQL allows no sub-select in WHEN. A function per row costs 15 µs a claim, so this one is asked once
    # per statement: first whether any new row is suspect at all, which is all that happens in the normal case.
    # An INSERT has no old rows to join.
    inserts = trigger.event == "INSERT"
    old = "" if inserts else "OLD TABLE AS old_rows "
    join = "" if inserts else " JOIN old_rows AS old ON old.id = new.id"
    function = f"{name}_also"
    return [
        (
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" #variable_conflict use_column\n BEGIN"
            f" IF EXISTS (SELECT 1 FROM new_rows AS new WHERE {trigger.also}) THEN"
            f" IF EXISTS (SELECT 1 FROM new_rows AS new{join}"
            f" WHERE ({trigger.when}) AND ({trigger.also})) THEN"
            f" RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation'; END IF; END IF; RETURN NULL; END $$"
        ),
        (
            f"{head} AFTER {trigger.event} ON {trigger.table}"
            f" REFERENCING {old}NEW TABLE AS new_rows"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {function}('{message}')"
        ),
    ]
