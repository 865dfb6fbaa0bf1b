"""Which database this is: told from another life of it after a failover or a restore (contract §12, Failover).

PostgreSQL: the cluster's system identifier, the database's own number and the timeline being written. They tell
a promoted standby, a recovery to a point in time, a dump restored into another database or cluster. They do not
tell a data directory put back file by file without recovery: it has the same three. The timeline is taken from
the write-ahead log: the control file still names the old one until the first checkpoint after a promotion.

SQLite: nothing. Whatever is kept in the file is restored with it, and an inode or a device number changes with
a copy, a mount or a restart as well as with a restore. There, only the person who restored the file knows.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

from jobs.ledger.session import Session

UNREADABLE = "-"
_MARK = "interlock_timeline_seen"

PERMITTED = """
SELECT pg_is_in_recovery(),
       COALESCE(has_function_privilege(to_regprocedure('pg_control_system()')::oid, 'EXECUTE'), false),
       COALESCE(has_function_privilege(to_regprocedure('pg_walfile_name(pg_lsn)')::oid, 'EXECUTE'), false)
           AND COALESCE(has_function_privilege(to_regprocedure('pg_current_wal_lsn()')::oid, 'EXECUTE'), false),
       (SELECT oid FROM pg_database WHERE datname = current_database())
"""
SYSTEM = "SELECT system_identifier FROM pg_control_system()"
WRITTEN = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
STORED = "SELECT timeline FROM jobs_scheduler WHERE id = 1"
KEEP = """
UPDATE jobs_scheduler SET timeline = %(timeline)s WHERE id = 1 AND timeline = ''
RETURNING id
"""


def read(using: str) -> str | None:
    """Return which database this is: "" where it cannot be told, None of a standby, which writes no timeline."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute(PERMITTED)
        standby, may_system, may_written, number = cursor.fetchone()
        if standby:
            return None
        parts = [_one(cursor, SYSTEM) if may_system else UNREADABLE, number]
        parts.append(_one(cursor, WRITTEN) if may_written else UNREADABLE)
    return "/".join(map(str, parts))


def same(one: str, other: str) -> bool:
    """Whether two are the same as far as both could be read; what nobody ever stored is the same as any."""
    if not one or not other:
        return True
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return all(a == b or UNREADABLE in (a, b) for a, b in pairs)


def moved(using: str) -> bool:
    """Whether this connection leads to another database than claims were made in.

    Asked once for a connection, and of one that leads elsewhere each time, until a raise with a floor says
    that it is the one from now on.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        return False
    connection.ensure_connection()
    if connection.__dict__.get(_MARK) is connection.connection:
        return False
    current = read(using)
    with connection.cursor() as cursor:
        stored = _one(cursor, STORED) or ""
    if current and not same(current, stored):
        return True
    if current is not None:
        connection.__dict__[_MARK] = connection.connection
    return False


def forget(using: str) -> None:
    """Ask again at the next verb; tests are the only caller."""
    connections[using].__dict__.pop(_MARK, None)


def keep(session: Session, timeline: str) -> bool:
    """Store which database this is, where nobody has; False when somebody had."""
    return bool(session.run(KEEP, timeline=timeline))


def _one(cursor: Any, text: str) -> Any:
    cursor.execute(text)
    row = cursor.fetchone()
    return row[0] if row else None
