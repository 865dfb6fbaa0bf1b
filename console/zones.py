"""The time zone in which a person also reads times; UTC is always said."""

from __future__ import annotations

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest

from jobs.operations import preferences

KEY = "zone"


def chosen(request: HttpRequest) -> str:
    """Return the zone that the person has chosen; empty where none was.

    It is the account's, and read once for each session: another browser learns of a change at its log-in.
    """
    session = getattr(request, "session", None)
    if session is None or not request.user.is_authenticated:
        return ""
    name = session.get(KEY)
    if name is None:
        name = preferences.zone_of(request.user)
        if SESSION_KEY in session:  # one that has just ended must not begin anew by this
            session[KEY] = name
    return name if name in preferences.zones() else ""
