"""The practice inbox: pick a case, pick a ruling, read what would have happened. Nothing is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from console import casefile, plots, practice
from console.pages.base import Page
from console.payload import Payload
from console.practice import Scenario
from jobs.models.case import Verdict
from jobs.operations import cases
from jobs.operations.cases import Offer
from jobs.operations.door import Anybody


@dataclass(frozen=True)
class Trial:
    """One verdict as it is offered here: what stands against it is said, and it can be tried all the same."""

    offer: Offer
    chosen: bool
    locked = by_word = False


@dataclass(frozen=True)
class Verdicted:
    """What became of a choice: what it would have done, and what it is worth."""

    choice: str
    answer: plots.Answer
    offer: Offer | None
    """None where nothing was ruled."""


class PracticePage(Page):
    """Only looked at: the choice is part of the address."""

    template_name = "console/drills/practice.html"

    def page(self) -> dict[str, Any]:
        """Return the list of cases, and the one that the address names with what was chosen in it."""
        known = practice.scenarios(self.around.now, self.around.scheduler.epoch)
        name = self.request.GET.get("case", "")
        chosen = next((one for one in known if one.name == name), None)
        shown = {"title": _("Practice inbox"), "known": known, "scenario": chosen}
        return shown if chosen is None else shown | self._case(chosen, known)

    def _case(self, scenario: Scenario, known: list[Scenario]) -> dict[str, Any]:
        view, slot = scenario.view, scenario.view.effect
        conflict = casefile.is_conflict(view.case, slot)
        differing, equal = (
            casefile.differences(slot.payload, slot.conflict_payload or "null", ()) if conflict else ([], 0)
        )
        after = known.index(scenario) + 1
        picked = self.request.GET.get("verdict", "")
        return {
            "case": view.case,
            "slot": slot,
            "subject": view.job,
            "sender": view.sender,
            "in_flight_until": view.in_flight_until,
            "settle_by": view.settle_by,
            "number": 1,
            "refused": 0,
            "kind": casefile.About.of(view),
            "kind_known": True,
            "known_to": 1,
            "heard": casefile.heard(view, casefile.paths_of(view), view.secrets),
            "evidence_shown": casefile.EVIDENCE,
            "steps": casefile.steps(view, 1),
            "payload": Payload.of(slot.payload),
            "conflict": conflict,
            "brought": Payload.of(slot.conflict_payload or "null") if conflict else None,
            "differing": differing,
            "equal": equal,
            "history": casefile.history(view, []),
            "choices": [Trial(o, o.verdict.value == picked) for o in cases.offers(view, Anybody())],
            "picked": picked,
            "result": _judged(scenario, picked),
            "following": known[after] if after < len(known) else None,
        }


def _judged(scenario: Scenario, picked: str) -> Verdicted | None:
    """Return what is said of a choice; None before one, or where the case does not offer it."""
    answer = scenario.answers.get(picked)
    if answer is None:
        return None
    offer = None if picked == plots.WAIT else cases.offer(scenario.view, Verdict(picked), Anybody())
    return Verdicted(picked, answer, offer)
