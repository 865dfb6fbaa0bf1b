"""The gate of an effect: what a handler asks for there, and what it is answered (contract §6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs import canon, effect_kinds, redact
from jobs.effect_kinds import EffectKind
from jobs.hooks import effect_id
from jobs.ledger.slots import Slot
from jobs.outcomes import Lease, Outcome


class Word(StrEnum):
    """What the gate of an effect answers."""

    PREPARED = "PREPARED"
    """The payload is bound and nothing stands against a grant."""
    GRANTED = "GRANTED"
    """Send now: the only permission there is."""
    RECORDED = "RECORDED"
    """It has happened; the record answers."""
    OPEN = "OPEN"
    """It may have been sent before: resolve that first."""
    APPROVAL = "APPROVAL"
    """A person has to approve the sending."""
    CONFLICT = "CONFLICT"
    """The key is bound to another payload."""
    ABANDONED = "ABANDONED"
    """A ruling closed it; it will not be sent."""
    REFUSED = "REFUSED"
    """The fence refused; `outcome` says why."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The answer at the gate of an effect."""

    word: Word
    slot: Slot | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """An effect that a handler wants: its kind, its name within the job, and the payload as canonical
    text."""

    kind: EffectKind
    slot: str
    payload: str
    digest: str
    value: Any
    node_id: str = ""
    etag: str = ""

    def id_for(self, lease: Lease) -> str:
        """Return the effect's id, which is the provider's idempotency key."""
        return effect_id(str(lease.job_id), lease.revision, self.node_id, self.slot)

    def values(self, lease: Lease) -> dict[str, Any]:
        """Return what a new slot holds."""
        kind, amount = self.kind, self.kind.amount_of(self.value)
        shown = redact.mask(self.value, kind.redact)
        return {
            "id": self.id_for(lease),
            "job_id": lease.job_id,
            "revision": lease.revision,
            "node_id": self.node_id,
            "slot": self.slot,
            "kind": kind.name,
            "replay": kind.replay,
            "inquirable": kind.inquirable,
            "label": kind.label_of(shown),
            "target": kind.text_of(shown, kind.target, 200),
            "amount": None if amount is None else str(amount),
            "currency": kind.text_of(self.value, kind.currency, 8),
            "etag": self.etag[:200],
            "payload": self.payload,
            "digest": self.digest,
            "key_seconds": kind.key_valid,
            "settle_seconds": kind.settle_after,
        }


def ask_of(
    kind_name: str, slot: str, payload: Any, *, node_id: str = "", etag: str = "", limit: int, depth: int
) -> Ask:
    """Return what a handler asks for, checked; raises ValueError naming what is wrong with it."""
    kind = effect_kinds.find(kind_name)
    if kind is None:
        raise ValueError(f"no effect kind {kind_name!r} is registered in this process")
    for name, text in (("slot", slot), ("node_id", node_id)):
        if not effect_kinds.NAME.fullmatch(text) and not (name == "node_id" and text == ""):
            raise ValueError(f"{name} {text!r}: letters, digits and _.:- only, 1 to 120 of them")
    try:
        text = canon.canonical(payload, depth=depth, limit=limit)
    except canon.NotCanonical as error:
        raise ValueError(f"payload{error}") from None
    return Ask(kind, slot, text, canon.digest(text), payload, node_id, etag)
