"""What a person sets for himself: the time zone in which he reads times beside UTC."""

from __future__ import annotations

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django.db import transaction

from jobs.models import Preference
from jobs.operations import actor as people
from jobs.outcomes import Refused


@cache
def zones() -> list[str]:
    """Return the names of the zones that this machine knows, UTC first."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ["UTC", *sorted(places)]


def keep_zone(zone: str, *, actor: Any) -> None:
    """Keep a zone with the account; it takes no permission. Raises Refused ZONE_UNKNOWN."""
    if zone not in zones():
        raise Refused("ZONE_UNKNOWN", zone=zone[:64])
    with transaction.atomic():
        person = people.of(actor)
        Preference.objects.update_or_create(user=person.user, defaults={"zone": zone})


def zone_of(user: Any) -> str:
    """Return the zone that a person has chosen; empty where there is none, or this machine lacks it."""
    zone = Preference.objects.filter(user=user).values_list("zone", flat=True).first() or ""
    return zone if zone in zones() else ""
