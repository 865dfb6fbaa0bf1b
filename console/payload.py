"""JSON as people may see it: secrets masked, folded where it is long, cut where it is too long to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jobs.redact import MASK, mask, strike

NODES = 400
"""Values shown of one document."""
CHARACTERS = 2000
"""Characters shown of one text in it."""
FLAT = 24
"""A document of more lines than this opens with its inner parts folded."""


@dataclass(frozen=True)
class Line:
    """One line of a document: `opens` begins a part that can be folded, `closes` ends it."""

    key: str
    text: str
    kind: str
    opens: bool = False
    closes: bool = False
    folded: bool = False


@dataclass(frozen=True)
class Payload:
    """One JSON document, ready to be shown. It is masked when it is made, so that no page can forget it.

    Only `revealed` shows what is hidden.
    """

    lines: list[Line]
    size: int
    masked: int
    cut: bool

    @classmethod
    def of(cls, text: str, paths: Iterable[str] = (), secrets: Iterable[str] = ()) -> Payload:
        """Return the document of `text`; what is no JSON, or nested beyond reading, is one masked value.

        `secrets` are struck from all texts: those of a job's input, which what it wrote may repeat.
        """
        return cls._shown(text, lambda value: strike(mask(value, paths), secrets))

    @classmethod
    def revealed(cls, text: str) -> Payload:
        """Return the document with nothing masked: for what jobs.operations.reveal gave."""
        return cls._shown(text, lambda value: value)

    @classmethod
    def _shown(cls, text: str, look: Callable[[Any], Any]) -> Payload:
        budget = _Budget(NODES)
        try:
            lines = list(_lines("", look(json.loads(text)), 0, budget))
        except (ValueError, RecursionError):
            lines = list(_lines("", MASK, 0, budget))
        if len(lines) <= FLAT:
            lines = [replace(line, folded=False) for line in lines]
        masked = sum(line.kind == "mask" for line in lines)
        return cls(lines, len(text.encode(errors="replace")), masked, budget.spent)


@dataclass
class _Budget:
    left: int
    spent: bool = False

    def take(self) -> bool:
        self.left -= 1
        self.spent = self.spent or self.left < 0
        return self.left >= 0


def _lines(key: str, value: Any, depth: int, budget: _Budget) -> Iterator[Line]:
    if not budget.take():
        return
    if isinstance(value, dict) and value:
        yield Line(key, "{", "open", opens=True, folded=depth > 0)
        for name, part in value.items():
            yield from _lines(_clean(f"{json.dumps(name, ensure_ascii=False)}: "), part, depth + 1, budget)
        yield Line("", "}", "close", closes=True)
    elif isinstance(value, list) and value:
        yield Line(key, "[", "open", opens=True, folded=depth > 0)
        for part in value:
            yield from _lines("", part, depth + 1, budget)
        yield Line("", "]", "close", closes=True)
    elif value == MASK:
        yield Line(key, "", "mask")
    elif isinstance(value, str):
        shown = value if len(value) <= CHARACTERS else value[:CHARACTERS] + "…"
        budget.spent = budget.spent or len(value) > CHARACTERS
        yield Line(key, _clean(json.dumps(shown, ensure_ascii=False)), "text")
    else:
        yield Line(key, json.dumps(value), "value")


def _clean(text: str) -> str:
    """Replace lone surrogates, which no answer can carry."""
    return text.encode(errors="replace").decode()
