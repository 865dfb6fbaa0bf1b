"""Jobs over HTTP: enqueue, list, look, cancel (see docs/api.md)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponseBase
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import conditions, filters, paging, schema, waiting
from jobs.api.auth import Caller
from jobs.api.enqueue import EnqueueBody, enqueue
from jobs.api.fields import Reason, Strict
from jobs.api.paging import PARAMETERS, Paging
from jobs.api.problems import Problem
from jobs.api.shape import RECEIPT, job_in_full, job_in_list, receipt
from jobs.api.view import View
from jobs.ledger.reading import reading
from jobs.models import Job
from jobs.operations import jobwork
from jobs.status import JobStatus

COUNT = schema.record({"value": schema.WHOLE, "exact": schema.FLAG})
LIST = paging.answer(schema.ref("Job"))
LIST["properties"]["count"] = COUNT  # only if asked for
ENQUEUED = schema.record(RECEIPT, created=schema.FLAG)


class JobsView(View):
    """`/jobs`: list and enqueue."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read", "POST": "jobs:enqueue"}
    bodies = {"POST": EnqueueBody}
    queries = {"GET": paging.parameters(filters.described(filters.JobFilter))}
    conditions = {"POST": ("Idempotency-Key", "traceparent")}
    answers = {
        "GET": {200: LIST},
        "POST": {201: ENQUEUED, 200: ENQUEUED},
    }

    def get(self, request: Request) -> Response:
        caller = Caller.of(request)
        asked_for = filters.read(caller.jobs(), request.query_params, besides=PARAMETERS)
        asked = Paging.of(request.query_params)
        with reading(Job.objects.db):
            jobs, scope = asked_for.walked()
            page = asked.page(jobs, scope)
            counted = {"count": asked.count(jobs, scope)} if asked.counts else {}
        return Response(page.document(request.path, job_in_list) | counted)

    def post(self, request: Request) -> Response:
        given, header = self.body(request), request.META.get("HTTP_IDEMPOTENCY_KEY")
        job, created = enqueue(Caller.of(request), given, header, self.trace_of(request))
        return Response(
            receipt(job) | {"created": created},
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
            headers={"Location": f"{request.path}/{job.id}"},
        )


class JobView(View):
    """`/jobs/{id}`: one job, with a strong ETag; `wait` asks to be told of its next version."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read"}
    queries = {"GET": {"wait": waiting.parameter()}}
    conditions = {"GET": ("If-None-Match",)}
    answers = {"GET": {200: schema.ref("JobInFull")}}

    def get(self, request: Request, job_id: str) -> Response:
        filters.unknown(request.query_params, ("wait",))
        seconds = waiting.asked(request.query_params)
        caller = Caller.of(request)
        job = self.find(caller, job_id)
        if seconds and (
            "HTTP_IF_NONE_MATCH" not in request.META or conditions.has(request, conditions.etag(job))
        ):
            known = job.state_version

            def changed() -> tuple[dict[str, Any], str] | None:
                # The whole answer: a hundred who are told at once must not open a connection each to read it.
                found = caller.jobs().filter(pk=job.pk).exclude(state_version=known).first()
                return (job_in_full(found, caller), conditions.etag(found)) if found else None

            if told := waiting.wait_for(changed, seconds, caller.token, request):
                return Response(told[0], headers={"ETag": told[1]})
        headers = {"ETag": conditions.etag(job)}
        if conditions.has(request, conditions.etag(job)):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
        return Response(job_in_full(job, caller), headers=headers)


class CancelBody(Strict):
    """The body of a cancel."""

    reason = Reason()


class CancelView(View):
    """`/jobs/{id}/cancel`: ask for the end of a job and of its descendants."""

    scopes: ClassVar[dict[str, str]] = {"POST": "jobs:cancel"}
    bodies = {"POST": CancelBody}
    conditions = {"POST": ("If-Match",)}
    answers = {
        "POST": dict.fromkeys(
            (200, 202), schema.record(RECEIPT, cancel=schema.words(["cancelled", "requested"]))
        )
    }

    def post(self, request: Request, job_id: str) -> Response:
        caller = Caller.of(request)
        job = self.find(caller, job_id)
        reason = self.body(request)["reason"]
        seen = conditions.seen(request, caller, job, needed=False)
        with caller.door(), conditions.telling_the_current(caller, job):
            after = jobwork.cancel(job.pk, actor=caller.user, reason=reason, seen_version=seen)
        over = after == JobStatus.CANCELLED
        job.refresh_from_db()
        return Response(
            receipt(job) | {"cancel": "cancelled" if over else "requested"},
            # Requested is not done: whoever runs the job stops at its next safe point.
            status=status.HTTP_200_OK if over else status.HTTP_202_ACCEPTED,
            headers={"ETag": conditions.etag(job)},
        )


class NothingHere(View):
    """Every other address below /api/v1/."""

    permission_classes = ()
    schema = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return Problem("not-found").response()
