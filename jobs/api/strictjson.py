"""Reading JSON strictly: what two readers could take differently, or no database can hold, is refused.

Python's own reader takes NaN, keeps the last of two equal keys, joins lone surrogates into text that no
encoder writes, and at a few hundred levels raises RecursionError, which is no ValueError. Each of these is
found here with its place in the document.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from django.utils.translation import gettext as _

# A string that never ends is taken to the end of the text: looking for its end once more at each quote inside
# it would take quadratic time. The quantifiers give nothing back, for the same reason.
_BETWEEN_BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))++', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# UTF-8 holds no surrogate and JSON no bare U+0000, so only an escape can bring one in.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class NotStrict(ValueError):
    """The document is refused; `pointer` is the JSON pointer of the culprit, `problem` says why."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer or '/'}: {problem}")
        self.pointer = pointer
        self.problem = problem


def read(raw: bytes, *, depth: int) -> Any:
    """Return the value of a JSON document in UTF-8 with at most `depth` levels; raises NotStrict."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise NotStrict("", _("not UTF-8: byte %(at)s cannot be read") % {"at": error.start}) from None
    _check_depth(text, depth)
    faults: list[_Fault] = []
    try:
        value = _decoder(faults).decode(text)
    except json.JSONDecodeError as error:
        problem = _("not JSON: line %(line)s, column %(column)s") % {
            "line": error.lineno,
            "column": error.colno,
        }
        raise NotStrict("", problem) from None
    if faults or _SUSPECT.search(text):
        _check(value)
    return value


def pointer(parent: str, key: object) -> str:
    """Return the JSON pointer of a member, its name cut to a length that an answer can carry."""
    return f"{parent}/{str(key)[:80].replace('~', '~0').replace('/', '~1')}"


def _check_depth(text: str, limit: int) -> None:
    steps = map(_STEPS.__getitem__, _BETWEEN_BRACKETS.sub("", text))
    if max(accumulate(steps), default=0) > limit:
        raise NotStrict("", _("nested deeper than %(limit)s levels") % {"limit": limit})


class _Fault:
    """Stands where a value was refused, until the walk that knows its pointer comes by."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def _decoder(faults: list[_Fault]) -> json.JSONDecoder:
    """Return a decoder that puts a fault for each value that is refused, and lists it in `faults`."""

    def refuse(problem: str) -> _Fault:
        faults.append(_Fault(problem))
        return faults[-1]

    def members(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        return found if len(found) == len(pairs) else refuse(_twice(pairs))

    def number(token: str) -> Any:
        value = float(token)
        return value if math.isfinite(value) else constant(token[:40])

    def integer(token: str) -> Any:
        try:
            return int(token)
        except ValueError:  # thousands of digits: converting them takes quadratic time, so Python refuses
            return refuse(_("a number of %(digits)s digits") % {"digits": len(token)})

    def constant(token: str) -> _Fault:
        return refuse(_("%(token)s is not a JSON number") % {"token": token})

    return json.JSONDecoder(
        object_pairs_hook=members, parse_float=number, parse_int=integer, parse_constant=constant
    )


def _twice(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    key = next(key for key, _value in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return _("the key “%(key)s” is given twice") % {"key": printable(key[:80])}


def _check(value: Any) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        for key in value:
            _check_text(key)
        _check_parts(value.items())
    elif isinstance(value, list):
        _check_parts(enumerate(value))
    elif isinstance(value, _Fault):
        raise NotStrict("", value.problem)


def _check_parts(parts: Iterable[tuple[object, Any]]) -> None:
    for key, part in parts:
        try:
            _check(part)
        except NotStrict as error:
            # The pointer is put together from its end, and only where something is wrong.
            raise NotStrict(pointer("", key) + error.pointer, error.problem) from None


def _check_text(text: str) -> None:
    if "\0" in text:
        raise NotStrict("", _("contains U+0000"))
    if not text.isascii() and _SURROGATE.search(text):
        raise NotStrict("", _("contains a lone surrogate"))


def printable(text: str) -> str:
    """Return text that every encoder can write and every database can hold."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).replace("\0", "\N{REPLACEMENT CHARACTER}")
