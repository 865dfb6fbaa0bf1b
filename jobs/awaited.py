"""What jobs wait for that a person knows more of than their rows: open cases, and who put them on hold.

Read for a whole page of jobs at once: a query for those that may have a case, one for those on hold.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from jobs.effect_kinds import IMPLICIT
from jobs.models import AuditEntry, Case, Job
from jobs.models.case import CaseKind
from jobs.money import money
from jobs.status import TERMINAL, HoldReason, JobStatus, WaitReason

EACH = 10
"""Open cases, and audit entries, that are read for each job of a page; what is beyond goes untold."""
SWEEPS = 20
"""Entries of `manage.py quarantine` that are looked at: each names a page of jobs, by its first."""


@dataclass(frozen=True, slots=True)
class Matter:
    """One open case, as a sentence about its job names it."""

    case_id: uuid.UUID
    kind: str
    effect_id: str
    effect: str

    @property
    def params(self) -> dict[str, Any]:
        return {"effect": self.effect, "effect_id": self.effect_id, "case_id": str(self.case_id)}


@dataclass(frozen=True, slots=True)
class Hold:
    """Who put a job on hold, when and why, as the audit has it."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True)
class Awaited:
    """What was found, by job."""

    matters: dict[uuid.UUID, list[Matter]] = field(default_factory=dict)
    holds: dict[uuid.UUID, Hold] = field(default_factory=dict)

    def conflict(self, job: Job) -> Matter | None:
        """Return a payload conflict of the job: it stands before what is merely unknown."""
        return self._first(job, CaseKind.CONFLICT)

    def unknown(self, job: Job) -> Matter | None:
        """Return an effect of the job whose outcome a person has to find out."""
        return self._first(job, CaseKind.UNKNOWN)

    def approval(self, job: Job) -> Matter | None:
        """Return a sending of the job that waits for a person's word."""
        return self._first(job, CaseKind.APPROVAL)

    def _first(self, job: Job, kind: CaseKind) -> Matter | None:
        return next((m for m in self.matters.get(job.id, ()) if m.kind == kind), None)


def of(jobs: Sequence[Job], *, using: str) -> Awaited:
    """Return what people are asked, and what they said, about jobs; no query where there can be nothing."""
    asked = [
        job.id
        for job in jobs
        if job.status == JobStatus.UNCERTAIN
        or (job.status == JobStatus.WAITING and job.wait_reason == WaitReason.APPROVAL)
    ]
    held = [job for job in jobs if job.hold_reason and job.status not in TERMINAL]
    return Awaited(_matters(asked, using), _holds(held, using))


def _matters(ids: list[uuid.UUID], using: str) -> dict[uuid.UUID, list[Matter]]:
    rows = Case.objects.using(using).filter(job_id__in=ids, closed_at=None).order_by("id")
    rows = rows.only("job_id", "kind", "effect_id", "effect_kind", "label", "amount", "currency")
    found: dict[uuid.UUID, list[Matter]] = {}
    for case in rows[: EACH * len(ids)]:
        found.setdefault(case.job_id, []).append(Matter(case.id, case.kind, case.effect_id, _named(case)))
    return found


def _named(case: Case) -> str:
    """Return an effect as people know it: its label and amount, else its kind."""
    name = case.label or (case.effect_kind if case.effect_kind != IMPLICIT else _("an outside effect"))
    amount = money(case.amount, case.currency)
    return f"{name} ({amount})" if amount else name


def _holds(jobs: list[Job], using: str) -> dict[uuid.UUID, Hold]:
    held = {str(job.id): job for job in jobs}
    entries = AuditEntry.objects.using(using).only("object_id", "actor", "at", "reason", "after")
    found: dict[uuid.UUID, Hold] = {}
    # By the index of the objects: what people did to these jobs, however much else the chain holds.
    rows = entries.filter(object_type="job", object_id__in=held, action="hold").order_by("-seq")
    for entry in rows[: EACH * len(jobs)]:
        job = held[entry.object_id]
        if _after(entry).get("hold_reason") == job.hold_reason:  # an earlier hold may have been lifted
            found.setdefault(job.id, Hold(entry.actor, entry.at, entry.reason))
    swept = {n for n, j in held.items() if j.hold_reason == HoldReason.QUARANTINE and j.id not in found}
    if swept:
        # One entry for a page of jobs in the order of their ids, under the first of them.
        sweeps = entries.filter(object_type="jobs", action="quarantine", object_id__lte=max(swept))
        for entry in sweeps.order_by("-object_id", "-seq")[:SWEEPS]:
            for name in swept.intersection(_after(entry).get("jobs", ())):
                found.setdefault(held[name].id, Hold(entry.actor, entry.at, entry.reason))
    return found


def _after(entry: AuditEntry) -> dict[str, Any]:
    """Return what an entry says of afterwards; nothing where somebody has tampered with it."""
    try:
        after = json.loads(entry.after)
    except ValueError:
        return {}
    return after if isinstance(after, dict) else {}
