"""What is no ruling: take a case, give it back, park it, comment on it, ask the provider about it.

Each but a comment, which is kept itself, leaves its entry in the audit, last of all in its transaction.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from jobs import audit, effect_kinds, wake
from jobs.canon import Json
from jobs.effect_kinds import EffectKind
from jobs.inquiry import inquire
from jobs.ledger import cases as rows
from jobs.ledger import inquiries
from jobs.ledger.clock import clock
from jobs.ledger.session import Session, transact
from jobs.models import Case, EffectSlot
from jobs.operations import cases
from jobs.operations.actor import APPROVE, RULE, Actor, admit
from jobs.outcomes import Refused
from jobs.status import EffectStatus
from jobs.verbs import audited
from jobs.verbs.base import HOOKS, is_blank
from jobs.verbs.effects import EffectRuntime
from jobs.vocabulary import JOB
from jobs.worker import gone

COOL_DOWN = 30
"""Seconds between two inquiries of people about one effect."""
LONGEST_TAKE = 8 * 60
LONGEST_COMMENT = 2000
LONGEST_PARK = timedelta(days=7)
LONGEST_WHY = 200


def take(
    case_id: uuid.UUID,
    *,
    actor: Any,
    minutes: int = 30,
    seen_version: int | None = None,
    using: str = "default",
    now: datetime | None = None,
) -> None:
    """Make `actor` the case's owner for `minutes`; raises Refused CASE_TAKEN naming who has it."""
    if not 1 <= minutes <= LONGEST_TAKE:
        raise Refused("MINUTES", most=LONGEST_TAKE)

    def work(session: Session, case: Case, person: Actor) -> None:
        until = rows.take(session, case_id, by=person.name, seconds=minutes * 60)
        if until is None:
            raise Refused("CASE_TAKEN", by=case.owner, until=case.owned_until)
        _note(session, "take", case, person, _owned(case), {"owner": person.name, "owned_until": _at(until)})

    _beside(case_id, work, actor, seen_version, using, now)


def give_back(
    case_id: uuid.UUID,
    *,
    actor: Any,
    seen_version: int | None = None,
    using: str = "default",
    now: datetime | None = None,
) -> None:
    """Let others take the case; raises Refused CASE_NOT_YOURS."""

    def work(session: Session, case: Case, person: Actor) -> None:
        if not rows.give_back(session, case_id, by=person.name):
            raise Refused("CASE_NOT_YOURS")
        _note(session, "give_back", case, person, _owned(case), {"owner": "", "owned_until": None})

    _beside(case_id, work, actor, seen_version, using, now)


def park(
    case_id: uuid.UUID,
    until: datetime | None,
    *,
    actor: Any,
    why: str = "",
    seen_version: int | None = None,
    using: str = "default",
    now: datetime | None = None,
) -> None:
    """Put the case out of sight until then, or bring it back with None. Its time limit runs on.

    `why` is shown beside it while it is parked. Raises Refused PARK_PAST, PARK_FAR, PARK_WHY_LONG.
    """
    why = " ".join(why.split())
    if len(why) > LONGEST_WHY:
        raise Refused("PARK_WHY_LONG", limit=LONGEST_WHY)

    def work(session: Session, case: Case, person: Actor) -> None:
        if until is not None:
            at = session.clock()
            if until <= at:
                raise Refused("PARK_PAST")
            if until > at + LONGEST_PARK:
                raise Refused("PARK_FAR", days=LONGEST_PARK.days)
        kept = why if until is not None else ""
        if (case.parked_until, case.parked_why) == (until, kept):
            return
        rows.park(session, case_id, until, kept)
        before: Json = {"parked_until": _at(case.parked_until), "parked_why": case.parked_why}
        after: Json = {"parked_until": _at(until), "parked_why": kept}
        _note(session, "park" if until is not None else "unpark", case, person, before, after, why)

    _beside(case_id, work, actor, seen_version, using, now)


def comment(
    case_id: uuid.UUID,
    text: str,
    *,
    actor: Any,
    seen_version: int | None = None,
    using: str = "default",
    now: datetime | None = None,
) -> None:
    """Write something beside the case. Whoever rules afterwards has to have seen it."""
    if is_blank(text):
        raise Refused("COMMENT_MISSING")
    if len(text) > LONGEST_COMMENT:
        raise Refused("COMMENT_TOO_LONG", limit=LONGEST_COMMENT)

    def work(session: Session, _case: Case, person: Actor) -> None:
        rows.comment(session, case_id, by=person.name, text=text)

    _beside(case_id, work, actor, seen_version, using, now)


def _beside(
    case_id: uuid.UUID,
    work: Callable[[Session, Case, Actor], None],
    user: Any,
    seen_version: int | None,
    using: str,
    now: datetime | None,
) -> None:
    """Run what is no ruling: permission, lock, version, and the case must be open."""

    def run(session: Session) -> None:
        actor = admit(user, RULE, APPROVE)
        case = cases.locked(session, case_id)
        if case.closed_at is not None:
            raise Refused("CASE_CLOSED", how=case.closed_as, at=case.closed_at)
        if seen_version is not None and case.version != seen_version:
            raise cases.moved(cases.look(case_id, using=using, now=now))
        work(session, case, actor)

    transact(run, using=using, vocabulary=JOB, now=now, durable=False)


def _note(
    session: Session, action: str, case: Case, person: Actor, before: Json, after: Json, why: str = ""
) -> None:
    """Append what was done to the audit; the chain's head is the last lock, so nothing may follow."""
    audited.append(
        session, action, "case", case.id, actor=person.signature, reason=why, before=before, after=after
    )


def _owned(case: Case) -> Json:
    return {"owner": case.owner, "owned_until": _at(case.owned_until)}


def _at(moment: datetime | None) -> str | None:
    return None if moment is None else audit.stamp(moment)


def ask_to_inquire(
    case_id: uuid.UUID, *, actor: Any, using: str = "default", now: datetime | None = None
) -> None:
    """Have a worker's reconciler ask the provider at once; the answer becomes evidence of the case.

    The provider is asked under the person's name. Raises Refused NOT_PERMITTED, SLOT_STATUS, NOT_INQUIRABLE,
    INQUIRY_ASKED while a request waits to be taken up, COOL_DOWN with the time from which on it may be asked
    again.
    """

    def work(session: Session) -> None:
        person = admit(actor, RULE)
        case = cases.locked(session, case_id)
        slot = EffectSlot.objects.using(using).get(pk=case.effect_id)
        _need_inquirable(slot, now or clock(using))
        if slot.inquire_asked_at is not None:
            raise Refused("INQUIRY_ASKED", by=slot.inquire_asked_by, at=slot.inquire_asked_at)
        if not inquiries.ask(session, slot.id, by=person.signature, cool_down=COOL_DOWN):
            raise Refused("SLOT_STATUS", status=slot.status)
        wake.after_commit(using, [wake.INQUIRE])
        _note_inquiry(session, case, slot, person)

    transact(work, using=using, vocabulary=JOB, now=now, durable=False)


def _need_inquirable(slot: EffectSlot, now: datetime) -> None:
    """Raise Refused where the provider cannot be asked, or was asked a moment ago."""
    if slot.status != EffectStatus.UNKNOWN:
        raise Refused("SLOT_STATUS", status=slot.status)
    if not slot.inquirable:
        raise Refused("NOT_INQUIRABLE", kind=slot.kind)
    again = cases.later(slot.inquired_at, COOL_DOWN)
    if again is not None and again > now:
        raise Refused("COOL_DOWN", until=again)


def inquire_now(
    case_id: uuid.UUID, *, actor: Any, using: str = "default", now: datetime | None = None
) -> EffectStatus | None:
    """Ask the provider from this very process, as the command does; returns what that settled, or None.

    No transaction is open meanwhile. Raises Refused NOT_PERMITTED, SLOT_STATUS, EFFECT_KIND_UNKNOWN,
    NOT_INQUIRABLE, COOL_DOWN with the time from which on it may be asked again.
    """

    def work(session: Session) -> tuple[EffectSlot, EffectKind, Actor]:
        person = admit(actor, RULE)
        case = cases.locked(session, case_id)
        slot = EffectSlot.objects.using(using).get(pk=case.effect_id)
        kind = effect_kinds.find(slot.kind)
        if slot.status == EffectStatus.UNKNOWN and kind is None:
            raise Refused("EFFECT_KIND_UNKNOWN", kind=slot.kind)
        _need_inquirable(slot, now or clock(using))
        assert kind is not None  # noqa: S101  (judged above)
        _note_inquiry(session, case, slot, person)
        return slot, kind, person

    slot, kind, person = transact(work, using=using, vocabulary=JOB, now=now, durable=False)
    runtime = EffectRuntime(JOB, hooks=HOOKS, using=using)
    found = runtime.read(slot.id)
    if found is not None:
        gone.prove(runtime, found)
    return inquire(runtime, slot.id, kind, actor=person.signature)


def _note_inquiry(session: Session, case: Case, slot: EffectSlot, person: Actor) -> None:
    """Append that a person asked for an inquiry; what came of it is evidence."""
    before: Json = {"inquiries": slot.inquiries, "inquired_at": _at(slot.inquired_at)}
    _note(session, "inquire", case, person, before, {"effect": slot.id})
