"""All that is known of one job, for people: secrets masked, every part bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Max, Model, QuerySet

from jobs import handlers, redact
from jobs.explain import explain
from jobs.models import Attempt, Change, EffectSlot, FenceRefusal, Job
from jobs.sentences import sentence

Row = TypeVar("Row", bound=Model)
SHOWN = 50
"""Newest rows shown of each part."""
CHANGES = 50_000
"""The feed has no index by job: so many of its newest rows are looked at."""

SUMMARY = (
    *(
        "id",
        "kind",
        "queue",
        "label",
        "tags",
        "status",
        "wait_reason",
        "hold_reason",
        "priority",
        "created_at",
    ),
)
JOB = (
    *SUMMARY,
    "state_version",
    "enqueued_by",
    "unique_key",
    "concurrency_key",
    "parent_id",
    "revision",
    "next_attempt_at",
    "deadline_at",
    "started_at",
    "finished_at",
    "worker_id",
    "attempt_id",
    "claim_generation",
    "scheduler_epoch",
    "lease_expires_at",
    "heartbeat_at",
    "attempt_count",
    "attempts_excused",
    "max_attempts",
    "open_effects",
    "unmet_edges",
    "cancel_requested_at",
    "cancel_requested_by",
    "cancel_reason",
    "cancel_generation",
    "error_code",
    "result_commit_id",
    "traceparent",
)
ATTEMPT = (
    "id",
    "generation",
    "revision",
    "status",
    "worker_id",
    "scheduler_epoch",
    "started_at",
    "staged_at",
    "finished_at",
    "beats",
    "progress_done",
    "progress_total",
    "error_code",
    "traceparent",
)
EFFECT = (
    "id",
    "revision",
    "node_id",
    "slot",
    "kind",
    "replay",
    "status",
    "version",
    "in_conflict",
    "grants",
    "granted_attempt_id",
    "granted_at",
    "key_valid_until",
    "settle_by",
    "changed_at",
)
REFUSAL = ("at", "point", "reason", "worker_id", "attempt_id", "presented", "found")


def summary(job: Job) -> dict[str, Any]:
    """Return what one line of a list says."""
    return _fields(job, SUMMARY) | {"tags": job.tag_list}


def dossier(job: Job) -> dict[str, Any]:
    """Return the job's row, input, result, attempts, effects, refused writes and what people did to it."""
    veil = _Veil(job)
    return {
        **_fields(job, JOB),
        "tags": job.tag_list,
        "explain": explained(job, veil),
        "error_message": veil.text(job.error_message),
        "input": veil.input,
        "result": _result(job, veil),
        "attempts": attempts(job, veil),
        "effects": effects(job, veil),
        "refusals": refusals(job),
        "changes": changes(job),
    }


def attempts(job: Job, veil: _Veil | None = None) -> list[dict[str, Any]]:
    """Return the job's newest attempts, oldest of them first."""
    veil = veil or _Veil(job)
    return [_attempt(row, veil) for row in _newest(Attempt.objects.filter(job=job), "-generation")]


def effects(job: Job, veil: _Veil | None = None) -> list[dict[str, Any]]:
    """Return what the job did outside, or was to do; the slot that changed last is the last one."""
    veil = veil or _Veil(job)
    return [
        _fields(row, EFFECT) | {"reference": veil.text(row.reference)}
        for row in _newest(EffectSlot.objects.filter(job=job), "-changed_at")
    ]


def refusals(job: Job) -> list[dict[str, Any]]:
    """Return the newest writes that were refused, oldest of them first."""
    return [_refusal(row) for row in _newest(FenceRefusal.objects.filter(job_id=job.id), "-id")]


def lineage(job: Job, jobs: QuerySet[Job]) -> dict[str, Any]:
    """Return the job's ancestors, nearest first, and its children, newest first, as far as `jobs` has them.

    `more` says that there are more children than are told.
    """
    ancestors: list[Job] = []
    parent_id = job.parent_id
    while parent_id and len(ancestors) < SHOWN:
        parent = jobs.filter(pk=parent_id).first()
        if parent is None:
            break
        ancestors.append(parent)
        parent_id = parent.parent_id
    children = list(jobs.filter(parent_id=job.pk).order_by("-id")[: SHOWN + 1])
    return {
        "ancestors": [summary(one) for one in ancestors],
        "children": [summary(one) for one in children[:SHOWN]],
        "more": len(children) > SHOWN,
    }


def explained(job: Job, veil: _Veil | None = None) -> dict[str, Any]:
    """Return why the job is where it is: code, parameters and the one sentence."""
    about, veil = explain(job), veil or _Veil(job)
    return {"code": about.code, "params": veil.value(about.params), "text": veil.text(about.text)}


class _Veil:
    """Masks what the kind declares as secret, and what looks like a secret, in all that a job has written."""

    def __init__(self, job: Job) -> None:
        paths = handlers.hidden_paths(job.kind)
        self.secrets = redact.secrets_in(job.arguments, paths)
        self.input = redact.mask(job.arguments, paths)

    def value(self, value: Any) -> Any:
        return redact.strike(redact.mask(value), self.secrets)

    def text(self, text: str) -> str:
        limit = settings.INTERLOCK["TRACEBACK_BYTES"]
        return redact.clean(text, limit=limit, secrets=self.secrets) if text else ""


def _attempt(attempt: Attempt, veil: _Veil) -> dict[str, Any]:
    texts = ("error_message", "traceback", "progress_note", "log")
    return _fields(attempt, ATTEMPT) | {name: veil.text(getattr(attempt, name)) for name in texts}


def _refusal(refusal: FenceRefusal) -> dict[str, Any]:
    # The digest of a short secret is as good as the secret.
    presented = {name: value for name, value in refusal.presented.items() if name != "input_digest"}
    return _fields(refusal, REFUSAL) | {"presented": presented, "text": sentence(refusal.reason, {})}


def _result(job: Job, veil: _Veil) -> Any:
    committed = Attempt.objects.filter(pk=job.result_commit_id).first() if job.result_commit_id else None
    return veil.value(json.loads(committed.result)) if committed and committed.result else None


def changes(job: Job) -> list[dict[str, Any]]:
    """Return what people did, newest first; what workers did is told by the attempts."""
    newest = Change.objects.aggregate(newest=Max("id"))["newest"] or 0
    rows = (
        Change.objects.filter(id__gt=newest - CHANGES, at__gte=job.created_at)
        .exclude(actor="")
        .order_by("-id")
        .iterator(chunk_size=500)
    )
    found = []
    for row in rows:
        status = next((entry[1] for entry in row.jobs if entry[0] == job.id.hex), None)
        if status is not None:
            found.append(_fields(row, ("at", "verb", "actor", "reason")) | {"status": status})
            if len(found) == SHOWN:
                break
    return found


def _newest(rows: QuerySet[Row], order: str) -> list[Row]:
    return list(rows.order_by(order)[:SHOWN])[::-1]


def _fields(row: Model, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
