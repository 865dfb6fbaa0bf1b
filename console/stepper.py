"""A replayed scenario as a time line: a lane for each who acts, the leases as bars, one mark per step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

WIDTH, LEFT, TOP, LANE = 1064, 96, 24, 40


@dataclass(frozen=True)
class Shown:
    """One step: where its mark stands, and all that is said of it."""

    number: int
    x: float
    y: int
    t: str
    action: str
    returned: str
    status: str
    generation: int
    lease_until: str
    slot: str
    outside: int
    why: str
    deviations: list[str]
    look: str
    """The class of its status: what colour it has."""


@dataclass
class Stepper:
    """One scenario at one of its steps."""

    name: str
    title: str
    note: str
    ok: bool
    steps: list[Shown]
    at: int
    lanes: list[tuple[str, int]] = field(default_factory=list)
    bars: list[tuple[float, int, float]] = field(default_factory=list)
    """Leases: x, y and width."""

    @property
    def here(self) -> Shown:
        """The step that is looked at."""
        return self.steps[self.at - 1]

    @property
    def before(self) -> int | None:
        """The step before it."""
        return self.at - 1 if self.at > 1 else None

    @property
    def after(self) -> int | None:
        """The step after it."""
        return self.at + 1 if self.at < len(self.steps) else None

    @property
    def height(self) -> int:
        """Of the drawing."""
        return TOP + LANE * len(self.lanes) + 8

    @property
    def description(self) -> str:
        """The drawing in words."""
        return " ".join(_("At t=%(t)s: %(action)s.") % {"t": s.t, "action": s.action} for s in self.steps)


def of(told: dict[str, Any], at: int, *, digits: int = 9) -> Stepper:
    """Return the scenario that was recorded as `told`, looked at in its step `at`, counted from 1.

    Its times are told with so many digits: those of a scenario are exact, those of a real clock are not.
    """
    steps = told["steps"]
    actors = sorted(
        dict.fromkeys(step["actor"] for step in steps), key=bool
    )  # what nobody in it does is on top
    lanes = [(actor, TOP + LANE * n) for n, actor in enumerate(actors)]
    height = dict(lanes)
    apart = (WIDTH - LEFT - 24) / max(1, len(steps) - 1)
    shown = [
        _shown(step, number, LEFT + apart * (number - 1), height[step["actor"]], digits)
        for number, step in enumerate(steps, 1)
    ]
    named = [(actor or _("others"), y) for actor, y in lanes]
    return Stepper(
        told["name"],
        _(told["title"]),
        _(told["note"]) if told["note"] else "",
        told["ok"],
        shown,
        min(max(at, 1), len(shown)),
        named,
        _leases(steps, shown),
    )


def _leases(steps: list[dict[str, Any]], shown: list[Shown]) -> list[tuple[float, int, float]]:
    """Return who held the job from which step to which: until another claim, or until it is given up."""
    bars: list[tuple[float, int, float]] = []
    begun: Shown | None = None
    for step, here in zip(steps, shown, strict=True):
        claimed = step["action"].startswith("claim") and type(step["returned"]) is int
        ended = step["status"] != "running" or step.get("ends", False)
        if begun is not None and (claimed or ended):
            bars.append((begun.x, begun.y, here.x - begun.x))
            begun = None
        if claimed:
            begun = here
    if begun is not None:
        bars.append((begun.x, begun.y, shown[-1].x - begun.x + 16))
    return bars


LOOKS = {
    "running": "st-run",
    "done": "st-ok",
    "succeeded": "st-ok",
    "uncertain": "st-unk",
    "waiting": "st-warn",
}


def _shown(step: dict[str, Any], number: int, x: float, y: int, digits: int) -> Shown:
    until = step["lease_until"]
    return Shown(
        number=number,
        x=x,
        y=y,
        t=f"{step['t']:.{digits}g}",
        action=_(step["action"]).format(actor=step["actor"], **step.get("named", {})),
        returned=json.dumps(step["returned"], ensure_ascii=False).strip('"'),
        status=step["status"],
        generation=step["generation"],
        lease_until="" if until is None else f"{until:.9g}",
        slot=step["slot"] or "",
        outside=step["outside_actions"],
        why=_(step["why"]),
        deviations=[
            _("%(field)s: expected %(expected)s, observed %(observed)s")
            % {name: d[name] if name == "field" else json.dumps(d[name]) for name in d}
            for d in step["deviations"]
        ],
        look="st-bad" if step["deviations"] else LOOKS.get(step["status"], ""),
    )
