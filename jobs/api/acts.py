"""What an operator does to one job: each on the version that he saw, each with his reason."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import conditions, schema
from jobs.api.auth import Caller
from jobs.api.fields import Choice, Instant, Object, Reason, Strict
from jobs.api.shape import job_in_full
from jobs.api.view import View
from jobs.models import Job
from jobs.operations import jobwork


class ActBody(Strict):
    """The body of an act that takes a reason only."""

    reason = Reason()


class RetryBody(ActBody):
    """The body of a retry."""

    deadline_at = Instant(required=False)


class ReviseBody(ActBody):
    """The body of a revision."""

    arguments = Object()
    effects = Choice(["repeat_effects", "keep_effects"], required=False)


class Act(View):
    """One operation on one job; the answer is the job afterwards."""

    scopes: ClassVar[dict[str, str]] = {"POST": "ops"}
    bodies = {"POST": ActBody}
    conditions = {"POST": ("If-Match",)}
    answers = {"POST": {200: schema.ref("JobInFull")}}

    def post(self, request: Request, job_id: str) -> Response:
        caller = Caller.of(request)
        job = self.find(caller, job_id)
        body = self.body(request)
        seen = conditions.seen(request, caller, job)
        with caller.door(), conditions.telling_the_current(caller, job):
            self.act(job, {"actor": caller.user, "seen_version": seen, **body})
        job.refresh_from_db()
        return Response(job_in_full(job, caller), headers={"ETag": conditions.etag(job)})

    def act(self, job: Job, given: dict[str, Any]) -> object:
        raise NotImplementedError


class ForceCancelView(Act):
    """`/jobs/{id}/force-cancel`: take it away from whoever runs it; asks a recent log-in."""

    def act(self, job: Job, given: dict[str, Any]) -> object:
        return jobwork.force_cancel(job.pk, **given)


class RetryView(Act):
    """`/jobs/{id}/retry`: bring an ended job back with a fresh budget."""

    bodies = {"POST": RetryBody}

    def act(self, job: Job, given: dict[str, Any]) -> object:
        return jobwork.retry(job.pk, **given)


class ReviseView(Act):
    """`/jobs/{id}/revise`: give it another input."""

    bodies = {"POST": ReviseBody}

    def act(self, job: Job, given: dict[str, Any]) -> object:
        return jobwork.revise(job.pk, given.pop("arguments"), **given)


class HoldView(Act):
    """`/jobs/{id}/hold`: keep it from being claimed."""

    def act(self, job: Job, given: dict[str, Any]) -> object:
        return jobwork.hold(job.pk, **given)


class UnholdView(Act):
    """`/jobs/{id}/unhold`: lift a hold."""

    def act(self, job: Job, given: dict[str, Any]) -> object:
        return jobwork.unhold(job.pk, **given)
