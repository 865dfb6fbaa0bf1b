"""The queues: paused by whom and why, how much waits, what runs, who serves them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from console import bounded, charts, figures, needs
from console.pages.base import Page
from jobs import handlers
from jobs.ledger import indexed, metrics
from jobs.ledger.metrics import Waiting
from jobs.ledger.reading import reading
from jobs.models import Job, Queue

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
    spark: str = ""


class QueuesPage(Page):
    """All queues that anybody has said something about, works in or waits in."""

    template_name = "console/queues/page.html"
    folder = "console/queues"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": gettext_lazy("Queues")}

    def table(self) -> dict[str, Any]:
        """Return the queues, each with its own depth."""
        ready = _ready()
        running = _by_queue(indexed.running(Job.objects.all()))
        later = _by_queue(indexed.due(Job.objects.all()))
        series = figures.commits_by_queue(self.around.now)
        serving = Counter(name for worker in self.around.live for name in set(worker.queues))
        names = self._names({*ready, *running, *later, *series} | (set(serving) - {"*"}))
        # What is ready was read of the first queues by name, to which these need not belong.
        paused = {p.queue.name: p for p in needs.paused(self.around)} if len(names) > SHOWN else {}
        rows = []
        for name in names[:SHOWN]:
            waiting = ready.get(name, Waiting(name, 0, None))
            depth = bounded.Count(min(waiting.depth, bounded.LIMIT), waiting.depth > bounded.LIMIT)
            commits = series.get(name, [])
            rows.append(
                QueueRow(
                    name=name,
                    pause=self.around.paused.get(name),
                    ready=paused[name].ready if name in paused else depth,
                    oldest=paused[name].oldest if name in paused else waiting.oldest_at,
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
        paused = set(self.around.paused)
        # What is paused comes first also where the list is cut: only from here a person resumes it.
        return sorted(seen | declared | paused | set(said), key=lambda name: (name not in paused, name))


def _ready() -> dict[str, Waiting]:
    """Return what is ready in each queue, up to one more than is told, in one statement."""
    with reading(DEFAULT_DB_ALIAS) as session:
        return {found.queue: found for found in metrics.ready(session, queues=SHOWN, bound=bounded.LIMIT + 1)}


def _by_queue(jobs: QuerySet[Job]) -> Counter[str]:
    """Return how many jobs of a small set are in each queue; the set is read up to the limit."""
    return Counter(jobs.order_by().values_list("queue", flat=True)[: bounded.LIMIT])
