"""What became of one job: attempts, effects, events, family, and the sentence that says why it is there."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.schema import FLAG, ID, INSTANT, OBJECT, TEXT, WHOLE, maybe, record
from jobs.api.view import View
from jobs.models import Job
from jobs.operations import dossier
from jobs.status import EffectStatus, JobStatus

ATTEMPT = record(
    {
        "id": ID,
        "generation": WHOLE,
        "revision": WHOLE,
        "status": TEXT,
        "worker_id": TEXT,
        "scheduler_epoch": WHOLE,
        "started_at": INSTANT,
        "staged_at": maybe(INSTANT),
        "finished_at": maybe(INSTANT),
        "traceparent": TEXT,
        "beats": WHOLE,
        "progress_done": maybe(WHOLE),
        "progress_total": maybe(WHOLE),
        "error_code": TEXT,
        "error_message": TEXT,
        "traceback": TEXT,
        "progress_note": TEXT,
        "log": TEXT,
    }
)
EFFECT = record(
    {
        "id": TEXT,
        "revision": WHOLE,
        "node_id": TEXT,
        "slot": TEXT,
        "kind": TEXT,
        "replay": TEXT,
        "status": schema.words(EffectStatus),
        "version": WHOLE,
        "in_conflict": FLAG,
        "grants": WHOLE,
        "granted_attempt_id": maybe(ID),
        "granted_at": maybe(INSTANT),
        "key_valid_until": maybe(INSTANT),
        "settle_by": maybe(INSTANT),
        "changed_at": INSTANT,
        "reference": TEXT,
    }
)
EVENT = record({"at": INSTANT, "verb": TEXT, "actor": TEXT, "reason": TEXT, "status": TEXT})
REFUSAL = record(
    {
        "at": INSTANT,
        "point": TEXT,
        "reason": TEXT,
        "worker_id": maybe(TEXT),
        "attempt_id": maybe(ID),
        "presented": OBJECT,
        "found": OBJECT,
        "text": TEXT,
    }
)
SUMMARY = record(
    {
        "id": ID,
        "kind": TEXT,
        "queue": TEXT,
        "label": TEXT,
        "tags": schema.rows(TEXT),
        "status": schema.words(JobStatus),
        "wait_reason": TEXT,
        "hold_reason": TEXT,
        "priority": WHOLE,
        "created_at": INSTANT,
    }
)


class Part(View):
    """One part of a job's history."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read"}

    def get(self, request: Request, job_id: str) -> Response:
        caller = Caller.of(request)
        return Response(self.part(self.find(caller, job_id), caller))

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        raise NotImplementedError


class AttemptsView(Part):
    """`/jobs/{id}/attempts`: its newest executions, oldest first."""

    answers = {"GET": {200: schema.listing(ATTEMPT)}}

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        return {"results": dossier.attempts(job)}


class EffectsView(Part):
    """`/jobs/{id}/effects`: what it did outside, or was to do."""

    answers = {"GET": {200: schema.listing(EFFECT)}}

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        return {"results": dossier.effects(job)}


class EventsView(Part):
    """`/jobs/{id}/events`: what people did to it, newest first, and which writes were refused."""

    answers = {"GET": {200: schema.listing(EVENT, refusals=schema.rows(REFUSAL))}}

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        return {"results": dossier.changes(job), "refusals": dossier.refusals(job)}


class LineageView(Part):
    """`/jobs/{id}/lineage`: its ancestors and its children."""

    answers = {
        "GET": {
            200: record({"ancestors": schema.rows(SUMMARY), "children": schema.rows(SUMMARY), "more": FLAG})
        }
    }

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        return dossier.lineage(job, caller.jobs())


class ExplainView(Part):
    """`/jobs/{id}/explain`: why it is where it is: a stable code, its parameters, and the sentence."""

    answers = {"GET": {200: record({"code": TEXT, "params": OBJECT, "text": TEXT})}}

    def part(self, job: Job, caller: Caller) -> dict[str, Any]:
        return dossier.explained(job)
