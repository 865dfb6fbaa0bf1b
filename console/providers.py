"""Whom an effect asks: what its kind declares, else the part of the kind's name before the dot."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from jobs import effect_kinds


def named(kinds: Iterable[str]) -> dict[str, str]:
    """Return the provider of each of these effect kinds."""
    found = {}
    for name in kinds:
        kind = effect_kinds.find(name)
        found[name] = (kind.provider if kind else "") or name.partition(".")[0]
    return found


def asked(provider: str) -> Q:
    """Cases whose effect asks this provider, whether this process knows its kind or not."""
    known = named(kind.name for kind in effect_kinds.registered())
    here = [name for name, whom in known.items() if whom == provider]
    others = [name for name, whom in known.items() if whom != provider]
    by_name = Q(effect_kind=provider) | Q(effect_kind__startswith=f"{provider}.")
    return Q(effect_kind__in=here) | (by_name & ~Q(effect_kind__in=others))
