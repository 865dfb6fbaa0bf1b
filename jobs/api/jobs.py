"""Jobs over HTTP: enqueue, list, look, cancel (see docs/api.md)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api import filters, limits
from jobs.api.auth import Caller
from jobs.api.enqueue import enqueue
from jobs.api.fields import Strict, Text, parse_uuid
from jobs.api.paging import PARAMETERS, Paging
from jobs.api.problems import Problem
from jobs.api.shape import job_in_full, job_in_list, receipt
from jobs.ledger.reading import reading
from jobs.models import Job
from jobs.operations import jobwork
from jobs.status import JobStatus


class View(APIView):
    """A view of this API: its scopes by method, its body limited before anybody reads it."""

    scopes: ClassVar[dict[str, str]] = {}
    metadata_class = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        limits.check_body(request, limit=settings.INTERLOCK["BODY_BYTES"])
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        # What one caller may see is not for a cache that serves another.
        answer.headers.setdefault("Cache-Control", "private, no-cache")
        return answer

    @staticmethod
    def find(caller: Caller, job_id: str) -> Job:
        """Return a job that exists for this caller; raises NotFound, also for an id that is none."""
        key = parse_uuid(job_id)
        job: Job | None = caller.jobs().filter(pk=key).first() if key else None
        if job is None:
            raise NotFound
        return job


class JobsView(View):
    """`/jobs`: list and enqueue."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read", "POST": "jobs:enqueue"}

    def get(self, request: Request) -> Response:
        caller = Caller.of(request)
        jobs = filters.narrow(caller.jobs(), request.query_params, besides=PARAMETERS)
        paging = Paging.of(request.query_params)
        with reading(jobs.db):
            page = paging.page(jobs)
            counted = {"count": paging.count(jobs)} if paging.counts else {}
        return Response(
            {
                "results": [job_in_list(job) for job in page.rows],
                "next": f"{request.path}?{page.next_query}" if page.next_query else None,
                **counted,
            }
        )

    def post(self, request: Request) -> Response:
        filters.unknown(request.query_params)
        job, created = enqueue(Caller.of(request), request.data, request.META.get("HTTP_IDEMPOTENCY_KEY"))
        return Response(
            receipt(job) | {"created": created},
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
            headers={"Location": f"{request.path}/{job.id}"},
        )


class JobView(View):
    """`/jobs/{id}`: one job, with a strong ETag."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read"}

    def get(self, request: Request, job_id: str) -> Response:
        filters.unknown(request.query_params)
        caller = Caller.of(request)
        job = self.find(caller, job_id)
        etag = f'"{job.state_version}"'
        headers = {"ETag": etag}
        if _matches(request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
        return Response(job_in_full(job, caller), headers=headers)


class CancelBody(Strict):
    """The body of a cancel."""

    reason = Text()


class CancelView(View):
    """`/jobs/{id}/cancel`: ask for the end of a job and of its descendants."""

    scopes: ClassVar[dict[str, str]] = {"POST": "jobs:cancel"}

    def post(self, request: Request, job_id: str) -> Response:
        filters.unknown(request.query_params)
        caller = Caller.of(request)
        job = self.find(caller, job_id)
        body = CancelBody(data=request.data)
        body.is_valid(raise_exception=True)
        reason = body.validated_data["reason"]
        if not reason.strip():
            raise Problem(
                "invalid-body", errors=[{"pointer": "/reason", "detail": _("Say why, in your own words.")}]
            )
        if len(reason) > 1000:
            raise Problem(
                "invalid-body",
                errors=[{"pointer": "/reason", "detail": _("A reason has at most 1000 characters.")}],
            )
        with caller.door():
            after = jobwork.cancel(job.pk, actor=caller.user, reason=reason)
        over = after == JobStatus.CANCELLED
        job.refresh_from_db()
        return Response(
            receipt(job) | {"cancel": "cancelled" if over else "requested"},
            # Requested is not done: whoever runs the job stops at its next safe point.
            status=status.HTTP_200_OK if over else status.HTTP_202_ACCEPTED,
        )


class NothingHere(View):
    """Every other address below /api/v1/."""

    permission_classes = ()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return Problem("not-found").response()


def _matches(header: str, etag: str) -> bool:
    """Return whether If-None-Match names our tag; a weak form of it means the same bytes here."""
    return header.strip() == "*" or etag in [part.strip().removeprefix("W/") for part in header.split(",")]
