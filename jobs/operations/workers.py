"""What is told of worker processes: the newest beats first, each with its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count

from jobs import explain
from jobs.ledger import indexed
from jobs.models import Job, Worker

FIELDS = (
    "id", "host", "pid", "version", "queues", "kinds", "concurrency", "scheduler_epoch", "started_at",
    "beat_at", "stopping_at", "stopped_at", "fenced_at", "fenced_by",
)  # fmt: skip


def listed(using: str, *, limit: int) -> list[dict[str, Any]]:
    """Return the workers heard of last, with their leases as the database counts them."""
    around = explain.Surroundings(using=using)
    leases: Mapping[str | None, int] = dict(
        indexed.running(Job.objects.using(using))
        .order_by("worker_id")
        .values_list("worker_id")
        .annotate(leases=Count("pk"))
    )
    rows = Worker.objects.using(using).order_by("-beat_at", "id")[:limit]
    return [
        {name: getattr(row, name) for name in FIELDS}
        | {"state": _state(row, around), "leases": leases.get(row.id, 0)}
        for row in rows
    ]


def _state(worker: Worker, around: explain.Surroundings) -> str:
    if worker.fenced_at is not None:
        return "fenced"
    if worker.stopped_at is not None:
        return "stopped"
    if worker.beat_at <= around.now - explain.WORKER_TTL:
        return "silent"
    if worker.scheduler_epoch < around.scheduler.epoch:
        return "old epoch"
    return "stopping" if worker.stopping_at else "live"
