"""The audit chain: who did what to which object and why, written in the operation's own transaction.

Only operations of people and rulings enter it; what workers do is in the feed of changes. So the lock of
the chain's head is no lock on the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connections

from jobs import canon, redact, seals
from jobs.canon import Json
from jobs.ledger import audit as rows
from jobs.ledger.session import Session
from jobs.models.audit import SEALED, WIDTHS, Source
from jobs.vocabulary import JOB

LONGEST = 32 * 1024
"""Of `before` and of `after`, in bytes; of what is longer, size and SHA-256 are kept."""


class OutsideTransaction(RuntimeError):
    """An audit entry stands and falls with what it tells of: append it inside the operation's transaction."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class HeadMissing(RuntimeError):
    """The audit chain's head is missing: nobody operates before `manage.py audit verify` was read."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True, slots=True)
class Origin:
    """The door that an operation came in through, and what was known there."""

    source: Source = Source.AUTOMATIC
    user: str = ""
    request_id: str = ""
    snapshot: str = ""
    approver: str = ""
    account: str = ""
    """The machine's account, where it was typed into a shell."""
    token: str = ""
    """The name of the API token, where it came in with one."""
    proved_at: datetime | None = None
    """When the person last proved who he is: a password, a second factor."""


_NOBODY = Origin()
_origin: ContextVar[Origin] = ContextVar("audit_origin", default=_NOBODY)


@contextmanager
def through(source: Source, **known: Any) -> Iterator[None]:
    """Tell the verbs used inside which door they came through.

    `known` is `user`, `request_id`, `snapshot` (the digest of the evidence that was seen), `approver`,
    `account`, `token` and `proved_at`.
    """
    token = _origin.set(Origin(source, **known))
    try:
        yield
    finally:
        _origin.reset(token)


def origin() -> Origin:
    """Return the door that this thread's operation came in through."""
    return _origin.get()


def append(
    session: Session | str,
    *,
    action: str,
    actor: str,
    user: str = "",
    object_type: str,
    object_id: object,
    reason: str,
    before: Json = None,
    after: Json = None,
    request_id: str = "",
    snapshot: str = "",
    approver: str = "",
    source: Source,
) -> int:
    """Append an entry for what the open transaction has done; returns its number.

    Call it last: it locks the chain's head until the transaction ends, and nobody may wait for another lock
    while holding that one. Raises OutsideTransaction, HeadMissing.
    """
    if isinstance(session, str):
        session = Session(session, JOB, None)
    if not connections[session.using].in_atomic_block:
        raise OutsideTransaction
    texts = {
        "actor": actor,
        "user": user,
        "action": action,
        "object_type": object_type,
        "object_id": object_id,
        "reason": reason,
        "request_id": request_id,
        "snapshot": snapshot,
        "approver": approver,
    }
    kept = {name: _text(value, WIDTHS[name]) for name, value in texts.items()}
    kept |= {"before": _state(before), "after": _state(after), "source": Source(source).value}
    head = rows.lock_head(session)
    if head is None:
        raise HeadMissing
    key = settings.AUDIT_KEY
    entry: dict[str, Any] = {
        **kept,
        "seq": head.seq + 1,
        "at": head.at,
        "key_id": seals.key_id(key),
        "prev_hash": head.hash,
    }
    entry["hash"] = seal_of(key, entry)
    rows.add(session, entry)
    return head.seq + 1


def seal_of(key: str, entry: dict[str, Any]) -> str:
    """Return the seal that an entry must carry under `key`; every field but the seal itself counts."""
    fields = {name: entry[name] for name in SEALED}
    # As text: JSON cannot carry every 64-bit number.
    fields |= {"seq": str(entry["seq"]), "at": stamp(entry["at"])}
    return seals.seal(key, entry["prev_hash"], fields)


def stamp(moment: datetime) -> str:
    """Return an instant as it is sealed, whatever the database made of it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _text(value: object, width: int) -> str:
    """Return text that can be kept for good: nothing can be taken out of the chain afterwards."""
    return redact.clean(str(value)[:width], limit=4 * width)[:width]


def _state(value: Json) -> str:
    text = canon.canonical(redact.mask(value), limit=canon.LONGEST_TEXT)
    if len(text.encode()) <= LONGEST:
        return text
    return canon.canonical({"bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()})
