"""What a person's verb leaves in the audit chain: before and after of what it changed, through which door."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from jobs import audit
from jobs.canon import Json
from jobs.ledger import cancel as people
from jobs.ledger.session import Session
from jobs.status import JobStatus

SHOWN = (
    "status",
    "state_version",
    "claim_generation",
    "cancel_generation",
    "cancel_requested",
    "hold_reason",
    "wait_reason",
    "revision",
    "input_digest",
    "deadline_at",
)
NAMED = 200
"""Descendants named one by one; of more, the number. The feed of changes names them all."""


def job(
    session: Session,
    action: str,
    before: people.Row,
    *,
    actor: str,
    reason: str,
    descendants: Mapping[Any, JobStatus] | None = None,
) -> None:
    """Append what `action` did to one locked job, told from its row; nothing where it changed nothing."""
    after = people.read(session, [before.id])[before.id]
    if after == before and not descendants:
        return
    was, now = ({name: _plain(getattr(row, name)) for name in SHOWN} for row in (before, after))
    for name in SHOWN[2:]:
        if was[name] == now[name]:
            del was[name], now[name]
    if descendants:
        now["descendants"] = len(descendants)
        now["descendants_named"] = {
            str(uuid.UUID(key)): status.value for key, status in sorted(descendants.items())[:NAMED]
        }
    append(
        session, action, "job", str(uuid.UUID(before.id)), actor=actor, reason=reason, before=was, after=now
    )


def append(
    session: Session | str,
    action: str,
    object_type: str,
    object_id: object,
    *,
    actor: str,
    reason: str,
    before: Json,
    after: Json,
    approver: str = "",
) -> None:
    """Append what a person did to anything, with what its door knew; `approver` is a second person."""
    door = audit.origin()
    audit.append(
        session,
        action=action,
        actor=actor,
        object_type=object_type,
        object_id=object_id,
        reason=reason,
        before=before,
        after=after,
        user=door.user,
        request_id=door.request_id,
        snapshot=door.snapshot,
        approver=approver or door.approver,
        source=door.source,
    )


def _plain(value: Any) -> Json:
    if isinstance(value, str):
        return str(value)  # a member of an enum is no JSON
    if value is None or isinstance(value, int):
        return value
    return audit.stamp(value)
