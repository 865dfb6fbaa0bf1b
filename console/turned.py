"""Shows marks that turn the writing round as what they are, on every page.

A label may hold them, and so may a target, a payload, a provider's answer: without this, an amount that
follows in the same line is read from its end, 480.00 as 00.084, and what a ruling will do is read backwards.
Inside JSON that is edited the escape is the same character.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_TURNS = re.compile(rb"\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""U+202A to 202E and 2066 to 2069 in UTF-8: embeddings, overrides, isolates, and their ends."""


class TurnedTextMiddleware:
    """Writes U+202E as `\\u202e`, and its like; what programs are answered with stays as it is."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = not response.streaming and response.headers.get("Content-Type", "").startswith("text/html")
        if is_page and _TURNS.search(response.content):
            response.content = _TURNS.sub(_escape, response.content)
        return response


def _escape(found: re.Match[bytes]) -> bytes:
    return f"\\u{ord(found[0].decode()):04x}".encode()
