"""Error pages in the console's look: no query, no traceback, nothing of the request but what we chose."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string

from console import environment


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: the address or the form cannot be read."""
    return _page(400)


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
    return _page(500)


def _page(status: int, **context: Any) -> HttpResponse:
    html = render_to_string(f"{status}.html", {"environment": environment.word(), **context})
    return HttpResponse(html, status=status, headers={"Cache-Control": "no-store"})
