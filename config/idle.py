"""Ends a session that no person has used for a while, although its page goes on refreshing itself."""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

SEEN = "last_seen"
GRAIN = 60
PARTS = 10
"""A session that may be idle for a short while only is written more often: so many times in that while."""


class IdleSessionMiddleware:
    """Logs out a session left alone for SESSION_IDLE_SECONDS.

    Django's own sliding expiry would count the live parts of a page, which ask every few seconds, as a
    person, and would write the session on each of those requests.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Without a cookie there is nothing to end, and touching the session would start one for each probe.
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            if is_idle(request.session, now=time.time()):
                logout(request)
            elif not is_refresh(request):
                mark_seen(request.session, now=time.time())
        return self.get_response(request)


def is_idle(session: SessionBase, *, now: float) -> bool:
    """Return whether the last act of a person is too long ago."""
    return bool(now - session.get(SEEN, now) >= settings.SESSION_IDLE_SECONDS)


def is_refresh(request: HttpRequest) -> bool:
    """Return whether the page asked by itself: htmx polls with GET, and a link it boosts says so."""
    by_htmx = request.headers.get("HX-Request") == "true" and request.headers.get("HX-Boosted") != "true"
    return by_htmx and request.method == "GET"


def mark_seen(session: SessionBase, *, now: float) -> None:
    """Note the act, at most once a minute: a write for each page view would be felt on SQLite."""
    if now - session.get(SEEN, 0) >= min(GRAIN, settings.SESSION_IDLE_SECONDS // PARTS):
        session[SEEN] = int(now)
