"""The last zombie drill as a course of events for each token: what the stepper shows (console/stepper.py).

Texts are marked here and translated where they are shown, as those of the golden scenarios are.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_noop as _

from jobs.drills.zombie import PARTS
from jobs.models import Drill

FIRST, SECOND = "A", "B"
TITLES = {
    "lease": _("A's lease is over and nobody has taken over yet"),
    "own": _("B has taken over, and A comes back with its own token"),
    "generation": _("A comes back with B's token, but the generation is its own"),
    "attempt_id": _("A comes back with B's token, but the attempt is its own"),
    "worker_id": _("A comes back with B's token, but the worker is A"),
    "epoch": _("A comes back with B's token, but the epoch is the one before"),
}
TRIED = _("{actor} tries {point}")
DONE = {
    "claim": _("claim {actor}"),
    "lapse": _("the lease of {actor} runs out"),
    "take_over": _("claim {actor}"),
    "renew": _("renew {actor}"),
    "commit": _("finish {actor} done"),
}
WHY = {
    "claim": _(
        "A takes the canary, with a lease of two seconds, which it lets run out as a worker that hangs does."
    ),
    "lapse": _("By the database's clock nobody has renewed it: from now on A may write nothing."),
    "take_over": _(
        "The lease is over, so B takes the canary with the next generation; A may still be at work."
    ),
    "renew": _("The rightful owner is let in: a database that refuses everybody proves nothing."),
    "commit": _("B's result counts and ends the canary; its effect was never granted, so nothing was sent."),
}
REFUSED = {
    "lease": _(
        "What is presented is A's own and current, but its lease is over: refused without a successor, too."
    ),
    "own": _("The row says another generation than A presents: refused, and nothing of B's is touched."),
    "generation": _("All but the generation is current, and that alone is enough to refuse it."),
    "attempt_id": _("All but the attempt is current, and that alone is enough to refuse it."),
    "worker_id": _("All but the worker is current, and that alone is enough to refuse it."),
    "epoch": _("All but the epoch is current, and that alone is enough to refuse it."),
}
LET_IN = _("This must be refused, and was not: the fence has a gap here.")
UNANSWERED = _("No answer came: this shows nothing.")


def courses(drill: Drill) -> list[dict[str, Any]]:
    """Return a course for each token that was tried; none of a drill that kept no times."""
    kept = drill.observed
    if not kept.get("course"):
        return []
    return [course for part in PARTS if (course := _course(part, kept))["steps"]]


def _course(part: str, kept: dict[str, Any]) -> dict[str, Any]:
    # The sort is stable: what was done at one instant stays in its order.
    owners = [_owner(entry) for entry in kept["course"] if entry["part"] == part]
    tries = [_try(entry) for entry in kept["tries"] if entry["part"] == part]
    steps = sorted([*owners, *tries], key=lambda step: step["t"])
    generation, until = 0, None
    for step in steps:
        generation, until = step["generation"] or generation, step["lease_until"] or until
        step |= {"generation": generation, "lease_until": until if step["status"] == "running" else None}
    ok = all(not step["deviations"] for step in steps)
    return {"name": part, "title": TITLES[part], "note": "", "ok": ok, "steps": steps}


def _owner(entry: dict[str, Any]) -> dict[str, Any]:
    does = entry["does"]
    return _step(entry["t"], DONE[does], FIRST if does in ("claim", "lapse") else SECOND, WHY[does]) | {
        "returned": entry["generation"] if does in ("claim", "take_over") else does != "lapse" or None,
        "status": "succeeded" if does == "commit" else "running",
        "generation": entry["generation"],
        "lease_until": entry["lease_until"],
        "ends": does == "lapse",
    }


def _try(entry: dict[str, Any]) -> dict[str, Any]:
    answer = f"{entry['answer']} ({entry['reason']})" if entry["reason"] else entry["answer"]
    if entry["refused"]:
        return _step(entry["t"], TRIED, FIRST, REFUSED[entry["part"]], point=entry["point"]) | {
            "returned": answer
        }
    deviation = {"field": "returned", "expected": "FENCED", "observed": answer}
    return _step(
        entry["t"], TRIED, FIRST, LET_IN if entry["accepted"] else UNANSWERED, point=entry["point"]
    ) | {"returned": answer, "deviations": [deviation]}


def _step(t: float, action: str, actor: str, why: str, **named: str) -> dict[str, Any]:
    return {
        "t": t,
        "action": action,
        "actor": actor,
        "named": named,
        "returned": None,
        "status": "running",
        "generation": 0,
        "lease_until": None,
        "outside_actions": 0,
        "slot": None,
        "why": why,
        "deviations": [],
    }
