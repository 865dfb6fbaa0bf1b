"""Epoch and claims: the one row that fences the cluster, who last changed it, and who is still behind."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext_lazy as _

from console import bounded, history
from console.pages.base import Page
from jobs.ledger import indexed
from jobs.models import AuditEntry, Change, FenceRefusal, Job
from jobs.operations import raising

VERBS = ("raise_epoch", "open_claims", "close_claims", "pause_queue", "resume_queue")
WINDOW = 50_000
SHOWN = 20
WATCHED = timedelta(hours=1)
"""How long after a raise the page tells of what it brought about, also when nothing old is left."""


class SchedulerPage(Page):
    """The scheduler row and what hangs on it."""

    template_name = "console/scheduler/page.html"
    folder = "console/scheduler"
    regions = ("state",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": _("Epoch and claims")}

    def _raise(self, old_leases: int, old_workers: int) -> dict[str, Any] | None:
        """Return what came of the last raise: what still goes on under older epochs, what was refused."""
        row = (
            AuditEntry.objects.filter(object_type="scheduler", object_id="1", action="raise_epoch")
            .order_by("-seq")
            .first()
        )
        since = row.at if row else self.around.now
        refused = bounded.count(FenceRefusal.objects.filter(at__gte=since, reason="EPOCH").order_by("-at"))
        if row is None or not (old_leases or old_workers or self.around.now - row.at < WATCHED):
            return None
        return {
            "entry": row,
            "refused": refused,
            "leases": old_leases,
            "over": not old_leases and not old_workers,
        }

    def state(self) -> dict[str, Any]:
        """Return the row, the leases by epoch, and the last acts on the cluster."""
        scheduler = self.around.scheduler
        running = indexed.running(Job.objects.all()).order_by()
        by_epoch = Counter(running.values_list("scheduler_epoch", flat=True)[: bounded.LIMIT])
        newest = Change.objects.aggregate(newest=Max("id"))["newest"] or 0
        acts = Change.objects.filter(id__gt=newest - WINDOW, verb__in=VERBS).order_by("-id")[:SHOWN]
        mark = scheduler.clock_high_water
        old_workers = [w for w in self.around.live if w.scheduler_epoch < scheduler.epoch]
        old_leases = sum(n for epoch, n in by_epoch.items() if epoch < scheduler.epoch)
        return {
            "scheduler": scheduler,
            "asked": raising.open_now(self.around.now, scheduler.epoch),
            "raised": self._raise(old_leases, len(old_workers)),
            "leases": sorted(by_epoch.items(), reverse=True),
            "workers": Counter(w.scheduler_epoch for w in self.around.live),
            "old_workers": old_workers,
            "acts": history.acts(list(acts)),
            "window": WINDOW,
            "clock_back": mark is not None and mark - self.around.now > timedelta(seconds=1),
        }
