"""Error pages in the console's look: no query, no traceback, nothing of the request but what we chose."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone

from console import environment
from jobs.api.problems import Problem, is_safe, lost


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: the address or the form cannot be read."""
    return Problem("bad-request").response() if _is_api(request) else _page(400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403: the person lacks the permission."""
    return _page(403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, with our own sentence where a page raised one."""
    # What the resolver raises holds a dictionary, and none of it is for people.
    said = exception.args[0] if isinstance(exception, Http404) and exception.args else ""
    return _page(404, reason=said if isinstance(said, str) else "")


def broken(request: HttpRequest) -> HttpResponse:
    """Answer 500. The database may be what broke, so the page asks it nothing."""
    if _is_api(request):
        return lost("internal", safe=is_safe(request.method)).response()
    return _page(500)


def locked_out(
    request: HttpRequest, _answer: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """Answer 429: too many wrong passwords; says when the log-in opens again."""
    from axes.helpers import get_cool_off
    from axes.models import AccessAttempt

    name = (credentials or {}).get("username") or request.user.get_username()
    tried = AccessAttempt.objects.filter(username=name, ip_address=request.META.get("REMOTE_ADDR"))
    last = tried.order_by("-attempt_time").values_list("attempt_time", flat=True).first()
    now = timezone.now()
    opens_at = (last or now) + (get_cool_off(request) or timedelta())
    answer = _page(429, now=now, opens_at=max(now, opens_at))
    answer["Retry-After"] = str(max(1, int((opens_at - now).total_seconds())))
    return answer


def _is_api(request: HttpRequest) -> bool:
    """Whether a program asks: what fails before the API's own views is told to it in their words."""
    return request.path.startswith("/api/")


def _page(status: int, **context: Any) -> HttpResponse:
    html = render_to_string(f"{status}.html", {"environment": environment.word(), **context})
    return HttpResponse(html, status=status, headers={"Cache-Control": "no-store"})
