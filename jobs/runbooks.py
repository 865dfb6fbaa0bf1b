"""Runbooks: what an effect kind has people do about an open case, with the case's own words filled in.

A runbook is an address of the web, or steps, a line each. Filled in are `{key}`, `{reference}`, `{label}` and
`{amount}`, and nothing else: no format string comes near a value. Escaping is the page's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

NAMES = ("key", "reference", "label", "amount")
LONGEST = 4000
LONGEST_CONSOLE = 500
_PLACE = re.compile(r"\{(key|reference|label|amount)\}")
_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_MARK = re.compile(r"(?:\d{1,2}[.)]|[-*•])\s+")
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f\"'<>\\^`|]")
Values = Mapping[str, str]


class Part(NamedTuple):
    """A stretch of a step; `given` says that it is a value of the case."""

    text: str
    given: bool


Step = list[Part]


def is_address(runbook: str) -> bool:
    """Tell an address of the web from steps; any other scheme stays text."""
    return runbook.startswith(("https://", "http://")) and not any(map(str.isspace, runbook))


def steps(runbook: str, values: Values) -> list[Step]:
    """Return the steps of a runbook that is no address, its own numbers and dots taken off.

    Where lines are numbered, a line without a number goes on with the one before.
    """
    if is_address(runbook):
        return []
    lines = [line.strip() for line in runbook.splitlines() if line.strip()]
    marked = any(_MARK.match(line) for line in lines)
    found: list[str] = []
    for line in lines:
        if marked and found and not _MARK.match(line):
            found[-1] += f" {line}"
        else:
            found.append(_MARK.sub("", line, count=1) if _MARK.match(line) else line)
    return [list(_parts(step, values)) for step in found]


def _parts(step: str, values: Values) -> Iterator[Part]:
    for place, text in enumerate(_PLACE.split(step)):
        if place % 2 == 0:
            if text:
                yield Part(text, False)
        else:
            value = values.get(text, "")
            # A step that is about what is not there yet still has to read as a sentence.
            yield Part(value, True) if value else Part(f"{{{text}}}", False)


def address(console: str, values: Values) -> str:
    """Return a provider's page with the case's values in it; empty where one that it takes is not there."""
    if any(not values.get(name) for name in _PLACE.findall(console)):
        return ""
    return _PLACE.sub(lambda found: quote(values[found[1]], safe="", errors="replace"), console)


def check(name: str, runbook: str, console: str) -> None:
    """Raise ValueError for a runbook that nobody reads, or a console that a person should not be led to."""
    if len(runbook) > LONGEST:
        raise ValueError(f"effect kind {name}: a runbook has at most {LONGEST} characters")
    if console and (problem := _problem(console)):
        raise ValueError(f"effect kind {name}: console {console[:80]!r}: {problem}")


def _problem(console: str) -> str:
    if len(console) > LONGEST_CONSOLE:
        return f"at most {LONGEST_CONSOLE} characters"
    if _UNSAFE.search(console) or not console.startswith("https://"):
        return "an https:// address is needed"
    try:
        split = urlsplit(console)
        host, _port = split.hostname, split.port
    except ValueError:
        return "an https:// address is needed"
    if not host or "@" in split.netloc or "{" in split.netloc:
        return "its host is written out, without a user"
    unknown = [braces for braces in _BRACES.findall(console) if not _PLACE.fullmatch(braces)]
    if unknown:
        return f"{unknown[0]} is none of {', '.join(f'{{{name}}}' for name in NAMES)}"
    return ""
