"""What a person does to one job: one function for every door (contract §3, §7).

Each reads the account again, asks its permission, uses its verb and leaves its audit entry, in one
transaction. `actor` is a Django user; `seen_version` the `state_version` that he saw, None where he saw none
and the verb does without. Each raises Refused NOT_PERMITTED, NOT_FOUND, VERSION, REASON_MISSING beside what
its verb raises (jobs/verbs/person.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction

from jobs.manager import JobManager
from jobs.models import Job
from jobs.operations.actor import CANCEL, FORCE_CANCEL, HOLD, RETRY, REVISE, admit
from jobs.status import JobStatus
from jobs.verbs.base import need_reason


def cancel(
    job_id: uuid.UUID,
    *,
    actor: Any,
    reason: str,
    seen_version: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> JobStatus:
    """End a job and its descendants, or ask who runs it to stop; returns its status afterwards."""
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, CANCEL).signature
        return _jobs(using).cancel(job_id, actor=by, reason=reason, state_version=seen_version)


def force_cancel(
    job_id: uuid.UUID, *, actor: Any, reason: str, seen_version: int, using: str = DEFAULT_DB_ALIAS
) -> JobStatus:
    """Take a job away from whoever runs it; asks a recent log-in. Returns `cancelled` or `uncertain`."""
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, FORCE_CANCEL, recent=True).signature
        return _jobs(using).force_cancel(job_id, actor=by, reason=reason, state_version=seen_version)


def retry(
    job_id: uuid.UUID,
    *,
    actor: Any,
    reason: str,
    seen_version: int,
    deadline_at: datetime | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> JobStatus:
    """Bring an ended job back with a fresh budget; returns its status."""
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, RETRY).signature
        return _jobs(using).retry(
            job_id, actor=by, reason=reason, state_version=seen_version, deadline_at=deadline_at
        )


def revise(
    job_id: uuid.UUID,
    arguments: Mapping[str, Any],
    *,
    actor: Any,
    reason: str,
    seen_version: int,
    effects: str = "",
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Give a job another input; returns its new revision."""
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, REVISE).signature
        return _jobs(using).revise(
            job_id, arguments, actor=by, reason=reason, state_version=seen_version, effects=effects
        )


def hold(
    job_id: uuid.UUID,
    *,
    actor: Any,
    reason: str,
    seen_version: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> bool:
    """Keep a job from being claimed until `unhold`; False when it is held so already."""
    with transaction.atomic(using):
        by = admit(actor, HOLD).signature
        return _jobs(using).hold(job_id, actor=by, reason=reason, state_version=seen_version)


def unhold(
    job_id: uuid.UUID,
    *,
    actor: Any,
    reason: str,
    seen_version: int | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> bool:
    """Lift a hold; False when there was none."""
    with transaction.atomic(using):
        by = admit(actor, HOLD).signature
        return _jobs(using).unhold(job_id, actor=by, reason=reason, state_version=seen_version)


def _jobs(using: str) -> JobManager:
    verbs: JobManager = Job.objects.db_manager(using)
    return verbs
