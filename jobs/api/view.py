"""What every view of the API has in common, and what it says of itself for docs/openapi.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs import traceparent
from jobs.api import filters, limits
from jobs.api.auth import Caller
from jobs.api.fields import Strict, parse_uuid
from jobs.api.problems import Problem
from jobs.api.schema import Schema
from jobs.models import Job


class View(APIView):
    """A view of this API: its scopes by method, its body limited before anybody reads it.

    By method: `bodies` are checked by `body`, `queries` are the names that the address may carry (others are
    refused before the view is asked), `answers` what it answers with by status. `conditions` are the headers
    that it reads. A view without them is described as one that may answer anything. Of several scopes any one
    lets in; the view then asks for the one that it takes.
    """

    scopes: ClassVar[Mapping[str, str | tuple[str, ...]]] = {}
    bodies: ClassVar[dict[str, type[Strict]]] = {}
    queries: ClassVar[dict[str, dict[str, Schema]]] = {}
    answers: ClassVar[dict[str, dict[int, Schema]]] = {}
    needed: ClassVar[tuple[str, ...]] = ()
    """Those of `queries` that the address must carry."""
    conditions: ClassVar[dict[str, tuple[str, ...]]] = {}
    cluster: ClassVar[bool] = False
    """Whether it is about the whole cluster, which a token limited to some queues has no part in."""
    # Neither OPTIONS nor TRACE: the first would tell only what Allow tells, the second what was sent.
    http_method_names = ["get", "head", "post", "patch", "put", "delete"]
    body_limit: ClassVar[str] = "BODY_BYTES"
    extra_depth: ClassVar[int] = 1
    """Levels of a body around the arguments of a job."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        limits.check_body(request, limit=settings.INTERLOCK[self.body_limit])
        super().initial(request, *args, **kwargs)
        if self.cluster and (token := Caller.of(request).token) is not None and token.queues:
            raise Problem(
                "forbidden", _("A token that is limited to queues has no part in the whole cluster.")
            )
        filters.garbled(request.query_params, request.META.get("QUERY_STRING", ""))
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in self.queries:
            filters.unknown(request.query_params)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        # What one caller may see is not for a cache that serves another.
        answer.headers.setdefault("Cache-Control", "private, no-cache")
        if trace := self.trace_of(request):
            answer.headers["traceparent"] = trace
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        """Return what the body says; raises ValidationError naming every member that is wrong."""
        given = self.bodies[str(request.method)](data=request.data)
        given.is_valid(raise_exception=True)
        if request.META.get("CONTENT_LENGTH", "0") in ("", "0"):
            # REST framework reads nothing as an empty object; nothing is what a broken client sends.
            raise Problem("invalid-body", errors=[{"pointer": "", "detail": _("An object is needed here.")}])
        return dict(given.validated_data)

    @staticmethod
    def trace_of(request: Any) -> str:
        """Return the request's traceparent; one that is none is as good as absent (W3C Trace Context)."""
        return traceparent.parse(request.META.get("HTTP_TRACEPARENT"))

    @staticmethod
    def find(caller: Caller, job_id: str) -> Job:
        """Return a job that exists for this caller; raises NotFound, also for an id that is none."""
        key = parse_uuid(job_id)
        job: Job | None = caller.jobs().filter(pk=key).first() if key else None
        if job is None:
            raise NotFound
        return job
