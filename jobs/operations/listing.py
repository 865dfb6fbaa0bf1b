"""A page of jobs, newest first, at a bounded price whatever the filter."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from jobs import searching
from jobs.models import Job
from jobs.searching import Attribute
from jobs.status import JobStatus

M = TypeVar("M", bound=Model)
WINDOW = 50_000
"""A rare match is looked for in so many of the newest rows, and not in all of a table of millions."""
INDEXED = frozenset({"blocked", "cancelled", "failed", "running", "skipped", "uncertain"})
"""Statuses that an index of their own finds (see Job.Meta.indexes)."""


@dataclass(frozen=True)
class Page:
    """Some jobs; `before` is where the next page begins, None when there is none.

    `cut` says that the page ended because enough rows were looked at, so that the next may hold more.
    """

    jobs: list[Job]
    before: uuid.UUID | None
    cut: bool


def newest(
    *,
    statuses: Sequence[str] = (),
    kind: str = "",
    queue: str = "",
    key: str = "",
    label: str = "",
    attributes: Sequence[Attribute] = (),
    before: uuid.UUID | None = None,
    limit: int,
) -> Page:
    """Return up to `limit` jobs older than `before` for which all that is given holds."""
    exact = {"kind": kind, "queue": queue, "unique_key": key, "label__icontains": label}
    matching = Job.objects.filter(**{name: value for name, value in exact.items() if value})
    if statuses:
        matching = matching.filter(status__in=[JobStatus(status) for status in statuses])
    wanted = searching.rarest_first(attributes)
    matching = searching.having(matching, wanted[1:])
    scope: QuerySet[Any] = searching.rows(wanted[0]) if wanted else Job.objects.all()
    listed = _older(searching.candidates(matching, scope), before)
    floor = None
    if wanted or not statuses or not INDEXED.issuperset(statuses):
        floor = searching.window(_older(scope, before), WINDOW)
    if floor is not None:
        listed = searching.bounded(listed, "gte", floor)
    rows, places = searching.first(matching, listed, limit + 1)
    if len(places) > limit:
        return Page([row for row in rows if row.id != places[limit]], places[limit - 1], cut=False)
    return Page(rows, floor, cut=floor is not None)


def _older(listed: QuerySet[M], before: uuid.UUID | None) -> QuerySet[M]:
    return listed if before is None else searching.bounded(listed, "lt", before)
