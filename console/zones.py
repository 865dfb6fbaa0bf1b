"""The time zone in which a person also reads times; UTC is always said."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

from django.http import HttpRequest

KEY = "zone"


@cache
def known() -> list[str]:
    """Return the names of the zones that this machine knows, UTC first."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ["UTC", *sorted(places)]


def chosen(request: HttpRequest) -> str:
    """Return the zone that the person has chosen in this session; empty where none was."""
    session = getattr(request, "session", None)
    name = session.get(KEY, "") if session is not None else ""
    return name if name in known() else ""
