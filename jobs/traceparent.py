"""`traceparent`: which trace a request belongs to (W3C Trace Context), kept with the job and its attempts.

Interlock makes no spans of its own; it hands on what it was given, so that those of others hang together.
"""

from __future__ import annotations

import re

CHARACTERS = 55
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


def parse(header: str | None) -> str:
    """Return a header's value as version 00 writes it; nothing where it is none that the W3C calls valid.

    Of a later version the parts are read that version 00 has, with the one flag that it knows.
    """
    found = _FORM.fullmatch((header or "").strip(" \t"))
    if found is None or found[1] == "ff" or not int(found[2], 16) or not int(found[3], 16):
        return ""
    if found[1] == "00":
        return "" if found[5] else found[0]
    return f"00-{found[2]}-{found[3]}-{int(found[4], 16) & 1:02x}"
