"""The audit chain's two tables: the head is locked, the entry is added, the last check is noted."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from jobs.ledger.session import Session

# The last lock of all (contract §12). On SQLite the transaction holds the whole file already.
LOCK_HEAD = """
SELECT seq, hash FROM jobs_audithead WHERE id = 1 {lock}
"""

# In a statement after the lock, so that the times of the chain stand in its order.
CLOCK = """
SELECT {clock}
"""

# Before the entry: the trigger lets in only what the head names.
ADVANCE = """
UPDATE jobs_audithead SET seq = %(seq)s, hash = %(hash)s WHERE id = 1
"""

APPEND = """
INSERT INTO jobs_auditentry (seq, at, actor, "user", action, object_type, object_id, reason, before, after,
                             request_id, snapshot, approver, source, key_id, prev_hash, hash)
VALUES (%(seq)s, %(at)s, %(actor)s, %(user)s, %(action)s, %(object_type)s, %(object_id)s, %(reason)s, %(before)s,
        %(after)s, %(request_id)s, %(snapshot)s, %(approver)s, %(source)s, %(key_id)s, %(prev_hash)s, %(hash)s)
"""

NOTE_CHECK = """
WITH t AS (SELECT {clock} AS now)
UPDATE jobs_audithead SET checked_at = (SELECT now FROM t), checked_seq = %(seq)s, checked_ok = %(ok)s WHERE id = 1
"""


class Head(NamedTuple):
    """Where the chain ends, and the time, both under the head's lock."""

    seq: int
    hash: str
    at: datetime


def lock_head(session: Session) -> Head | None:
    """Hold the chain's end until this transaction ends; None where its row is missing."""
    rows = session.run(LOCK_HEAD)
    if not rows:
        return None
    at = session.moment(session.run(CLOCK)[0][0])
    assert at is not None  # noqa: S101  (a clock is never null)
    return Head(int(rows[0][0]), rows[0][1], at)


def add(session: Session, entry: dict[str, Any]) -> None:
    """Append an entry that continues the head held by this transaction."""
    session.run(ADVANCE, seq=entry["seq"], hash=entry["hash"])
    session.run(APPEND, **entry)


def note_check(session: Session, *, seq: int, ok: bool) -> None:
    """Keep what a verification found, for those who cannot walk the chain."""
    session.run(NOTE_CHECK, seq=seq, ok=ok)
