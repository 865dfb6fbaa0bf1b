"""What people and programs narrow lists of jobs by: console and API mean the same by the same word."""

from __future__ import annotations

import re
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

AGE = re.compile(r"([<>]?)\s*([0-9]{1,5})\s*([smhd])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_HEX = re.compile(r"[0-9a-f]{4,32}", re.ASCII)
OLDEST = timedelta(days=100 * 365)
ANY = "any"


def age(text: str) -> tuple[bool, timedelta] | None:
    """Return (older, length) of `24h`, `<24h` or `>7d`; None for what is none."""
    match = AGE.fullmatch(text.strip())
    return (match[1] == ">", timedelta(seconds=int(match[2]) * _UNITS[match[3]])) if match else None


def of_age(given: tuple[bool, timedelta], now: datetime) -> Q:
    """Enqueued before, or after, an instant that lies so far back."""
    older, length = given
    return Q(created_at__lte=now - length) if older else Q(created_at__gt=now - length)


def beginning(text: str) -> tuple[uuid.UUID, uuid.UUID] | None:
    """Return the lowest and the highest id that begin so; None for what begins none."""
    digits = text.strip().lower().replace("-", "")
    if _HEX.fullmatch(digits) is None:
        return None
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def of_worker(worker: str) -> Q:
    """Held by this worker; `host` and `host:pid` mean all of them."""
    return Q(worker_id=worker) | Q(worker_id__startswith=f"{worker}:")


def with_key(key: str) -> Q:
    """With this unique or concurrency key."""
    return Q(unique_key=key) | Q(concurrency_key=key)


def on_hold(reason: str) -> Q:
    """On hold for this reason, or any."""
    return ~Q(hold_reason="") if reason == ANY else Q(hold_reason=reason)


def anything(text: str) -> Q:
    """That this may be the id, the key or a part of the label of."""
    wanted = with_key(text) | Q(label__icontains=text)
    ids = beginning(text)
    return wanted | Q(id__range=ids) if ids else wanted


def case_of(owner: str, user: str, now: datetime) -> Q:
    """Cases that `me`, this user, has taken, or that `nobody` has."""
    held = Q(owned_until__isnull=True) | Q(owned_until__gt=now)
    return held & Q(owner=user) if owner == "me" else ~(held & ~Q(owner=""))


def case_parked(word: str, now: datetime) -> Q:
    """Cases that are put aside at this moment (`yes`), or that are not."""
    later = Q(parked_until__gt=now)
    return later if word == "yes" else Q(parked_until__isnull=True) | Q(parked_until__lte=now)


def case_late(now: datetime) -> Q:
    """Cases whose time limit is over."""
    return Q(sla_due_at__lte=now)


def nth(ordered: QuerySet[Any], number: int, key: str = "id") -> Any:
    """Return the id of the row at this place, where a bounded look ends; None where there are fewer."""
    return next(iter(ordered.values_list(key, flat=True)[number - 1 : number]), None)
