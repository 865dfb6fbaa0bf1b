"""Every address of the console, from the URL table itself."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

ELSEWHERE = ("api/", "healthz", "readyz", "metrics")
"""Not the console: each has tests of its own."""


def names() -> list[str]:
    """Return the name of every address, with its name space; the one that catches all is `admin:`."""
    return [
        name for name, route in _walk(get_resolver().url_patterns, "", "") if not route.startswith(ELSEWHERE)
    ]


def _walk(patterns: list[URLPattern | URLResolver], space: str, route: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        here = route + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern.url_patterns, inner, here)
        else:
            yield space + (pattern.name or ""), here
