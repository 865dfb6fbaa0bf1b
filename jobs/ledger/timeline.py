"""Which database this is: told from another life of it after a failover or a restore (contract §12, Failover).

PostgreSQL: the cluster's system identifier, the database's own number and the timeline being written. They tell
a promoted standby, a recovery to a point in time, a dump restored into another database or cluster. They do not
tell a data directory put back file by file without recovery: it has the same three. The timeline is taken from
the write-ahead log: the control file still names the old one until the first checkpoint after a promotion.

SQLite: whatever is kept in the file is restored with it, and an inode or a device number changes with a copy or
a mount as well as with a restore. So the clock's high-water mark, which never falls, is noted in a file beside
it (`NAME-seen`), after it was committed: a database whose mark lies behind that is an older copy. Moved with
the note it is the same; without one, or with one that cannot be written, nothing is told.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from django.db import connections

from jobs.ledger import prepared
from jobs.ledger.session import Session

UNREADABLE = "-"
_MARK = "interlock_timeline_seen"
_TEXT = "interlock_timeline_text"

PERMITTED = """
SELECT COALESCE(has_function_privilege(to_regprocedure('pg_control_system()')::oid, 'EXECUTE'), false),
       COALESCE(has_function_privilege(to_regprocedure('pg_walfile_name(pg_lsn)')::oid, 'EXECUTE'), false)
           AND COALESCE(has_function_privilege(to_regprocedure('pg_current_wal_lsn()')::oid, 'EXECUTE'), false)
"""
FACTS = """
SELECT pg_is_in_recovery(), SYSTEM, (SELECT oid FROM pg_database WHERE datname = current_database()), WRITTEN,
       (SELECT timeline FROM jobs_scheduler WHERE id = 1)
"""
SYSTEM = "(SELECT system_identifier FROM pg_control_system())"
WRITTEN = "CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
STORED = "SELECT clock_high_water, timeline FROM jobs_scheduler WHERE id = 1"
KEEP = """
UPDATE jobs_scheduler SET timeline = %(timeline)s WHERE id = 1 AND timeline = ''
RETURNING id
"""


def read(using: str) -> str | None:
    """Return which database this is: "" where it cannot be told, None of a standby, which writes no timeline.

    In SQLite it is the newest mark noted beside the file; stored by a raise with a floor, it is no longer missed.
    """
    return _facts(using)[0] if connections[using].vendor == "postgresql" else _noted(using)


def _facts(using: str) -> tuple[str | None, str]:
    """Return what `read` does, and what is stored, in one question; a connection's rights are asked before."""
    connection = connections[using]
    with connection.cursor() as cursor:
        raw, text = connection.__dict__.get(_TEXT, (None, ""))
        if raw is not connection.connection:
            cursor.execute(PERMITTED)
            may_system, may_written = cursor.fetchone()
            text = FACTS.replace("SYSTEM", SYSTEM if may_system else f"'{UNREADABLE}'")
            text = text.replace("WRITTEN", WRITTEN if may_written else f"'{UNREADABLE}'")
            connection.__dict__[_TEXT] = connection.connection, text
        cursor.execute(text)
        standby, *parts, stored = cursor.fetchone()
    return None if standby else "/".join(map(str, parts)), stored or ""


def same(one: str, other: str) -> bool:
    """Whether two are the same as far as both could be read; what nobody ever stored is the same as any."""
    if not one or not other:
        return True
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return all(a == b or UNREADABLE in (a, b) for a, b in pairs)


def moved(using: str) -> bool:
    """Whether this connection leads to another database than claims were made in.

    Asked once for a connection, because what a server's connection leads to stays what it is. Asked each time
    of a standby, which may be promoted under it, of a pooler, which may lead elsewhere by now, and of another
    database, until a raise with a floor says that it is the one from now on.
    """
    connection = connections[using]
    connection.ensure_connection()
    if connection.__dict__.get(_MARK) is connection.connection:
        return False
    if connection.vendor != "postgresql":
        if _is_older(using):
            return True
        connection.__dict__[_MARK] = connection.connection
        return False
    current, stored = _facts(using)
    if current and not same(current, stored):
        return True
    if current is not None and prepared.is_direct(connection.connection):
        connection.__dict__[_MARK] = connection.connection
    return False


def forget(using: str) -> None:
    """Ask again at the next verb; tests are the only caller."""
    connections[using].__dict__.pop(_MARK, None)


def keep(session: Session, timeline: str) -> bool:
    """Store which database this is, where nobody has; False when somebody had."""
    return bool(session.run(KEEP, timeline=timeline))


# -- SQLite: the note beside the file ------------------------------------------------------------------------


def note(using: str) -> None:
    """Note beside an SQLite file how far the clock's mark has come; a place that cannot be written is left."""
    path = _beside(using)
    if path is None:
        return
    with connections[using].cursor() as cursor:
        cursor.execute(STORED)
        mark = cursor.fetchone()[0]
    with contextlib.suppress(OSError):
        fresh = path.with_name(f"{path.name}-new")
        fresh.write_text(str(mark or ""), "utf-8")
        fresh.replace(path)


def forget_note(using: str) -> None:
    """Remove the note: a person has taken back a mark of the clock that lay ahead."""
    if path := _beside(using):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _is_older(using: str) -> bool:
    noted = _noted(using)  # before the mark itself, which only grows
    if not noted:
        return False
    with connections[using].cursor() as cursor:
        cursor.execute(STORED)
        mark, accepted = cursor.fetchone()
    return bool(mark) and str(mark) < noted != accepted


def _noted(using: str) -> str:
    path = _beside(using)
    try:
        return path.read_text("utf-8") if path else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _beside(using: str) -> Path | None:
    connection = connections[using]
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or ":memory:" in name or "mode=memory" in name:
        return None
    return Path(f"{name}-seen")
