"""The queues: paused by whom and why, how much waits, what runs, who serves them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from console import bounded, charts, figures
from console.charts import Bar
from console.pages.base import Page
from jobs import handlers
from jobs.models import Job, Queue
from jobs.status import CLAIMABLE, JobStatus

SHOWN = 60


@dataclass
class QueueRow:
    """One queue as the page shows it."""

    name: str
    pause: Queue | None = None
    ready: bounded.Count = field(default_factory=lambda: bounded.Count(0))
    oldest: datetime | None = None
    later: int = 0
    running: int = 0
    workers: int = 0
    commits: int = 0
    spark: list[Bar] = field(default_factory=list)


class QueuesPage(Page):
    """All queues that anybody has said something about, works in or waits in."""

    template_name = "console/queues/page.html"
    folder = "console/queues"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": _("Queues")}

    def table(self) -> dict[str, Any]:
        """Return the queues. Depths are counted one by one, or a full queue would hide the rest."""
        running = _by_queue(status=JobStatus.RUNNING)
        later = _by_queue(ready_at__isnull=True, status__in=sorted(CLAIMABLE), hold_reason="")
        series = figures.commits_by_queue(self.around.now)
        serving = Counter(name for worker in self.around.live for name in set(worker.queues))
        names = self._names({*running, *later, *series} | (set(serving) - {"*"}))
        rows = []
        for name in names[:SHOWN]:
            waiting = Job.objects.filter(ready_at__isnull=False, queue=name)
            depth = bounded.count(waiting)
            oldest = (
                waiting.order_by("ready_at").values_list("ready_at", flat=True).first() if depth else None
            )
            commits = series.get(name, [])
            rows.append(
                QueueRow(
                    name=name,
                    pause=self.around.paused.get(name),
                    ready=depth,
                    oldest=oldest,
                    later=later[name],
                    running=running[name],
                    workers=serving[name] + serving["*"],
                    commits=sum(commits),
                    spark=charts.spark(commits),
                )
            )
        rows.sort(key=lambda r: (r.pause is None, r.name))
        return {"queues": rows, "more": len(names) > SHOWN, "limit": SHOWN}

    def _names(self, seen: set[str]) -> list[str]:
        said = Queue.objects.order_by("name").values_list("name", flat=True)[: SHOWN + 1]
        first = Job.objects.filter(ready_at__isnull=False).order_by().values_list("queue", flat=True)
        declared = {handler.queue for handler in handlers.registered()}
        return sorted(seen | declared | set(said) | set(first[: bounded.LIMIT]))


def _by_queue(**condition: Any) -> Counter[str]:
    """Return how many jobs of a small set are in each queue; the set is read up to the limit."""
    names = Job.objects.filter(**condition).order_by().values_list("queue", flat=True)
    return Counter(names[: bounded.LIMIT])
