"""Reveal: what is hidden of a job is shown to one person, and the audit says to whom and why."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, transaction

from jobs.models import Attempt, Job
from jobs.operations.actor import VIEW_PAYLOAD, admit
from jobs.outcomes import Refused
from jobs.verbs import audited
from jobs.verbs.base import need_reason


class Revealed(NamedTuple):
    """What a job was given and what came of it, as JSON, nothing masked."""

    revision: int
    input: str
    result: str | None


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
        seen = {"revision": job.revision, "result": result is not None}
        audited.append(using, "reveal", "job", str(job.pk), actor=by, reason=reason, before=None, after=seen)
    return Revealed(job.revision, job.input, result)
