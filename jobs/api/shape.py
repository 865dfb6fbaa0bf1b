"""How a job looks from outside: fields by name, payloads redacted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jobs import handlers, redact
from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.schema import Schema
from jobs.models import Attempt, Job
from jobs.operations import reveal
from jobs.status import JobStatus

RECEIPT: dict[str, Schema] = {
    "id": schema.ID,
    "kind": schema.TEXT,
    "queue": schema.TEXT,
    "label": schema.TEXT,
    "tags": schema.rows(schema.TEXT),
    "status": schema.words(JobStatus),
    "priority": schema.WHOLE,
    "unique_key": schema.maybe(schema.TEXT),
    "unique_scope": schema.words(["unfinished", "ever"]),
    "parent_id": schema.maybe(schema.ID),
    "max_attempts": schema.WHOLE,
    "created_at": schema.INSTANT,
    "next_attempt_at": schema.maybe(schema.INSTANT),
    "deadline_at": schema.maybe(schema.INSTANT),
    "state_version": schema.WHOLE,
}
"""What somebody who may not read learns of a job that he enqueued or cancelled."""

LISTED: dict[str, Schema] = {
    **RECEIPT,
    "wait_reason": schema.TEXT,
    "hold_reason": schema.TEXT,
    "revision": schema.WHOLE,
    "concurrency_key": schema.maybe(schema.TEXT),
    "unmet_edges": schema.WHOLE,
    "open_effects": schema.WHOLE,
    "enqueued_by": schema.TEXT,
    "started_at": schema.maybe(schema.INSTANT),
    "finished_at": schema.maybe(schema.INSTANT),
    "worker_id": schema.maybe(schema.TEXT),
    "attempt_id": schema.maybe(schema.ID),
    "claim_generation": schema.WHOLE,
    "scheduler_epoch": schema.WHOLE,
    "attempt_count": schema.WHOLE,
    "attempts_excused": schema.WHOLE,
    "cancel_requested_at": schema.maybe(schema.INSTANT),
    "cancel_requested_by": schema.TEXT,
    "cancel_reason": schema.TEXT,
    "cancel_generation": schema.WHOLE,
    "error_code": schema.TEXT,
    "error_message": schema.TEXT,
    "result_commit_id": schema.maybe(schema.ID),
}
"""Only what `state_version` counts: with a heartbeat in it, one ETag would name two answers."""

FULL: dict[str, Schema] = {
    **LISTED,
    "arguments": schema.OBJECT,
    "input_digest": schema.maybe(schema.TEXT),
    "redacted": schema.FLAG,
    "result": schema.ANYTHING,
    "traceparent": schema.TEXT,
}


def receipt(job: Job) -> dict[str, Any]:
    """Return the little that every answer about one job holds."""
    return _fields(job, RECEIPT)


def job_in_list(job: Job) -> dict[str, Any]:
    """Return a job without its payload."""
    return _fields(job, LISTED)


def job_in_full(job: Job, caller: Caller) -> dict[str, Any]:
    """Return a job with input and result, redacted unless the caller may see payloads.

    What is revealed stands in the audit. The digest of a redacted input is withheld: of a short secret it is
    as good as the secret.
    """
    arguments, result = job.arguments, _result(job)
    hidden = handlers.hidden_paths(job.kind)
    # A handler may repeat in its result what was hidden in its input.
    shown = redact.mask(arguments, hidden)
    struck = redact.strike(redact.mask(result), redact.secrets_in(arguments, hidden))
    if caller.reveals and (shown, struck) != (arguments, result):
        with caller.door():
            reveal.reveal(job.pk, actor=caller.user, reason="asked for through the API")
    if caller.reveals:
        shown, struck = arguments, result
    return job_in_list(job) | {
        "arguments": shown,
        "input_digest": job.input_digest if shown == arguments else None,
        "redacted": shown != arguments,
        "result": struck,
        "traceparent": job.traceparent,
    }


def _fields(job: Job, names: Iterable[str]) -> dict[str, Any]:
    return {name: job.tag_list if name == "tags" else getattr(job, name) for name in names}


def _result(job: Job) -> Any:
    if job.result_commit_id is None:
        return None
    text = Attempt.objects.filter(pk=job.result_commit_id).values_list("result", flat=True).first()
    return json.loads(text) if text else None
