"""Every predicate of the guarded statements made wrong: dropped, turned round, or let slip by a tick.

A predicate is named by the text that stands in the ledger; a mutant replaces that text where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jobs.ledger import renew, settle, slots
from jobs.ledger.fence import VERBS
from tests.matrix.predicates import OTHERS

PLACES: dict[str, tuple[ModuleType, str]] = {
    "renew": (renew, "RENEW"),
    "prepare": (slots, "FENCES"),
    "grant": (slots, "FENCES"),
    "stage": (settle, "STAGE"),
    "commit": (settle, "COMMIT"),
    "end": (settle, "FENCES"),
    "acknowledge_cancel": (settle, "FENCES"),
}


@dataclass(frozen=True)
class Mutant:
    """`old` in `module.place` (or its entry `key`) becomes `new`; the cases of `predicate` should notice."""

    statement: str
    predicate: str
    how: str
    module: ModuleType
    place: str
    key: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.statement}: {self.predicate} {self.how}"

    def apply(self, monkeypatch: Any) -> None:
        """Put the mutant in place of the real text until the test is over."""
        holder = getattr(self.module, self.place)
        text = holder[self.key] if self.key else holder
        sets = text[0] if isinstance(text, tuple) else None
        text = text if sets is None else text[1]  # of a ruling: what it writes, what it rests on
        assert text.count(self.old) == 1, f"{self}: stands {text.count(self.old)} times in {self.place}"
        changed = text.replace(self.old, self.new)
        if self.key:
            monkeypatch.setitem(holder, self.key, changed if sets is None else (sets, changed))
        else:
            monkeypatch.setattr(self.module, self.place, changed)


def _mutations(condition: str) -> Iterator[tuple[str, str]]:
    yield "dropped", "1 = 1"
    yield "turned round", f"NOT ({condition})"
    for strict, slack in (
        (" > t.now", " >= t.now"),
        (" <= t.now", " < t.now"),
        (" <= %(asked)s", " < %(asked)s"),
        (" > (SELECT now FROM t)", " >= (SELECT now FROM t)"),
        (" <= (SELECT now FROM t)", " < (SELECT now FROM t)"),
        (" > (SELECT {plus:now+1} FROM t)", " >= (SELECT {plus:now+1} FROM t)"),
        (" < (SELECT {plus:now+-86400} FROM t)", " <= (SELECT {plus:now+-86400} FROM t)"),
    ):
        if strict in condition:
            yield "let slip by a tick", condition.replace(strict, slack)


def _fence() -> Iterator[Mutant]:
    for verb, guards in VERBS.items():
        module, place = PLACES[verb]
        for guard in guards:
            for how, new in _mutations(guard.text):
                yield Mutant(
                    verb,
                    guard.name,
                    how,
                    module,
                    place,
                    verb if place == "FENCES" else "",
                    guard.line,
                    guard.line.replace(guard.text, new),
                )


def mutants() -> list[Mutant]:
    """Return every mutant, each to be noticed by the cases of its own predicate."""
    found = list(_fence())
    for (statement, module, place, key), conditions in OTHERS.items():
        found += [
            Mutant(statement, predicate, f"({condition}) {how}", module, place, key, condition, new)
            for predicate, condition in conditions
            for how, new in _mutations(condition)
        ]
    return found
