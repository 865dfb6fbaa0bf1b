"""Cases as people meet them: all that is known, what may be ruled and why not, and what is no ruling.

`look` reads, `offers` judges what was read; ruling (jobs/operations/rulings.py) does both again under the
job's lock. Whatever a person must have seen is in the snapshot, so nothing is ruled on what changed since.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from jobs import canon, effect_kinds, handlers
from jobs.effect_kinds import IMPLICIT, EffectKind
from jobs.ledger.clock import clock
from jobs.ledger.session import Session
from jobs.models import Attempt, Case, Comment, EffectSlot, Evidence, Job, Proposal, Ruling, Worker
from jobs.models.case import VERDICTS, CaseKind, ClosedAs, Verdict
from jobs.money import money
from jobs.operations import guards
from jobs.operations.guards import Guard, Said
from jobs.outcomes import Refused
from jobs.sentences import sentence
from jobs.status import AttemptStatus

EVIDENCE, WORDS = 500, 100
"""So many pieces of evidence, comments and rulings are read, the newest; there is rarely a dozen."""

Stop = tuple[Said | None, datetime | None] | None
"""What stands against a verdict, and when that is over by itself."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What is known of whoever may have sent. `ended_at` is the last moment at which that one could have."""

    attempt: Attempt | None
    worker: Worker | None
    lease_ends_at: datetime | None
    """While it runs; the lease of an attempt that has ended is over."""
    running: bool
    ended_at: datetime | None
    proven_gone: bool
    """By its own report, or because its process is gone; else only its lease is over."""

    @property
    def beat_at(self) -> datetime | None:
        return self.worker.beat_at if self.worker else None

    @property
    def fenced_at(self) -> datetime | None:
        return self.worker.fenced_at if self.worker else None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is known of one case at `now`, the database's clock."""

    now: datetime
    case: Case
    effect: EffectSlot
    job: Job
    kind: EffectKind | None
    evidence: list[Evidence]
    rulings: list[Ruling]
    comments: list[Comment]
    proposal: Proposal | None
    """What waits for a second person."""
    approval: Proposal | None
    """An approved sending that nobody has used up."""
    sender: Sender
    in_flight: int | None
    """For so many seconds a request may be under way after its sender's end; None where nobody here knows."""
    in_flight_until: datetime | None
    """Until then a request may still be under way; None where that is not known."""
    settle_by: datetime | None
    """From then on a provider that knows nothing will know nothing; None where the kind declares nothing."""
    basis: str = field(default="", repr=False)
    """Digest of the facts; what a second person confirms is that they are still what the first one signed."""
    snapshot: str = field(default="", repr=False)
    """Digest of what a person must have seen: the facts, and what was said and asked about them."""

    @property
    def secrets(self) -> set[str]:
        """Texts of the job's input that payloads, answers and errors may repeat, and no person may see."""
        return handlers.secrets_of(self.job.kind, self.job.input)

    @property
    def kind_known(self) -> bool:
        return self.kind is not None or self.effect.kind == IMPLICIT

    @property
    def key_expired(self) -> bool:
        return self.effect.key_valid_until is not None and self.effect.key_valid_until <= self.now


@dataclass(frozen=True, slots=True)
class Offer:
    """One verdict of the closed list, as it is open to one person now."""

    verdict: Verdict
    allowed: bool
    why: Said | None
    """What stands against it."""
    opens_at: datetime | None
    """When that is over by itself."""
    takes_second: bool
    consequence: Said
    guards: tuple[Guard, ...] = ()
    """All that must hold, whether it does or not; `why` is of the first that does not."""

    @property
    def free_at(self) -> datetime | None:
        """When all that stands against it is over by itself; None where something is not, or nothing is."""
        ends = [guard.at for guard in self.guards if not guard.met]
        return max((end for end in ends if end), default=None) if all(ends) else None

    @property
    def why_text(self) -> str:
        return sentence(*self.why) if self.why else ""

    @property
    def consequence_text(self) -> str:
        return sentence(*self.consequence)


# -- looking ---------------------------------------------------------------------------------------------


def look(case_id: uuid.UUID, *, using: str = "default", now: datetime | None = None) -> View:
    """Return all that is known of a case; raises Refused CASE_NOT_FOUND."""
    case = Case.objects.using(using).select_related("effect", "job").filter(pk=case_id).first()
    if case is None:
        raise Refused("CASE_NOT_FOUND", case_id=str(case_id))
    now = now or clock(using)
    slot, job = case.effect, case.job
    kind = effect_kinds.find(slot.kind)
    asked, approval = _asked(case, now, using)
    sender, in_flight = _sender(slot, job, using), _in_flight(slot, kind)
    view = View(
        now=now,
        case=case,
        effect=slot,
        job=job,
        kind=kind,
        evidence=_evidence(slot, using),
        rulings=list(Ruling.objects.using(using).filter(effect=slot).order_by("-id")[:WORDS]),
        comments=list(Comment.objects.using(using).filter(case=case).order_by("-id")[:WORDS]),
        proposal=asked,
        approval=approval,
        sender=sender,
        in_flight=in_flight,
        in_flight_until=later(sender.ended_at, in_flight),
        settle_by=later(sender.ended_at, slot.settle_seconds),
    )
    basis = {
        "slot": [slot.version, slot.status, slot.payload_digest, slot.conflict_digest],
        "evidence": _news(view.evidence),
        "job": job.state_version,
        "case": str(case.id),
    }
    object.__setattr__(view, "basis", canon.digest(canon.canonical(basis)))
    seen = [view.basis, case.version, str(view.proposal.id) if view.proposal else ""]
    object.__setattr__(view, "snapshot", canon.digest(canon.canonical(seen)))
    return view


def _asked(case: Case, now: datetime, using: str) -> tuple[Proposal | None, Proposal | None]:
    """Return what waits for a second person, and the newest approved sending that nobody has used up.

    Of the first kind there is at most one (`proposal_open_once`), and it comes first.
    """
    usable = Q(verdict=Verdict.SEND, decision="approved", grant_id=None, expires_at__gt=now)
    here = Proposal.objects.using(using).filter(Q(decision="") | usable, case=case)
    found = list(here.order_by("decision", "-at", "-id")[:2])
    return (
        next((row for row in found if row.decision == ""), None),
        next((row for row in found if row.decision), None),
    )


def _evidence(slot: EffectSlot, using: str) -> list[Evidence]:
    """Return the newest evidence; of very much, inquiries apart, lest they push out what was reported."""
    found = Evidence.objects.using(using).filter(effect=slot).order_by("-id")
    newest = list(found[:EVIDENCE])
    if len(newest) < EVIDENCE:
        return newest
    rest, inquiries = found.exclude(source="inquiry"), found.filter(source="inquiry")
    return sorted([*rest[:EVIDENCE], *inquiries[:EVIDENCE]], key=lambda piece: -piece.id)


def _news(evidence: list[Evidence]) -> list[Any]:
    """Return what the evidence says that is new: a provider that is down says the same every minute, and
    nobody could ever finish a sentence about it."""
    told: list[Any] = []
    last: Any = None
    for piece in reversed(evidence):
        if piece.source != "inquiry":
            told.append(piece.id)
        elif (said := [piece.outcome, piece.reference]) != last:
            told.append(said)
            last = said
    return told


def _sender(slot: EffectSlot, job: Job, using: str) -> Sender:
    """Return who may have sent. A slot without a grantee may have been sent by any attempt of its job."""
    attempts = Attempt.objects.using(using).filter(job=job).order_by("-generation")
    if slot.granted_attempt_id is not None:
        attempts = attempts.filter(pk=slot.granted_attempt_id)
    found = list(attempts[:WORDS])
    if not found:
        return Sender(None, None, None, False, slot.sender_ended_at, slot.sender_ended_at is not None)
    # Of several, one that runs; else the one that ended last.
    live = next((a for a in found if a.status == AttemptStatus.RUNNING), None)
    attempt = live or max(found, key=lambda a: a.finished_at or a.started_at)
    worker = Worker.objects.using(using).filter(pk=attempt.worker_id).first()
    holds = live is not None and job.attempt_id == attempt.id
    return Sender(
        attempt=attempt,
        worker=worker,
        lease_ends_at=job.lease_expires_at if holds else None,
        running=live is not None,
        ended_at=None if live else slot.sender_ended_at or attempt.finished_at,
        proven_gone=slot.sender_ended_at is not None,
    )


def _in_flight(slot: EffectSlot, kind: EffectKind | None) -> int | None:
    if kind is not None:
        return kind.in_flight
    return effect_kinds.EffectKind.in_flight if slot.kind == IMPLICIT else None


def later(start: datetime | None, seconds: int | None) -> datetime | None:
    return None if start is None or seconds is None else start + timedelta(seconds=seconds)


# -- judging ---------------------------------------------------------------------------------------------


def offers(view: View, user: Any, *, attested: bool = False) -> list[Offer]:
    """Return the closed list of this case's kind, each verdict with what stands against it for `user` now.

    `attested` judges as if the person vouched that the sender is dead.
    """
    return [
        offer(view, Verdict(verdict), user, attested=attested)
        for verdict in VERDICTS[CaseKind(view.case.kind)]
    ]


def offer(view: View, verdict: Verdict, user: Any, *, attested: bool = False) -> Offer:
    """Judge one verdict; see `offers`."""
    found = guards.of(view, verdict, user, attested=attested)
    why, opens_at = _first(found) or (None, None)
    consequence = _consequence(view, verdict)
    return Offer(verdict, why is None, why, opens_at, takes_second(view, verdict), consequence, tuple(found))


def against(view: View, verdict: Verdict, *, attested: bool = False) -> Stop:
    """Return what stands against a verdict, whoever gives it."""
    return _first(guards.of(view, verdict, attested=attested))


def _first(found: list[Guard]) -> Stop:
    return next(((guard.why, guard.at) for guard in found if not guard.met), None)


def takes_second(view: View, verdict: Verdict) -> bool:
    """Whether a verdict needs another person's word before it takes effect."""
    if verdict is not Verdict.DID_NOT_HAPPEN:
        return False
    slot = view.effect
    alone = view.kind is not None and not view.kind.asks_second(slot.amount)
    return not alone or slot.replay == "non_replayable" or view.key_expired


def _consequence(view: View, verdict: Verdict) -> Said:
    slot = view.effect
    what = ", ".join(part for part in (slot.label or slot.kind, money(slot.amount, slot.currency)) if part)
    return f"WILL_{verdict.value.upper()}", {"what": what, "key": slot.id[:12]}


def locked(session: Session, case_id: uuid.UUID) -> Case:
    """Return a case, its job's row locked first: nothing about it changes from here on."""
    cases = Case.objects.using(session.using)
    job_id = cases.filter(pk=case_id).values_list("job_id", flat=True).first()
    if job_id is None:
        raise Refused("CASE_NOT_FOUND", case_id=str(case_id))
    session.lock([session.key(job_id)])
    return cases.get(pk=case_id)


# -- what has changed ------------------------------------------------------------------------------------


def moved(view: View) -> Refused:
    """Return the refusal that tells what has happened last to a case: what, by whom, when."""
    happened: list[tuple[datetime, str, dict[str, Any]]] = []
    for ruling in view.rulings[:1]:
        by = {"by": ruling.by, "verdict": ruling.verdict, "at": ruling.at}
        happened.append((ruling.at, "MOVED_RULED", by))
    if view.proposal is not None and view.proposal.by:
        asked = {"by": view.proposal.by, "verdict": view.proposal.verdict, "at": view.proposal.at}
        happened.append((view.proposal.at, "MOVED_ASKED", asked))
    if view.comments:
        said = view.comments[0]
        happened.append((said.at, "MOVED_COMMENT", {"by": said.by, "at": said.at}))
    for piece in view.evidence[:1]:
        if piece.source != "person":
            learnt = {"outcome": piece.outcome, "by": piece.actor or piece.source, "at": piece.at}
            happened.append((piece.at, "MOVED_EVIDENCE", learnt))
    if view.job.cancel_requested_at is not None:
        asked_at = view.job.cancel_requested_at
        happened.append((asked_at, "MOVED_CANCEL", {"by": view.job.cancel_requested_by, "at": asked_at}))
    if view.case.closed_at is not None and view.case.closed_as == ClosedAs.MOOT:
        closed = {"status": view.job.status, "at": view.case.closed_at}
        happened.append((view.case.closed_at, "MOVED_MOOT", closed))
    slot = {"status": view.effect.status, "at": view.effect.changed_at, "by": ""}
    happened.append((view.effect.changed_at, "MOVED_SLOT", slot))
    # Of what was written at one instant, the first in this list says the most.
    _at, code, params = max(happened, key=lambda one: one[0])
    shown = {name: value for name, value in params.items() if name in ("by", "at", "verdict", "status")}
    return Refused("MOVED", what=sentence(code, params), what_code=code, version=view.case.version, **shown)
