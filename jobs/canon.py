"""Canonical JSON (RFC 8785) and its SHA-256: what a digest is taken of (contract §1).

The text stored is the text digested, so that both databases hold the same bytes and a digest can be
checked at any time. What RFC 8785 cannot tell apart or no database can hold is refused with its path.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

MAX_SAFE_INTEGER = 2**53 - 1
DEFAULT_DEPTH = 32
DEFAULT_BYTES = 256 * 1024
LONGEST_TEXT = 16 * 1024 * 1024
"""No setting allows more; one text beyond it is refused before the whole value is written."""

# JSONEncoder.encode makes this anew for each value, which took half the time of a small one. Without its look
# for circles: what is encoded has been walked to a bounded depth.
_chunks = c_make_encoder(None, None, encode_basestring, None, ":", ",", True, False, False)
Json = bool | int | float | str | list[Any] | dict[str, Any] | None


class NotCanonical(ValueError):
    """A value cannot be written as canonical JSON; `path` is the JSON pointer of the offending part."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or '/'}: {problem}")
        self.path = path
        self.problem = problem

    def inside(self, name: str) -> NotCanonical:
        """Return the same problem as the value sees it that has the offending part under this name."""
        return NotCanonical(f"/{name}{self.path}", self.problem)


def canonical(value: object, *, depth: int = DEFAULT_DEPTH, limit: int = DEFAULT_BYTES) -> str:
    """Return `value` as canonical JSON text.

    `depth` bounds the nesting, `limit` the UTF-8 length in bytes. Raises NotCanonical with a JSON
    pointer for anything that is no JSON: other types, NaN, infinities, integers beyond 2**53 - 1,
    U+0000, lone surrogates, keys that are no text, too deep, too long.
    """
    floats_or_high_keys = _check(value, depth)
    text = "".join(_write(value)) if floats_or_high_keys else "".join(_chunks(value, 0))
    if 4 * len(text) > limit and len(text.encode()) > limit:
        raise NotCanonical("", f"longer than {limit} bytes as JSON")
    return text


def digest(text: str) -> str:
    """Return the SHA-256 of canonical text, in lower-case hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check(value: Any, depth: int) -> bool:
    """Refuse what is no JSON; return whether the slow writer is needed (floats, keys beyond ASCII)."""
    kind = type(value)
    if value is None or kind is bool:
        return False
    if kind is str:
        _check_text(value)
        return False
    if kind is int or kind is float:
        _check_number(value)
        return kind is float
    if depth == 0:
        raise NotCanonical("", "nested too deeply")
    if kind is dict:
        return _check_object(value, depth)
    if kind is list or kind is tuple:
        return _check_array(value, depth)
    raise NotCanonical("", f"{kind.__name__} is not JSON")


def _check_array(value: Sequence[Any], depth: int) -> bool:
    slow = False
    for index, part in enumerate(value):
        try:
            slow |= _check(part, depth - 1)
        except NotCanonical as error:
            raise error.inside(str(index)) from None
    return slow


def _check_object(value: dict[Any, Any], depth: int) -> bool:
    slow = False
    for key, part in value.items():
        if type(key) is not str:
            raise NotCanonical("", f"key {key!r:.40} is not text")
        _check_text(key)
        try:
            slow |= _check(part, depth - 1) or not key.isascii()
        except NotCanonical as error:
            raise error.inside(f"{key.replace('~', '~0').replace('/', '~1'):.80}") from None
    return slow


def _check_number(value: float) -> None:
    if type(value) is float and not math.isfinite(value):
        raise NotCanonical("", f"{value} is not a JSON number")
    # RFC 8785 writes doubles below 1e21 without a point, so they would be read back as unsafe integers.
    if abs(value) > MAX_SAFE_INTEGER and (type(value) is int or abs(value) < 1e21):
        raise NotCanonical("", "a number beyond ±(2^53-1); send it as text")


def _check_text(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise NotCanonical("", f"longer than {LONGEST_TEXT} bytes")
    if "\0" in text:
        raise NotCanonical("", "contains U+0000, which PostgreSQL cannot store")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonical("", "contains a lone surrogate") from None


def _write(value: Any) -> list[str]:
    if type(value) is float:
        return [_number(value)]
    if isinstance(value, list | tuple):
        parts = (("," if index else "") + "".join(_write(part)) for index, part in enumerate(value))
        return ["[", *parts, "]"]
    if isinstance(value, dict):
        # RFC 8785 sorts keys by UTF-16 code units, which differs from code points beyond the BMP.
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        parts = (
            ("," if index else "") + json.dumps(key, ensure_ascii=False) + ":" + "".join(_write(value[key]))
            for index, key in enumerate(keys)
        )
        return ["{", *parts, "}"]
    return [json.dumps(value, ensure_ascii=False)]


def _number(value: float) -> str:
    """Write a double as ECMAScript does: the shortest digits, plain from 1e-6 up to below 1e21."""
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"
