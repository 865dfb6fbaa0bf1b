"""Raising the epoch: its price first, what costs less, then the form; by two people where it takes two."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import actforms, environment
from console.pages.act import Effect
from console.pages.clusteract import SchedulerAct
from jobs.ledger import timeline
from jobs.models import FenceRefusal, RaiseProposal
from jobs.operations import cluster, exposure, raising
from jobs.operations.actor import APPROVE, RAISE
from jobs.outcomes import Refused

HOUR = timedelta(hours=1)
REFUSALS = 500
"""The newest refused writes that are looked at for a worker to blame."""
RAISED = gettext_lazy("The epoch is %(n)s. Nothing claimed under an older one is accepted any more.")


class RaiseEpoch(SchedulerAct):
    """Refuse every older claim at once: its price first, what costs less, then the form."""

    template_name = "console/act/raise.html"
    form_class = actforms.RaiseForm
    verb, icon, dear, recent = gettext_lazy("Raise the epoch"), "n-epoch", True, True

    @cached_property
    def waits(self) -> RaiseProposal | None:
        """What another person has to confirm, where it takes two."""
        return raising.open_now(self.around.now, self.around.scheduler.epoch)

    def page(self) -> dict[str, Any]:
        two = cluster.takes_two()
        return super().page() | {
            "verb": _("Ask another person to confirm") if two else self.verb,
            "price": exposure.of_all("default"),
            "waits": self.waits,
            "seconds": raising.others(self.request.user) if two else None,
            "timeline_moved": timeline.moved("default"),
            "suspect": self._suspect(),
            "sub_text": _(
                "Refuses every claim made under epoch %(n)s at once, everywhere. It cannot be undone."
            )
            % {"n": self.around.scheduler.epoch},
        }

    def title(self) -> str:
        old = self.around.scheduler.epoch
        return _("Raise the epoch from %(old)s to %(new)s") % {"old": old, "new": old + 1}

    def closed(self) -> str:
        if self.waits is not None:
            return _("%(by)s has asked for it already; it waits for a second person.") % {"by": self.waits.by}
        if cluster.takes_two() and not raising.others(self.request.user):
            return _("It takes two people here, and there is nobody else who may confirm it.")
        return ""

    def effects(self) -> list[Effect]:
        asking = [Effect("approval", _("Nothing is raised before another person has confirmed this epoch."))]
        return (asking if cluster.takes_two() else []) + self.consequences()

    @staticmethod
    def consequences() -> list[Effect]:
        """Return what a raise brings about, whoever confirms it."""
        return [
            Effect(
                "fence",
                _("Every attempt that runs now can write nothing more: not even a commit under way."),
                "bad",
            ),
            Effect(
                "lost",
                _("Workers claim anew and take the jobs back; what is lost is not charged to their budgets."),
            ),
            Effect(
                "unknown", _("What is being sent becomes unknown: inquiry first, then a case each."), "unk"
            ),
            Effect(
                "running", _("No process is stopped. Old code may run on; whatever it writes is refused.")
            ),
        ]

    def seen(self) -> dict[str, Any]:
        return {"epoch": self.around.scheduler.epoch}

    def fresh(self) -> Any:
        return actforms.RaiseForm(initial=self.seen(), place=environment.word())

    def form(self) -> Any:
        return actforms.RaiseForm(self.request.POST, place=environment.word())

    def act(self, data: dict[str, Any]) -> None:
        asked: dict[str, Any] = {
            "actor": self.request.user,
            "expected": data["epoch"],
            "reason": data["reason"],
            "floor": data["floor"] or 0,
            "close_claims": data["close_claims"],
        }
        if cluster.takes_two():
            raising.propose(**asked)
            self.tell(_("Asked for. Nothing is raised before another person confirms it, within the hour."))
        else:
            self.tell(RAISED % {"n": cluster.raise_epoch(**asked)})

    def _suspect(self) -> tuple[str, int] | None:
        """Return the only worker whose writes were refused within the hour, and how many were."""
        newest = FenceRefusal.objects.filter(at__gte=self.around.now - HOUR).order_by("-at")
        counted = Counter(newest.values_list("worker_id", flat=True)[:REFUSALS])
        known = {worker.id for worker in self.around.workers if worker.fenced_at is None}
        if len(counted) != 1 or not counted.keys() <= known:
            return None
        return counted.most_common(1)[0]


class Answer(SchedulerAct):
    """A second person's word on a raise that was asked for."""

    @cached_property
    def asked(self) -> RaiseProposal:
        """The raise that the address names."""
        try:
            return raising.find(self.kwargs["proposal_id"])
        except Refused as refused:
            raise Http404(str(refused)) from None

    @property
    def own(self) -> bool:
        """Whether who looks asked for it himself."""
        return raising.is_own(self.asked, self.request.user)

    def page(self) -> dict[str, Any]:
        then = json.loads(self.asked.price)
        then["amounts"] = [(Decimal(a["amount"]), a["currency"]) for a in then["amounts"] if a["amount"]]
        return super().page() | {
            "asked": self.asked,
            "own": self.own,
            "then": then,
            "price": exposure.of_all("default"),
        }

    def title(self) -> str:
        old = self.asked.epoch
        new = max(old, self.asked.floor) + 1
        return _("Raise the epoch from %(old)s to %(new)s") % {"old": old, "new": new}

    def closed(self) -> str:
        asked, around = self.asked, self.around
        if asked.decision == "approved":
            return _("%(by)s has confirmed it.") % {"by": asked.decided_by}
        if asked.decision == "rejected":
            return _("%(by)s has declined it: %(why)s") % {"by": asked.decided_by, "why": asked.note}
        if asked.epoch != around.scheduler.epoch:
            return _("The epoch is another one by now.")
        if asked.decision or asked.expires_at <= around.now:
            return _("It has run out; it must be asked for anew.")
        if not any(self.request.user.has_perm(needed) for needed in (RAISE, APPROVE)):
            return _(
                "Who confirms or declines it needs the permission to raise the epoch or to approve rulings."
            )
        return ""


class ConfirmRaise(Answer):
    """Raise the epoch as another person asked for it."""

    template_name = "console/act/raise_confirm.html"
    form_class = actforms.ConfirmForm
    verb, icon, dear, recent = gettext_lazy("Confirm and raise the epoch"), "n-epoch", True, True

    def closed(self) -> str:
        if not super().closed() and self.own:
            return _("You asked for it; another person must confirm it. You may take it back.")
        return super().closed()

    def effects(self) -> list[Effect]:
        return RaiseEpoch.consequences()

    def seen(self) -> dict[str, Any]:
        return {"epoch": self.asked.epoch}

    def fresh(self) -> Any:
        return actforms.ConfirmForm(initial=self.seen(), place=environment.word())

    def form(self) -> Any:
        return actforms.ConfirmForm(self.request.POST, place=environment.word())

    def act(self, data: dict[str, Any]) -> None:
        if data["epoch"] != self.asked.epoch:
            raise Refused("EPOCH_MOVED", expected=data["epoch"], found=self.asked.epoch)
        new = raising.approve(self.asked.pk, actor=self.request.user, reason=data["reason"])
        self.tell(RAISED % {"n": new})


class DeclineRaise(Answer):
    """Decline what another asked for, or take back what one asked for oneself."""

    template_name = "console/act/raise_confirm.html"
    icon = "x"

    @property
    def verb(self) -> Any:
        """What the button says, to whom asked and to others."""
        return _("Take it back") if self.own else _("Decline the raise")

    def effects(self) -> list[Effect]:
        return [Effect("check", _("Nothing is raised; who asked is told who declined it, and why."))]

    def act(self, data: dict[str, Any]) -> None:
        raising.reject(self.asked.pk, actor=self.request.user, reason=data["reason"])
        self.tell(_("It is taken back.") if self.own else _("The raise is declined."))
