"""Rulings: a person decides on an outside effect (contract §6), with a second person where it takes one.

Everything of one decision is one transaction under the job's row lock: who may, whether the world is still
as it was seen, every guard, the slot, the job, the case, the ruling, the audit entry. Console, command and
API call these functions and no others. Raises Refused, with nothing written: MOVED tells what changed since
the person looked, by whom and when; every other code names the guard that failed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings

from jobs import audit, canon
from jobs.canon import Json
from jobs.ledger import cases as rows
from jobs.ledger.session import Session, transact
from jobs.models import Case, EffectSlot, Job, Proposal
from jobs.models.audit import Source
from jobs.models.case import VERDICTS, CaseKind, Verdict
from jobs.operations import approvals, cases
from jobs.operations.actor import APPROVE, RULE, Actor, admit, person_of, still
from jobs.operations.cases import Stop, View, look
from jobs.operations.guards import needed
from jobs.outcomes import InvalidJob, Refused
from jobs.status import JobStatus
from jobs.verbs.base import need_reason
from jobs.verbs.rulings import Sentence, pass_sentence, response_text
from jobs.vocabulary import JOB

PROPOSAL_SECONDS = 86_400
"""How long a second person has; after that the first one asks anew."""
LONGEST_REFERENCE = 200

REASON_CODES: dict[Verdict, tuple[str, ...]] = {
    Verdict.HAPPENED: ("provider_confirms", "seen_in_statement", "recipient_confirms", "other"),
    Verdict.DID_NOT_HAPPEN: (
        "provider_denies",
        "not_in_statement",
        "recipient_denies",
        "never_left",
        "other",
    ),
    Verdict.ABANDON: ("not_needed", "done_otherwise", "too_late", "too_risky", "other"),
    Verdict.USE_RECORDED: ("recorded_is_right", "same_in_substance", "other"),
    Verdict.REBIND: ("new_is_right", "recorded_is_wrong", "other"),
    Verdict.REVISE: ("input_was_wrong", "other"),
    Verdict.SEND: ("checked", "asked_requester", "within_limits", "other"),
    Verdict.ACKNOWLEDGE: ("corrected_outside", "compensated", "no_harm", "other"),
}
"""Why a verdict may be given; the person's own words go with it always."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """The decision has taken effect. `case_open` is so while an approved sending has not been used."""

    verdict: Verdict
    effect_status: str
    job_status: JobStatus
    case_open: bool
    audit_seq: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """The decision waits for a second person; nothing has taken effect."""

    verdict: Verdict
    proposal_id: uuid.UUID
    expires_at: datetime | None
    audit_seq: int


Outcome = Ruled | Proposed
Result = TypeVar("Result")


def rule(
    case_id: uuid.UUID,
    verdict: Verdict | str,
    *,
    actor: Any,
    reason_code: str,
    reason: str,
    seen_version: int,
    snapshot: str,
    reference: str = "",
    response: Any = None,
    compensate: bool = False,
    attested: bool = False,
    arguments: Mapping[str, Any] | None = None,
    effects: str = "",
    using: str = "default",
    now: datetime | None = None,
) -> Outcome:
    """Decide a case as `actor` (a Django user), on the version and snapshot that were seen.

    `reference` and `response` go with `happened`, `attested` (the sender is dead) with `did_not_happen`,
    `arguments` and `effects` (`repeat_effects` or `keep_effects`) with `revise`. `send` answers the open
    question of an approval case, as `approve` does.
    """
    need_reason(reason)
    verdict = _verdict(verdict, reason_code)
    reference = _reference(reference)
    text = _response(response) if verdict is Verdict.HAPPENED else None

    def work(session: Session) -> Outcome:
        case = cases.locked(session, case_id)
        person = admit(actor, needed(case.kind), recent=_takes_recent(verdict))
        view = look(case_id, using=using, now=_t(session))
        if verdict not in VERDICTS[CaseKind(case.kind)]:
            raise Refused("NOT_OFFERED", verdict=verdict.value, kind=case.kind)
        if case.closed_at is not None or (case.version, view.snapshot) != (seen_version, snapshot):
            raise cases.moved(view)
        offered = cases.offer(view, verdict, person.user, attested=attested)
        _need((offered.why, offered.opens_at))
        if verdict is Verdict.HAPPENED and view.kind is not None and not view.kind.is_reference(reference):
            raise Refused("REFERENCE_FORMAT", pattern=view.kind.reference)
        sentence = Sentence(
            verdict=verdict,
            by=person.name,
            signature=person.signature,
            reason_code=reason_code,
            reason=reason,
            snapshot=snapshot,
            reference=reference,
            response=text,
            compensate=compensate and verdict is Verdict.HAPPENED,
            attested=attested and verdict is Verdict.DID_NOT_HAPPEN,
            arguments=arguments,
            effects=effects,
        )
        if verdict is Verdict.SEND:
            assert view.proposal is not None  # noqa: S101  (offered only where one is open)
            _decide(session, view.proposal, "approved", person, reason)
        elif cases.takes_second(view, verdict):
            return _propose(session, view, sentence, person.user.pk)
        return _pass(session, view, sentence, action="rule")

    return _transact(work, using, now)


def approve(
    proposal_id: uuid.UUID,
    *,
    actor: Any,
    snapshot: str,
    reason: str,
    reason_code: str = "checked",
    using: str = "default",
    now: datetime | None = None,
) -> Ruled:
    """Confirm as a second person what another one asked for, on the snapshot that was seen.

    Never one's own; a sending, never the requester's either. The facts must still be what the first one
    signed, who must still be one who may rule, and every guard must hold now.
    """
    need_reason(reason)

    def work(session: Session) -> Ruled:
        proposal, view = _open_question(session, proposal_id)
        verdict = Verdict(proposal.verdict)
        person = admit(actor, APPROVE, recent=_takes_recent(verdict))
        _not_self(proposal, view, person)
        if snapshot != view.snapshot:
            raise cases.moved(view)
        signed_facts = proposal.snapshot in ("", view.basis)
        slot = view.effect
        same_slot = (proposal.slot_version, proposal.payload_digest) == (slot.version, slot.payload_digest)
        if not (signed_facts and same_slot):
            raise cases.moved(view)
        asked = json.loads(proposal.asked)
        if verdict is not Verdict.SEND:
            still(asked["account"], needed(view.case.kind), beside=person)
        _need(cases.against(view, verdict, attested=bool(asked.get("attested"))))
        _decide(session, proposal, "approved", person, reason)
        sending = verdict is Verdict.SEND
        sentence = Sentence(
            verdict=verdict,
            by=person.name if sending else proposal.by,
            signature=person.signature,
            reason_code=_verdict_code(verdict, reason_code) if sending else asked["reason_code"],
            reason=reason if sending else asked["reason"],
            snapshot=snapshot if sending else asked["snapshot"],
            approved_by="" if sending else person.name,
            attested=bool(asked.get("attested")),
        )
        return _pass(session, view, sentence, action="approve", seen=snapshot, said=reason)

    return _transact(work, using, now)


def reject(
    proposal_id: uuid.UUID,
    *,
    actor: Any,
    snapshot: str,
    reason: str,
    using: str = "default",
    now: datetime | None = None,
) -> None:
    """Decline what waits for a second person; the case stays open. The first person may take his own back.

    A sending is not rejected but abandoned: its job waits, and must learn it.
    """
    need_reason(reason)

    def work(session: Session) -> None:
        proposal, view = _open_question(session, proposal_id)
        person = admit(actor, APPROVE, RULE)
        if proposal.by != person.name:
            person = admit(actor, APPROVE)
        if proposal.verdict == Verdict.SEND:
            raise Refused("SEND_IS_ABANDONED")
        if snapshot != view.snapshot:
            raise cases.moved(view)
        _decide(session, proposal, "rejected", person, reason)
        rows.touch(session, view.effect.id)
        before: Json = {"proposal": str(proposal.id), "verdict": proposal.verdict, "by": proposal.by}
        _audit(
            session, view.case, "reject", person.signature, reason, snapshot, before, {"decision": "rejected"}
        )

    _transact(work, using, now)


def _takes_recent(verdict: Verdict) -> bool:
    """Whether a verdict asks a recent log-in: what permits a second sending, and all that a token decides."""
    return verdict is Verdict.DID_NOT_HAPPEN or audit.origin().source is Source.API


# -- steps -----------------------------------------------------------------------------------------------


def _open_question(session: Session, proposal_id: uuid.UUID) -> tuple[Proposal, View]:
    """Return what waits for a second person and the case it is about, under the job's lock."""
    found = Proposal.objects.using(session.using).filter(pk=proposal_id)
    case_id = found.values_list("case_id", flat=True).first()
    if case_id is None:
        raise Refused("PROPOSAL_NOT_FOUND", proposal_id=str(proposal_id))
    cases.locked(session, case_id)
    proposal = found.get()
    now = _t(session)
    view = look(case_id, using=session.using, now=now)
    if proposal.decision or view.case.closed_at is not None:
        raise cases.moved(view)
    if proposal.expires_at is not None and proposal.expires_at <= now:
        raise Refused("PROPOSAL_EXPIRED", at=proposal.expires_at)
    return proposal, view


def _not_self(proposal: Proposal, view: View, person: Actor) -> None:
    if approvals.is_own(
        proposal.verdict,
        proposal.by,
        proposal.asked,
        enqueued_by=view.job.enqueued_by,
        name=person.name,
        account=str(person.user.pk),
    ):
        raise Refused("SELF_APPROVAL", user=person.name)


def _need(stop: Stop) -> None:
    """Refuse with the guard that does not hold now."""
    if stop is not None and stop[0] is not None:
        code, params = stop[0]
        raise Refused(code, **params)


def _propose(session: Session, view: View, it: Sentence, account: object) -> Proposed:
    other = view.proposal
    if other is not None and other.by != it.by and (other.expires_at is None or other.expires_at > view.now):
        raise Refused("ASKED_ALREADY", by=other.by, verdict=other.verdict, at=other.at)
    asked: dict[str, Json] = {
        "reason_code": it.reason_code,
        "reason": it.reason,
        "attested": it.attested,
        "snapshot": it.snapshot,
        "account": str(account),  # a person who has another name by now is the same one
    }
    proposal_id = rows.propose(
        session,
        view.case.id,
        view.effect.id,
        it.verdict.value,
        by=it.by,
        seconds=PROPOSAL_SECONDS,
        asked=canon.canonical(asked),
        snapshot=view.basis,
    )
    proposal = Proposal.objects.using(session.using).get(pk=proposal_id)
    after: Json = {"proposal": str(proposal_id), "verdict": it.verdict.value, "reason_code": it.reason_code}
    seq = _audit(session, view.case, "propose", it.signature, it.reason, it.snapshot, None, after)
    return Proposed(it.verdict, proposal.id, proposal.expires_at, seq)


def _decide(session: Session, proposal: Proposal, decision: str, person: Actor, note: str) -> None:
    if not rows.decide(session, proposal.id, decision, by=person.name, note=note):
        raise Refused("PROPOSAL_EXPIRED", at=proposal.expires_at or "?")


def _pass(
    session: Session, view: View, it: Sentence, *, action: str, seen: str = "", said: str = ""
) -> Ruled:
    """Write a decision down, and last of all its audit entry: the chain's head is the last lock."""
    try:
        pass_sentence(session, view.case, view.effect, view.kind, it)
    except InvalidJob as error:
        raise Refused("ARGUMENTS_INVALID", problem=str(error)) from None
    case = Case.objects.using(session.using).get(pk=view.case.pk)
    slot = EffectSlot.objects.using(session.using).get(pk=view.effect.pk)
    job = Job.objects.using(session.using).only("status").get(pk=view.job.pk)
    before: Json = {"slot": view.effect.status, "slot_version": view.effect.version, "job": view.job.status}
    after: dict[str, Json] = {
        "verdict": it.verdict.value,
        "reason_code": it.reason_code,
        "effect": slot.id,
        "slot": slot.status,
        "slot_version": slot.version,
        "job": job.status,
        "by": it.by,
    }
    for name in ("reference", "compensate", "attested", "effects"):
        if getattr(it, name):
            after[name] = getattr(it, name)
    seq = _audit(
        session,
        case,
        action,
        it.signature,
        said or it.reason,
        seen or it.snapshot,
        before,
        after,
        it.by if it.verdict is Verdict.SEND else it.approved_by,
    )
    return Ruled(it.verdict, slot.status, JobStatus(job.status), case.closed_at is None, seq)


def _audit(
    session: Session,
    case: Case,
    action: str,
    signature: str,
    reason: str,
    snapshot: str,
    before: Json,
    after: Json,
    approver: str = "",
) -> int:
    origin = audit.origin()
    return audit.append(
        session,
        action=f"ruling_{action}",
        actor=signature,
        user=origin.user or person_of(signature),
        object_type="case",
        object_id=case.id,
        reason=reason,
        before=before,
        after=after,
        request_id=origin.request_id,
        snapshot=snapshot,
        approver=approver,
        source=origin.source,
    )


# -- what was given --------------------------------------------------------------------------------------


def _verdict(text: Verdict | str, reason_code: str) -> Verdict:
    try:
        verdict = Verdict(text)
    except ValueError:
        raise Refused("VERDICT_UNKNOWN", verdict=str(text)[:40]) from None
    _verdict_code(verdict, reason_code)
    return verdict


def _verdict_code(verdict: Verdict, reason_code: str) -> str:
    known = REASON_CODES[verdict]
    if reason_code not in known:
        raise Refused("REASON_CODE", verdict=verdict.value, known=", ".join(known))
    return reason_code


def _reference(text: str) -> str:
    text = text.strip()
    if len(text) > LONGEST_REFERENCE:
        raise Refused("REFERENCE_TOO_LONG", limit=LONGEST_REFERENCE)
    return text


def _response(value: Any) -> str:
    limits = settings.INTERLOCK
    return response_text(value, depth=limits["DEPTH"], limit=limits["RESULT_BYTES"])


def _t(session: Session) -> datetime:
    return session.clock()


def _transact(work: Callable[[Session], Result], using: str, now: datetime | None) -> Result:
    return transact(work, using=using, vocabulary=JOB, now=now, durable=False)
