"""The closed cases: the one closed last comes first, and each says how it ended and who decided."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F, Q, QuerySet

from console import kindred, wording
from jobs.models import Case, Ruling
from jobs.models.case import ClosedAs

SIZE = 30
WINDOW = 5_000
"""A rare match is looked for among so many of them, and then further back where one asks for it."""


@dataclass(frozen=True)
class Ended:
    """One closed case as the list shows it."""

    case: Case
    end: str
    """The verdict in words; else how it ended without one."""
    ruling: Any
    took: timedelta
    target: str


@dataclass(frozen=True)
class Stretch:
    """One page; `cut`: it ended because enough was looked at, so that the next may hold more."""

    lines: list[Ended]
    next: uuid.UUID | None
    cut: bool


def cases() -> QuerySet[Case]:
    """Return the cases that are closed (`case_closed`)."""
    found: QuerySet[Case] = Case.objects.filter(closed_at__isnull=False)
    return found


def read(matching: QuerySet[Case], *, after: uuid.UUID | None = None, size: int | None = None) -> Stretch:
    """Return the page of the closed cases among `matching` that begins behind a case."""
    size = size or SIZE
    rest = cases()
    if after is not None and (last := cases().filter(pk=after).first()):
        matching, rest = matching.filter(_behind(last)), rest.filter(_behind(last))
    order = ("-closed_at", "-id")
    # These two columns alone are read from the index itself.
    edge = rest.order_by(*order).values_list("closed_at", "id", named=True)[WINDOW - 1 : WINDOW].first()
    if edge is not None:
        matching = matching.filter(closed_at__gte=edge.closed_at)
    rows = list(matching.annotate(target=F("effect__target")).order_by(*order)[: size + 1])
    if len(rows) > size:
        return Stretch(lines(rows[:size]), rows[size - 1].pk, cut=False)
    return Stretch(lines(rows), edge.id if edge else None, cut=edge is not None)


def lines(found: list[Any]) -> list[Ended]:
    """Return closed cases with the ruling that each ended by, in one query."""
    ruled = Ruling.objects.filter(case__in=[case.pk for case in found]).order_by("id")
    rulings = {row.case_id: row for row in ruled.values_list(*kindred.RULED, named=True)}
    verdicts, words = wording.verdicts(), kindred.closed_words()
    shown = []
    for case in found:
        # A sending that was approved, and whose job then ended, is moot: nobody's word closed it.
        ruling = rulings.get(case.pk) if case.closed_as == ClosedAs.RULED else None
        end = verdicts.get(ruling.verdict, ruling.verdict) if ruling else words[case.closed_as]
        shown.append(Ended(case, end, ruling, case.closed_at - case.opened_at, case.target))
    return shown


def _behind(last: Case) -> Q:
    # The first condition alone leads along the index; the others settle what was closed at one instant.
    here = Q(closed_at__lt=last.closed_at) | Q(closed_at=last.closed_at, id__lt=last.pk)
    return Q(closed_at__lte=last.closed_at) & here
