"""What a ruling writes on its slot, its job and its case, in the transaction of who rules (contract §6).

Who may rule, and when, is asked in jobs/operations/rulings.py; each write rests on the slot's version still.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs import admission, canon, redact, wake
from jobs.effect_kinds import EffectKind
from jobs.ledger import cancel as people
from jobs.ledger import cases, inquiries, reports
from jobs.ledger import claim as claims
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session
from jobs.models import Case, EffectSlot, Job
from jobs.models.case import CaseKind, Verdict
from jobs.outcomes import Refused
from jobs.status import EffectStatus, JobStatus
from jobs.verbs import attributes
from jobs.verbs.effects import move_on


@dataclass(frozen=True, slots=True)
class Sentence:
    """A decision, ready to be written. `by` and `approved_by` are persons, the feeds show `signature`."""

    verdict: Verdict
    by: str
    signature: str
    reason_code: str
    reason: str
    snapshot: str
    approved_by: str = ""
    reference: str = ""
    response: str | None = None
    compensate: bool = False
    attested: bool = False
    arguments: Mapping[str, Any] | None = None
    effects: str = ""


def pass_sentence(
    session: Session, case: Case, slot: EffectSlot, kind: EffectKind | None, it: Sentence
) -> None:
    """Write a decision down and let the job go on; raises Refused where the slot is not as it was read.

    Under the job's lock. The audit entry is the caller's, and comes last.
    """
    job_id = session.key(case.job_id)
    if it.verdict is Verdict.SEND:
        _let_run(session, job_id, it)
    elif it.verdict is not Verdict.ACKNOWLEDGE:
        if it.verdict is Verdict.REVISE:
            _revise(session, case, it)
        _rule(session, slot, kind, it)
        cases.void(session, slot.id)
        reports.count_open(session, job_id)
    _keep(session, case, slot, it)
    if it.verdict is Verdict.SEND:
        return  # the case is closed by the grant that uses the approval up
    cases.close(session, slot.id, case.kind, "ruled")
    cases.touch(session, slot.id)
    if it.verdict is Verdict.ACKNOWLEDGE:
        return
    if case.kind == CaseKind.APPROVAL:
        # Nobody may end a waiting job but itself: its next run meets the closed slot, and fails.
        _let_run(session, job_id, it)
    elif move_on(session, job_id, using=session.using) is None:
        cases.open_for(session, [job_id])


def _rule(session: Session, slot: EffectSlot, kind: EffectKind | None, it: Sentence) -> None:
    values: dict[str, Any] = {}
    if it.verdict is Verdict.HAPPENED:
        values = {"response": it.response, "reference": it.reference}
    if it.verdict is Verdict.REBIND:
        values = _described(slot, kind)
    if reports.rule(session, slot.id, slot.version, it.verdict.value, **values) is None:
        raise Refused("SLOT_STATUS", status=slot.status)


def _described(slot: EffectSlot, kind: EffectKind | None) -> dict[str, Any]:
    """Return how people know the payload that the key is bound to from now on."""
    if kind is None:
        raise Refused("EFFECT_KIND_UNKNOWN", kind=slot.kind)
    value = json.loads(slot.conflict_payload or "null")
    shown, amount = redact.mask(value, kind.redact), kind.amount_of(value)
    return {
        "label": kind.label_of(shown),
        "target": kind.text_of(shown, kind.target, 200),
        "amount": None if amount is None else str(amount),
        "currency": kind.text_of(value, kind.currency, 8),
    }


def _revise(session: Session, case: Case, it: Sentence) -> None:
    """Give the uncertain job another input: its effects get new keys, the conflict is over."""
    if it.arguments is None:
        raise Refused("ARGUMENTS_MISSING")
    job_id = session.key(case.job_id)
    row = people.read(session, [job_id])[job_id]
    if row.open_effects:
        raise Refused("EFFECT_OPEN")
    job = Job.objects.using(session.using).only("kind").get(pk=case.job_id)
    text, digest = admission.arguments(job.kind, it.arguments)
    committed = job.effects.using(session.using).filter(status=EffectStatus.COMMITTED).exists()
    if committed and it.effects not in ("repeat_effects", "keep_effects"):
        raise Refused("EFFECTS_COMMITTED")
    done = people.revise(
        session, case.job_id, text=text, digest=digest, state_version=row.state_version, ruled=True
    )
    if done is None:
        raise Refused("NOT_UNCERTAIN", status=row.status.value)
    attributes.renew(session, job_id, job.kind, text)
    worker_rows.add_change(session, "revise", [[job_id, done[0].value]], actor=it.signature, reason=it.reason)


def _let_run(session: Session, job_id: Any, it: Sentence) -> None:
    queue = cases.come_due(session, job_id)
    if queue is None:
        return
    claims.promote_id(session, uuid.UUID(job_id))
    worker_rows.add_change(
        session, "approve", [[job_id, JobStatus.WAITING.value]], actor=it.signature, reason=it.reason
    )
    wake.after_commit(session.using, {queue})


def _keep(session: Session, case: Case, slot: EffectSlot, it: Sentence) -> None:
    inquiries.add_evidence(
        session,
        slot.id,
        source="person",
        outcome=it.verdict.value,
        decisive=it.verdict is not Verdict.ACKNOWLEDGE,
        reference=it.reference,
        body=redact.clean(it.reason, limit=4096),
        actor=it.signature,
    )
    cases.add_ruling(
        session,
        case_id=case.id,
        effect_id=slot.id,
        verdict=it.verdict.value,
        by=it.by,
        approved_by=it.approved_by,
        reason_code=it.reason_code,
        reason=it.reason,
        reference=it.reference,
        response=it.response,
        compensate=it.compensate,
        attested=it.attested,
        snapshot=it.snapshot,
        slot_version=slot.version,
    )


def response_text(value: Any, *, depth: int, limit: int) -> str:
    """Return a response as canonical text; raises Refused RESPONSE_INVALID."""
    try:
        return canon.canonical(value, depth=depth, limit=limit)
    except canon.NotCanonical as error:
        raise Refused("RESPONSE_INVALID", problem=str(error)) from None
