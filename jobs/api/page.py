"""`/api/v1/docs`: the description of the API as a page, served from here alone; nothing in it is secret."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe


@never_cache
@require_safe
@ensure_csrf_cookie
def docs(request: HttpRequest) -> HttpResponse:
    """Answer with the page; who is logged in can try each operation as himself, others with a token."""
    return render(request, "api/docs.html")
