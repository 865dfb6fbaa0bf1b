"""The observation record: what each step returned and left, beside what was expected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from django.utils.translation import gettext as _

from jobs.drills.step import KEPT, Kept, Returned, Scenario, Step

Value = TypeVar("Value")


class Row(NamedTuple):
    """What a step left: the job's row, how often the outside has acted, and the effect slot's status."""

    status: str
    generation: int
    lease_until: float | None
    outside_actions: int
    slot: str | None = None


class Deviation(NamedTuple):
    """One value that is not as expected. `step` counts from 1."""

    scenario: str
    step: int
    action: str
    field: str
    expected: Returned | float
    observed: Returned | float

    def __str__(self) -> str:
        return _(
            "%(scenario)s, step %(step)s (%(action)s): %(field)s expected %(expected)s, observed %(observed)s"
        ) % {
            **self._asdict(),
            "expected": repr(self.expected),
            "observed": repr(self.observed),
        }


@dataclass
class Record:
    """What was observed of one scenario, step by step."""

    scenario: Scenario
    returned: list[Returned] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(self, returned: Returned, row: Row) -> None:
        """Note the outcome of the next step."""
        self.returned.append(returned)
        self.rows.append(row)

    @property
    def ok(self) -> bool:
        """Whether every step of the scenario was run and gave what was expected."""
        return len(self.rows) == len(self.scenario.steps) and not self.deviations()

    def deviations(self) -> list[Deviation]:
        """Return every value that is not as expected, in order."""
        found = []
        lease_until: float | None = None
        outside_actions = 0
        slot: str | None = None
        seen = zip(self.scenario.steps, self.returned, self.rows, strict=False)
        for number, (step, returned, row) in enumerate(seen, 1):
            lease_until = _or_kept(step.lease_until, lease_until) if step.status == "running" else None
            outside_actions = _or_kept(step.outside_actions, outside_actions)
            slot = _or_kept(step.slot, slot)
            expected = Row(step.status, step.generation, lease_until, outside_actions, slot)
            pairs = [("returned", step.returned, returned)]
            pairs += [(name, getattr(expected, name), getattr(row, name)) for name in Row._fields]
            found += [
                Deviation(self.scenario.name, number, step.text, name, wanted, got)
                for name, wanted, got in pairs
                if _differ(wanted, got)
            ]
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the record in the structure of the golden traces, filled with what was observed."""
        shown: dict[str, Any] = {"name": self.scenario.name, "title": _(self.scenario.title), "ok": self.ok}
        if self.scenario.note:
            shown["note"] = _(self.scenario.note)
        if self.scenario.replay:
            shown["replay"] = self.scenario.replay
        if self.scenario.times_chosen:
            shown["times"] = "chosen"
        seen = zip(self.scenario.steps, self.returned, self.rows, strict=False)
        return shown | {"steps": [_step(*entry) for entry in seen]}


def _step(step: Step, returned: Returned, row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {"t": step.t}
    if step.t_chosen:
        shown["t_chosen"] = True
    shown |= {"action": step.text, "returned": returned, "status": row.status, "generation": row.generation}
    for name in ("lease_until", "outside_actions", "slot"):
        if getattr(step, name) is not KEPT:
            shown[name] = getattr(row, name)
    return shown


def _or_kept(given: Value | Kept, before: Value) -> Value:
    return before if isinstance(given, Kept) else given


def _differ(wanted: Returned | float, got: Returned | float) -> bool:
    # True == 1, but "it landed" and "generation 1" are two answers.
    return isinstance(wanted, bool) != isinstance(got, bool) or wanted != got
