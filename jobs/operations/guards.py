"""What must hold before a verdict takes effect, all of it, each with its time.

One list for every door: the page shows it, and a ruling is refused for the first guard on it that does not
hold. So nobody is shown another reason than the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs.models.case import CaseKind, Verdict
from jobs.operations.actor import APPROVE, RULE, person_of
from jobs.sentences import sentence
from jobs.status import EffectStatus

if TYPE_CHECKING:
    from jobs.operations.cases import View

Said = tuple[str, dict[str, Any]]
"""A code of the catalogue and its parameters."""
UNSENT = (EffectStatus.PREPARED, EffectStatus.ABSENT)
SENDABLE = (*UNSENT, EffectStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that must hold. `at` is since when it does, or when it will by itself; None where unknown."""

    code: str
    """What must hold, as the catalogue says it."""
    why: Said | None = None
    """What stands against it, where it does not hold."""
    at: datetime | None = None
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        return self.why is None

    @property
    def text(self) -> str:
        return sentence(self.code, self.params)

    @property
    def why_text(self) -> str:
        return sentence(*self.why) if self.why else ""


def of(view: View, verdict: Verdict, user: Any = None, *, attested: bool = False) -> list[Guard]:
    """Return every guard of a verdict as it stands at the view's `now`, those that come first first.

    `user` adds what must hold of the person who gives it; `attested` judges as if somebody vouched that the
    sender is dead. Of a closed case there is one: that it is closed.
    """
    case = view.case
    if case.closed_at is not None:
        return [Guard("GUARD_OPEN", ("CASE_CLOSED", {"how": case.closed_as, "at": case.closed_at}))]
    found = [*_of_person(view, verdict, user)] if user is not None else []
    match CaseKind(case.kind):
        case CaseKind.UNKNOWN:
            found += _of_unknown(view, verdict, attested)
        case CaseKind.CONFLICT:
            found += _of_conflict(view, verdict)
        case CaseKind.APPROVAL:
            found += _of_approval(view, verdict)
        case CaseKind.CONTRADICTION:
            pass
    return found


def needed(case_kind: str) -> str:
    """Return the permission that a ruling in a case of this kind takes."""
    return APPROVE if case_kind == CaseKind.APPROVAL else RULE


def _of_person(view: View, verdict: Verdict, user: Any) -> Iterator[Guard]:
    name, permission = user.get_username(), needed(view.case.kind)
    lacking: Said = ("NOT_PERMITTED", {"user": name, "permission": permission})
    yield Guard("GUARD_PERMITTED", None if user.has_perm(permission) else lacking)
    if verdict is Verdict.SEND:
        askers = (person_of(view.job.enqueued_by), view.proposal and view.proposal.by)
        yield Guard("GUARD_ANOTHER", ("SELF_APPROVAL", {"user": name}) if name in askers else None)


def _of_unknown(view: View, verdict: Verdict, attested: bool) -> Iterator[Guard]:
    slot = view.effect
    why: Said | None = None
    if slot.status == EffectStatus.EXECUTING:
        why = _executing(view)
    elif slot.status != EffectStatus.UNKNOWN:
        why = ("SLOT_STATUS", {"status": slot.status})
    yield Guard("GUARD_UNKNOWN", why, None if why else view.case.opened_at)
    if verdict is Verdict.DID_NOT_HAPPEN:
        yield from _of_again(view, attested)


def _of_again(view: View, attested: bool) -> Iterator[Guard]:
    """`did_not_happen` permits a second sending, so it alone needs the first sender to be past sending."""
    sender, slot, now = view.sender, view.effect, view.now
    if sender.running:
        yield Guard(
            "GUARD_SENDER_OVER",
            ("SENDER_RUNNING", {"until": sender.lease_ends_at or "?"}),
            sender.lease_ends_at,
        )
    else:
        yield Guard("GUARD_SENDER_OVER", None, sender.ended_at)
    if attested:
        yield Guard("GUARD_ATTESTED")
    elif view.in_flight is None:
        yield Guard("GUARD_IN_FLIGHT_KNOWN", ("IN_FLIGHT_UNKNOWN", {"kind": slot.kind}))
    else:
        yield _over("GUARD_IN_FLIGHT", "IN_FLIGHT", view.in_flight, view.in_flight_until, now)
    if slot.settle_seconds is not None:
        yield _over("GUARD_SETTLED", "NOT_SETTLED", slot.settle_seconds, view.settle_by, now)


def _over(code: str, against: str, seconds: int, until: datetime | None, now: datetime) -> Guard:
    """Return the guard that so many seconds since the sender's end are over."""
    told = {"seconds": seconds}
    if until is None:
        return Guard(code, (f"{against}_AFTER", told), None, told)
    return Guard(code, (against, {"until": until}) if until > now else None, until, told)


def _of_conflict(view: View, verdict: Verdict) -> Iterator[Guard]:
    slot = view.effect
    yield Guard("GUARD_CONFLICT", None if slot.in_conflict else ("SLOT_STATUS", {"status": slot.status}))
    yield Guard("GUARD_NOT_SENDING", _executing(view) if slot.status == EffectStatus.EXECUTING else None)
    if verdict is Verdict.REBIND:
        sent = slot.grants or slot.status not in UNSENT
        yield Guard("GUARD_NEVER_SENT", ("KEY_WAS_GRANTED", {"grants": slot.grants}) if sent else None)
        gone: Said = ("EFFECT_KIND_UNKNOWN", {"kind": slot.kind})
        yield Guard("GUARD_KIND_KNOWN", gone if view.kind is None else None)
    if verdict is Verdict.REVISE:
        yield Guard("GUARD_NO_OPEN_EFFECT", ("EFFECT_OPEN", {}) if view.job.open_effects else None)


def _of_approval(view: View, verdict: Verdict) -> Iterator[Guard]:
    slot, asked, approval = view.effect, view.proposal, view.approval
    moved: Said = ("SLOT_STATUS", {"status": slot.status})
    yield Guard("GUARD_SENDABLE", None if slot.status in SENDABLE else moved)
    if verdict is not Verdict.SEND:
        return
    given: Said | None = None
    if approval is not None:
        given = ("APPROVED_ALREADY", {"by": approval.decided_by, "until": approval.expires_at or "?"})
    yield Guard("GUARD_NOT_APPROVED", given)
    yield Guard(
        "GUARD_ASKED", None if asked or approval else ("NOTHING_ASKED", {}), asked.at if asked else None
    )
    if asked is not None:
        same = (asked.slot_version, asked.payload_digest) == (slot.version, slot.payload_digest)
        yield Guard("GUARD_AS_ASKED", None if same else moved)


def _executing(view: View) -> Said:
    return ("EFFECT_EXECUTING", {"attempt": str(view.effect.granted_attempt_id)})
