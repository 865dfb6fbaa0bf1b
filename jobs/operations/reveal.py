"""Reveal: what is hidden of a job or a case is shown to one person, and the audit says to whom and why."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, transaction

from jobs.canon import Json
from jobs.models import Attempt, Case, Evidence, Job
from jobs.operations.actor import VIEW_PAYLOAD, admit
from jobs.outcomes import Refused
from jobs.verbs import audited
from jobs.verbs.base import need_reason

EVIDENCE = 30
"""So many pieces of evidence are shown of a case, the newest."""


class Revealed(NamedTuple):
    """What a job was given and what came of it, as JSON, nothing masked."""

    revision: int
    input: str
    result: str | None


class Answer(NamedTuple):
    """What one piece of evidence says, as it was written down."""

    at: datetime
    source: str
    outcome: str
    body: str


class RevealedCase(NamedTuple):
    """What a case is about, nothing masked: JSON, but for what the answers say."""

    payload: str
    brought: str | None
    """The other payload of a conflict."""
    response: str | None
    evidence: list[Answer]
    """The newest first; of those that say nothing themselves, none."""


def reveal(job_id: uuid.UUID, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> Revealed:
    """Return a job's input and result as they are; the entry in the audit stands before anybody reads them.

    Raises Refused NOT_PERMITTED, NOT_FOUND, REASON_MISSING, REASON_TOO_LONG.
    """
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, VIEW_PAYLOAD).signature
        job = Job.objects.using(using).filter(pk=job_id).first()
        if job is None:
            raise Refused("NOT_FOUND", job_id=job_id)
        results = Attempt.objects.using(using).filter(pk=job.result_commit_id)
        result = results.values_list("result", flat=True).first()
        seen: Json = {"revision": job.revision, "result": result is not None}
        audited.append(using, "reveal", "job", str(job.pk), actor=by, reason=reason, before=None, after=seen)
    return Revealed(job.revision, job.input, result)


def reveal_case(
    case_id: uuid.UUID, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS
) -> RevealedCase:
    """Return a case's payloads, the answer on record and the evidence as they are, once the audit has it.

    The audit keeps which of them there were, and nothing of what they say. Raises Refused NOT_PERMITTED,
    CASE_NOT_FOUND, REASON_MISSING, REASON_TOO_LONG.
    """
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, VIEW_PAYLOAD).signature
        case = Case.objects.using(using).select_related("effect").filter(pk=case_id).first()
        if case is None:
            raise Refused("CASE_NOT_FOUND", case_id=str(case_id))
        slot = case.effect
        told = Evidence.objects.using(using).filter(effect=slot).exclude(body="").order_by("-id")
        evidence = [Answer(e.at, e.source, e.outcome, e.body) for e in told[:EVIDENCE]]
        seen: Json = {
            "version": case.version,
            "slot_version": slot.version,
            "brought": slot.conflict_payload is not None,
            "response": slot.response is not None,
            "evidence": len(evidence),
        }
        audited.append(
            using, "reveal", "case", str(case.pk), actor=by, reason=reason, before=None, after=seen
        )
    return RevealedCase(slot.payload, slot.conflict_payload, slot.response, evidence)
