"""How a job looks from outside: fields by name, payloads redacted (bug S76)."""

from __future__ import annotations

import json
from typing import Any

from jobs import handlers, redact
from jobs.api.auth import Caller
from jobs.models import Attempt, Job

RECEIPT = (
    "id",
    "kind",
    "queue",
    "label",
    "status",
    "priority",
    "unique_key",
    "unique_scope",
    "parent_id",
    "max_attempts",
    "created_at",
    "next_attempt_at",
    "deadline_at",
    "state_version",
)
"""What somebody who may not read learns of a job that he enqueued or cancelled."""

LISTED = (
    *RECEIPT,
    "wait_reason",
    "hold_reason",
    "revision",
    "concurrency_key",
    "unmet_edges",
    "open_effects",
    "enqueued_by",
    "started_at",
    "finished_at",
    "worker_id",
    "attempt_id",
    "claim_generation",
    "scheduler_epoch",
    "attempt_count",
    "attempts_excused",
    "cancel_requested_at",
    "cancel_requested_by",
    "cancel_reason",
    "cancel_generation",
    "error_code",
    "error_message",
    "result_commit_id",
)
"""Only what `state_version` counts: with a heartbeat in it, one ETag would name two answers."""


def receipt(job: Job) -> dict[str, Any]:
    """Return the little that every answer about one job holds."""
    return {name: getattr(job, name) for name in RECEIPT}


def job_in_list(job: Job) -> dict[str, Any]:
    """Return a job without its payload."""
    return {name: getattr(job, name) for name in LISTED}


def job_in_full(job: Job, caller: Caller) -> dict[str, Any]:
    """Return a job with input and result, redacted unless the caller may see payloads.

    The digest of a redacted input is withheld: of a short secret it is as good as the secret.
    """
    arguments = job.arguments
    shown = arguments if caller.reveals else redact.mask(arguments, hidden_paths(job.kind))
    return job_in_list(job) | {
        "arguments": shown,
        "input_digest": job.input_digest if shown == arguments else None,
        "redacted": shown != arguments,
        "result": _result(job, arguments, reveals=caller.reveals),
    }


def hidden_paths(kind: str) -> tuple[str, ...]:
    """Return what the kind declares as not for people's eyes."""
    handler = handlers.find(kind)
    return handler.redact if handler else ()


def _result(job: Job, arguments: Any, *, reveals: bool) -> Any:
    if job.result_commit_id is None:
        return None
    text = Attempt.objects.filter(pk=job.result_commit_id).values_list("result", flat=True).first()
    result = json.loads(text) if text else None
    if reveals:
        return result
    # A handler may repeat in its result what was hidden in its input.
    return redact.strike(redact.mask(result), redact.secrets_in(arguments, hidden_paths(job.kind)))
