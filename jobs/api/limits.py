"""What a request may bring, judged before a byte of it is parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from jobs.api import strictjson
from jobs.api.problems import Problem

_JSON = re.compile(r'application/json(\s*;\s*charset\s*=\s*"?utf-?8"?)?\s*', re.IGNORECASE)
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def check_body(request: Request, *, limit: int) -> None:
    """Refuse a body by its headers alone: too long, of unknown length, packed, or no JSON in UTF-8."""
    if request.method not in WITH_BODY:
        return
    meta = request.META
    if "chunked" in meta.get("HTTP_TRANSFER_ENCODING", "").lower():
        raise Problem("length-required", _("Send the body with a Content-Length."))
    length = str(meta.get("CONTENT_LENGTH") or "0")
    if not (length.isascii() and length.isdigit()):
        raise Problem("length-required", _("Content-Length is not a number of bytes."))
    if len(length) > 18 or int(length) > limit:
        raise Problem("body-too-large", _("A body has at most %(limit)s bytes.") % {"limit": limit})
    check_coding(meta)
    if int(length) and not _JSON.fullmatch(meta.get("CONTENT_TYPE", "").strip()):
        raise Problem("unsupported-media-type", _("Send application/json in UTF-8."))


def check_coding(meta: Mapping[str, Any]) -> None:
    """Refuse a body that is packed: nobody here would unpack it."""
    packed = meta.get("HTTP_CONTENT_ENCODING", "")
    if packed and packed.lower() != "identity":
        raise Problem("unsupported-media-type", _("Send the body as it is, not compressed."))


class StrictJSONParser(BaseParser):
    """Parses bodies strictly, as many levels deeper than arguments may be as the view's bodies have."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        context = parser_context or {}
        announced = int(context["request"].META["CONTENT_LENGTH"])
        levels = settings.INTERLOCK["DEPTH"] + getattr(context.get("view"), "extra_depth", 1)
        try:
            raw = stream.read()
        except OSError:
            raw = b""
        # The start of a document may be a document.
        if len(raw) < announced:
            raise Problem("invalid-body", _("The body ended before its announced length."))
        try:
            return strictjson.read(raw, depth=levels)
        except strictjson.NotStrict as error:
            raise Problem(
                "invalid-body", errors=[{"pointer": error.pointer, "detail": error.problem}]
            ) from None
