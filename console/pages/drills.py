"""The drills: what zombies tried on this installation, and the golden scenarios, step by step."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console import stepper, zombies
from console.pages.base import Page
from jobs import audit
from jobs.drills import kept
from jobs.drills.zombie import PARTS
from jobs.models import Drill
from jobs.models.audit import Source
from jobs.models.drill import DrillKind
from jobs.operations import drills, proof
from jobs.operations.actor import RUN_DRILL
from jobs.outcomes import Refused

SHOWN = 20
WRONG = {
    "lease": _("lease over, not yet taken over"),
    "own": _("superseded, its own token"),
    "generation": _("only the generation is old"),
    "attempt_id": _("only the attempt is another"),
    "worker_id": _("only the worker is another"),
    "epoch": _("only the epoch is old"),
}
"""What is wrong with the token that a zombie presents."""


class DrillsPage(Page):
    """The kept drills; a form has the golden scenarios replayed."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "console/drills/page.html"
    folder = "console/drills"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Replay the golden scenarios, and lead to what was observed."""
        if not request.user.has_perm(RUN_DRILL):
            raise PermissionDenied
        try:
            with audit.through(
                Source.CONSOLE, user=request.user.get_username(), proved_at=proof.of(request.session)
            ):
                drills.replay_golden(actor=request.user)
        except Refused as refused:
            messages.error(request, str(refused))
        return HttpResponseRedirect(reverse("admin:drills") + "#golden")

    def page(self) -> dict[str, Any]:
        """Return the newest zombie drills, the last of them point by point, and one scenario at one step."""
        zombies = list(Drill.objects.filter(kind=DrillKind.ZOMBIE).order_by("-id")[:SHOWN])
        last = next((drill for drill in zombies if drill.tried), None)
        golden = kept.last_finished(DrillKind.GOLDEN)
        newest = kept.last(DrillKind.GOLDEN)
        return {
            "title": _("Drills"),
            "zombies": zombies,
            "last": last,
            "tokens": list(WRONG.values()),
            "points": _points(last) if last else [],
            "golden": golden,
            "stopped": newest if newest is not None and newest != golden and newest.finished_at else None,
            "may_run": self.request.user.has_perm(RUN_DRILL),
            **(self._golden(golden) if golden else {}),
            **(self._zombies(last) if last else {}),
        }

    def _golden(self, drill: Drill) -> dict[str, Any]:
        told = drill.observed["scenarios"]
        return {"scenarios": told, "stepper": stepper.of(*self._chosen(told, "scenario", "step"))}

    def _zombies(self, drill: Drill) -> dict[str, Any]:
        told = zombies.courses(drill)
        if not told:
            return {"courses": []}
        chosen = self._chosen(told, "token", "try")
        return {"courses": [(c, WRONG[c["name"]]) for c in told], "zombie": stepper.of(*chosen, digits=4)}

    def _chosen(self, told: list[dict[str, Any]], which: str, step: str) -> tuple[dict[str, Any], int]:
        """Return what the address names; one that was typed wrong shows the nearest that there is."""
        names = {scenario["name"]: scenario for scenario in told}
        # What went wrong is what one comes for.
        first = next((scenario for scenario in told if not scenario["ok"]), told[0])
        number = self.request.GET.get(step, "1")
        known = number.isascii() and number.isdigit() and len(number) < 4
        return names.get(self.request.GET.get(which, ""), first), int(number) if known else 1


def _points(drill: Drill) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """Return each point with what it answered to each token; None where it was not tried."""
    tries = {(entry["point"], entry["part"]): entry for entry in drill.observed["tries"]}
    names = dict.fromkeys(point for point, _part in tries)
    return [(name, [tries.get((name, part)) for part in PARTS]) for name in names]
