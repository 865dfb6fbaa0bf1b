"""Text that is safe to look at."""

import re

# Not NUL: no text that was read has one, and tables divide their cells by it.
_CONTROLS = re.compile("[\x01-\x08\x0b\x0d-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Show control characters as their pictures: an escape sequence must not reach a terminal."""
    return _CONTROLS.sub(_picture, text) if _CONTROLS.search(text) else text


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
