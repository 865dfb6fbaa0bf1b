"""Errors as problem+json (RFC 9457): one table of codes, one handler (see docs/api.md).

`outcome` tells a client what became of its request: `not_started` when nothing was written, `unknown` when
only asking again (with the same Idempotency-Key) can tell, `applied` when it had taken place before.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from rest_framework import exceptions

from jobs.api.strictjson import pointer, printable
from jobs.ledger.outage import is_outage
from jobs.outcomes import InvalidJob, Refused

log = logging.getLogger("interlock.api")
MEDIA_TYPE = "application/problem+json"
TYPE = "urn:interlock:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of problem: its HTTP status, its title, and whether the same request may succeed later."""

    status: int
    title: str
    retryable: bool = False


KINDS: dict[str, Kind] = {
    "invalid-body": Kind(400, gettext_noop("The body is not what was asked for.")),
    "invalid-query": Kind(400, gettext_noop("The query is not what was asked for.")),
    "invalid-header": Kind(400, gettext_noop("A header is not what was asked for.")),
    "bad-request": Kind(400, gettext_noop("The request cannot be read.")),
    "not-authenticated": Kind(401, gettext_noop("Say who you are.")),
    "forbidden": Kind(403, gettext_noop("You may not do this.")),
    "not-found": Kind(404, gettext_noop("There is nothing here.")),
    "method-not-allowed": Kind(405, gettext_noop("This cannot be done here.")),
    "not-acceptable": Kind(406, gettext_noop("The answer is JSON.")),
    "key-conflict": Kind(409, gettext_noop("The key belongs to a job with another input.")),
    "already-ended": Kind(409, gettext_noop("The job has already ended.")),
    "parent-cancelled": Kind(409, gettext_noop("The parent is cancelled.")),
    "fenced": Kind(409, gettext_noop("The lease is not yours any more: stop, and send nothing more.")),
    "cancelled": Kind(409, gettext_noop("A cancel was requested: acknowledge it.")),
    "stale-input": Kind(409, gettext_noop("The input was revised: release the job.")),
    "worker-ended": Kind(409, gettext_noop("This worker was fenced or has stopped: start under a new id.")),
    "refused": Kind(409, gettext_noop("The job's state does not allow this.")),
    "cursor-gone": Kind(410, gettext_noop("The cursor is of another life of this database.")),
    "length-required": Kind(411, gettext_noop("The length of the body is not known.")),
    "stale": Kind(412, gettext_noop("It has changed since you looked.")),
    "body-too-large": Kind(413, gettext_noop("The body is too long.")),
    "unsupported-media-type": Kind(415, gettext_noop("The body is of another type.")),
    "precondition-required": Kind(428, gettext_noop("Say in If-Match which version you saw.")),
    "throttled": Kind(429, gettext_noop("Too many requests."), retryable=True),
    "internal": Kind(500, gettext_noop("Something went wrong on our side.")),
    "unavailable": Kind(503, gettext_noop("The database cannot be reached or is busy."), retryable=True),
}

_BY_STATUS = {
    400: "bad-request",
    401: "not-authenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "body-too-large",
    415: "unsupported-media-type",
    429: "throttled",
}
_REFUSED = {
    "NOT_FOUND": "not-found",
    "CASE_NOT_FOUND": "not-found",
    "PROPOSAL_NOT_FOUND": "not-found",
    "PLAN_NOT_FOUND": "not-found",
    "RAISE_UNKNOWN": "not-found",
    "WORKER_UNKNOWN": "not-found",
    "ALREADY_ENDED": "already-ended",
    "PARENT_CANCELLED": "parent-cancelled",
    "KEY_CONFLICT": "key-conflict",
    "KEY_CONTENDED": "unavailable",
    "SCHEDULER_HELD": "unavailable",
    "NOT_PERMITTED": "forbidden",
    "USER_INACTIVE": "forbidden",
    "USER_UNKNOWN": "forbidden",
    "LOGIN_NOT_RECENT": "forbidden",
    "SELF_APPROVAL": "forbidden",
    "VERSION": "stale",
    "MOVED": "stale",
    "EPOCH_MOVED": "stale",
}
_MEMBERS = {
    "REASON_MISSING": "reason",
    "REASON_TOO_LONG": "reason",
    "COMMENT_MISSING": "text",
    "COMMENT_TOO_LONG": "text",
    "PLAN_FILTER_EMPTY": "filters",
    "PLAN_NOT_TYPED": "typed",
    "MINUTES": "minutes",
    "PARK_PAST": "until",
    "PARK_FAR": "until",
    "VERDICT_UNKNOWN": "verdict",
    "REASON_CODE": "reason_code",
    "REFERENCE_TOO_LONG": "reference",
    "REFERENCE_FORMAT": "reference",
    "RESPONSE_INVALID": "response",
    "ARGUMENTS_MISSING": "arguments",
    "ARGUMENTS_INVALID": "arguments",
}
"""Refusals of what was given, by the member of the body that is wrong."""


class Problem(exceptions.APIException):
    """An error that is answered as problem+json; `more` are members of its own."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        errors: list[dict[str, str]] | None = None,
        outcome: str = "not_started",
        **more: Any,
    ) -> None:
        self.status_code = KINDS[code].status
        self.problem = code
        self.errors = errors or []
        self.outcome = outcome
        self.more = more
        super().__init__(detail or "; ".join(e["detail"] for e in self.errors) or _(KINDS[code].title), code)

    def response(self) -> HttpResponse:
        """Return the answer."""
        kind = KINDS[self.problem]
        body = {
            "type": TYPE + self.problem,
            "title": _(kind.title),
            "status": kind.status,
            "code": self.problem,
            "detail": printable(str(self.detail)),
            "retryable": kind.retryable,
            "outcome": self.outcome,
            "errors": self.errors,
            **self.more,
        }
        # ASCII only: whatever a caller sent and is told about can be written.
        answer = HttpResponse(json.dumps(body, default=str), content_type=MEDIA_TYPE, status=kind.status)
        answer["Cache-Control"] = "no-store"
        return answer


def handle(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Answer any exception of a view; what nobody expected is logged with its traceback and says nothing."""
    request = context.get("request")
    problem = _problem(error, safe=request is None or is_safe(request.method))
    if problem.status_code >= 500:
        log.error("request failed", exc_info=error, extra={"problem": problem.problem})
    answer = problem.response()
    if header := getattr(error, "auth_header", None):
        answer["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        answer["Retry-After"] = str(math.ceil(wait))
    elif problem.status_code == 503:
        answer["Retry-After"] = "1"
    return answer


def _problem(error: Exception, *, safe: bool) -> Problem:
    match error:
        case Problem():
            return error
        case InvalidJob(field=field, problem=text):
            return Problem("invalid-body", errors=[{"pointer": f"/{field}", "detail": text}])
        case Refused():
            return refused(error)
        case exceptions.ValidationError():
            return Problem("invalid-body", errors=flatten(error.detail, ""))
        case exceptions.APIException():
            return Problem(_BY_STATUS.get(error.status_code, "internal"), str(error.detail))
        case Http404():
            return Problem("not-found")
        case PermissionDenied():
            return Problem("forbidden")
        case RequestDataTooBig():
            return Problem("body-too-large")
        case SuspiciousOperation() | BadRequest() | MultiPartParserError():
            return Problem("bad-request")
        case _ if is_outage(error):
            # The connection may have been lost while the commit was on its way.
            return lost("unavailable", safe=safe)
    return lost("internal", safe=safe)


def lost(problem: str, *, safe: bool) -> Problem:
    """Return a problem in the middle of a request: how far one came that changes something, nobody knows."""
    return Problem(problem, outcome="not_started" if safe else "unknown")


def is_safe(method: str | None) -> bool:
    """Whether requests of this method change nothing."""
    return method in ("GET", "HEAD", "OPTIONS")


def refused(error: Refused, **more: Any) -> Problem:
    """Return the problem of a verb that was refused, with the refusal's own code and parameters."""
    member = _MEMBERS.get(error.code)
    code = "invalid-body" if member else _REFUSED.get(error.code, "refused")
    errors = [{"pointer": f"/{member}", "detail": str(error)}] if member else None
    return Problem(code, str(error), errors=errors, refusal=error.code, params=error.params, **more)


def flatten(detail: Any, at: str) -> list[dict[str, str]]:
    """Return a serializer's errors as JSON pointers."""
    if isinstance(detail, dict):
        return [
            entry
            for key, part in detail.items()
            for entry in flatten(part, at if key == "non_field_errors" else pointer(at, key))
        ]
    if isinstance(detail, list):
        return [entry for part in detail for entry in flatten(part, at)]
    return [{"pointer": at, "detail": str(detail)}]
