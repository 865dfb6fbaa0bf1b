"""The workers: who claims, when each was heard of last, what it knows and holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from console.pages.base import Page
from jobs.explain import WORKER_TTL
from jobs.models import Worker

SHOWN = 100
LATE = timedelta(seconds=30)
"""Two beats and a bit: worth a look, no reason to worry."""


@dataclass(frozen=True)
class WorkerRow:
    """One worker as the page shows it. `state`: beating, late, silent, stopping, stopped or fenced."""

    worker: Worker
    state: str
    old_epoch: bool
    passes: list[tuple[str, datetime]]

    @property
    def queues(self) -> str:
        """Return the queues that it serves."""
        return ", ".join(map(str, self.worker.queues))

    @property
    def kinds(self) -> str:
        """Return the kinds that it runs."""
        return ", ".join(map(str, self.worker.kinds))


class WorkersPage(Page):
    """All workers of the last day, those at work first."""

    template_name = "console/workers/page.html"
    folder = "console/workers"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": _("Workers")}

    def table(self) -> dict[str, Any]:
        """Return the workers that have not stopped, and the last that have."""
        stopped = Worker.objects.exclude(stopped_at=None).order_by("-stopped_at", "id")[:20]
        rows = [self._row(worker) for worker in [*self.around.workers[:SHOWN], *stopped]]
        order = ["silent", "late", "fenced", "beating", "stopping", "stopped"]
        rows.sort(key=lambda r: (order.index(r.state), r.worker.id if r.state != "stopped" else ""))
        return {"workers": rows, "more": len(self.around.workers) > SHOWN, "limit": SHOWN}

    def _row(self, worker: Worker) -> WorkerRow:
        return WorkerRow(
            worker,
            self._state(worker),
            worker.scheduler_epoch < self.around.scheduler.epoch and worker.stopped_at is None,
            _passes(worker),
        )

    def _state(self, worker: Worker) -> str:
        unheard = self.around.now - worker.beat_at
        if worker.stopped_at is not None:
            return "stopped"
        if worker.fenced_at is not None:
            return "fenced"
        if unheard >= WORKER_TTL:
            return "silent"
        if worker.stopping_at is not None:
            return "stopping"
        return "late" if unheard >= LATE else "beating"


def _passes(worker: Worker) -> list[tuple[str, datetime]]:
    """Return when each of the worker's loops last got through; what is no instant is left out."""
    found = []
    for name, value in sorted(worker.passes.items()):
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            continue
        if moment.tzinfo is not None:
            found.append((name, moment))
    return found
