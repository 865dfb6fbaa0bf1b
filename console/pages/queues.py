"""The queues: paused by whom and why, how much waits, what runs, who serves them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, QuerySet
from django.utils.translation import gettext_lazy

from console import bounded, charts, figures
from console.charts import Bar
from console.pages.base import Page
from jobs import handlers
from jobs.ledger import indexed
from jobs.models import Job, Queue
from jobs.operations.queues import with_ready_jobs

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
        return {"title": gettext_lazy("Queues")}

    def table(self) -> dict[str, Any]:
        """Return the queues. Depths are counted one by one, or a full queue would hide the rest."""
        running = _by_queue(indexed.running(Job.objects.all()))
        later = _by_queue(indexed.due(Job.objects.all()))
        series = figures.commits_by_queue(self.around.now)
        serving = Counter(name for worker in self.around.live for name in set(worker.queues))
        names = self._names({*running, *later, *series} | (set(serving) - {"*"}))
        rows = []
        for name in names[:SHOWN]:
            depth, oldest = _depth(name)
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
        declared = {handler.queue for handler in handlers.registered()}
        return sorted(seen | declared | set(said) | set(with_ready_jobs(most=SHOWN)))


def _depth(name: str) -> tuple[bounded.Count, datetime | None]:
    """Return how many jobs are ready in a queue and since when, read from the first rows of its index."""
    first = indexed.ready(Job.objects.filter(queue=name)).order_by()[: bounded.LIMIT + 1]
    found = first.aggregate(n=Count("id"), oldest=Min("ready_at"))
    return bounded.Count(min(found["n"], bounded.LIMIT), found["n"] > bounded.LIMIT), found["oldest"]


def _by_queue(jobs: QuerySet[Job]) -> Counter[str]:
    """Return how many jobs of a small set are in each queue; the set is read up to the limit."""
    return Counter(jobs.order_by().values_list("queue", flat=True)[: bounded.LIMIT])
