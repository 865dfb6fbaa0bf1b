"""Walks the job table newest first, in bounded windows, so that no filter reads the whole of it.

A rare match in a million rows would otherwise be looked for in all of them at each refresh. What an index
finds by itself (a status that is not normal, a hold, a parent, what may be claimed) is walked along it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from console import bounded
from console.bounded import Count
from jobs.models import Job
from jobs.status import CLAIMABLE, JobStatus

WINDOW = 50_000
SIZE = 50
ABNORMAL = ("blocked", "cancelled", "failed", "skipped", "uncertain")
INDEXED = frozenset([*ABNORMAL, "running"])
"""Statuses that have a partial index of their own."""


@dataclass(frozen=True)
class Stretch:
    """One page of the walk. `cut`: it ended at the window, not at a full page or the last row."""

    jobs: list[Job]
    older: uuid.UUID | None = None
    newer: uuid.UUID | None = None
    cut: bool = False


def older(
    matching: QuerySet[Job], scope: QuerySet[Job], *, before: uuid.UUID | None, size: int = SIZE
) -> Stretch:
    """Return up to `size` jobs of `matching` older than `before`, out of the next `WINDOW` of `scope`."""
    if before is not None:
        matching, scope = matching.filter(id__lt=before), scope.filter(id__lt=before)
    floor = scope.order_by("-id").values_list("id", flat=True)[WINDOW - 1 : WINDOW].first()
    if floor is not None:
        matching = matching.filter(id__gte=floor)
    rows = list(matching.order_by("-id")[: size + 1])
    newer = rows[0].id if rows and before is not None else None
    if len(rows) > size:
        return Stretch(rows[:size], older=rows[size - 1].id, newer=newer)
    return Stretch(rows, older=floor, newer=newer, cut=floor is not None)


def newer(
    matching: QuerySet[Job], scope: QuerySet[Job], *, after: uuid.UUID, size: int = SIZE
) -> Stretch | None:
    """Return up to `size` jobs just newer than `after`, newest first; None if the first page holds them."""
    matching, scope = matching.filter(id__gt=after), scope.filter(id__gt=after)
    ceiling = scope.order_by("id").values_list("id", flat=True)[WINDOW - 1 : WINDOW].first()
    if ceiling is not None:
        matching = matching.filter(id__lte=ceiling)
    rows = list(matching.order_by("id")[: size + 1])
    if len(rows) <= size and ceiling is None:
        return None
    cut = len(rows) <= size
    rows = rows[:size][::-1]
    return Stretch(rows, older=rows[-1].id if rows else after, newer=ceiling if cut else rows[0].id, cut=cut)


def claimable() -> dict[str, list[uuid.UUID]] | None:
    """Return the ids of all pending and all waiting jobs, or None where they are too many to hold.

    Three partial indexes hold them between them: ready, due later, on hold.
    """
    sources = (
        Job.objects.filter(ready_at__isnull=False),
        Job.objects.filter(ready_at__isnull=True, status__in=sorted(CLAIMABLE), hold_reason=""),
        Job.objects.filter(~Q(hold_reason=""), ready_at__isnull=True, status__in=sorted(CLAIMABLE)),
    )
    found: dict[str, list[uuid.UUID]] = {JobStatus.PENDING: [], JobStatus.WAITING: []}
    for source in sources:
        rows = list(source.order_by().values_list("status", "id")[: bounded.LIMIT + 1])
        if len(rows) > bounded.LIMIT:
            return None
        for status, job_id in rows:
            found[status].append(job_id)
    return found


def counts() -> list[tuple[str, Count]]:
    """Return how many jobs there are of each status, reading a bounded number of rows."""
    held = claimable()
    newest: dict[str, Any] = Job.objects.order_by("-id")[: bounded.LIMIT * 2].aggregate(
        **{s: _of(s) for s in ("pending", "waiting", "succeeded")}, rows=_of(None)
    )
    big = newest["rows"] >= bounded.LIMIT * 2
    answer = []
    for status in JobStatus:
        if status in INDEXED:
            number = bounded.count(Job.objects.filter(status=status))
        elif status in CLAIMABLE and held is not None:
            number = _capped(len(held[status]), more=False)
        else:
            number = _capped(newest[status], more=big)
        answer.append((status.value, number))
    return answer


def _of(status: str | None) -> Any:
    from django.db.models import Count as CountRows

    return CountRows("id", filter=Q(status=status) if status else None)


def _capped(n: int, *, more: bool) -> Count:
    return Count(min(n, bounded.LIMIT), more or n > bounded.LIMIT)
