"""What is told of queues: whether each is paused, by whom and why, and how much is ready in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs import handlers
from jobs.ledger import indexed
from jobs.ledger.clock import clock
from jobs.models import Job, Queue

SHOWN = 200
COUNTED = 10_000


def listed(*, only: Collection[str] = (), using: str = DEFAULT_DB_ALIAS) -> list[dict[str, Any]]:
    """Return the queues that anybody has said something about or that hold ready jobs, by name.

    `only` narrows to these names. Counts stop at COUNTED.
    """
    said = Queue.objects.using(using).order_by("name").values_list("name", flat=True)[:SHOWN]
    declared = {handler.queue for handler in handlers.registered()}
    names = sorted(only) or sorted({*said, *declared, *with_ready_jobs(using)})
    return [told(name, using) for name in names[:SHOWN]]


def told(name: str, using: str = DEFAULT_DB_ALIAS) -> dict[str, Any]:
    """Return one queue; one that nobody has said anything about is open."""
    row = Queue.objects.using(using).filter(name=name).first()
    until = row.paused_until if row else None
    paused = row is not None and row.paused_at is not None and (until is None or until > clock(using))
    ready = indexed.ready(Job.objects.using(using).filter(queue=name)).order_by()[: COUNTED + 1].count()
    return {
        "name": name,
        "paused": paused,
        "paused_at": row.paused_at if row and paused else None,
        "paused_until": until if paused else None,
        "paused_by": row.paused_by if row and paused else "",
        "reason": row.pause_reason if row and paused else "",
        "ready": min(ready, COUNTED),
        "ready_is_exact": ready <= COUNTED,
    }


def with_ready_jobs(using: str = DEFAULT_DB_ALIAS, *, most: int = SHOWN) -> Iterator[str]:
    """Yield the queues in which something is ready, skipping along the index: a full one hides none."""
    ready = indexed.ready(Job.objects.using(using)).order_by("queue").values_list("queue", flat=True)
    name = ready.first()
    for _ in range(most):
        if name is None:
            return
        yield name
        name = ready.filter(queue__gt=name).first()
