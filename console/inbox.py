"""Which open case comes first: contradictions, then what is past its SLA, then amount × age, then age.

The order moves with the clock, so no index holds it: the open cases are few rows of a partial index, of which
a bounded number is read and ranked here. Contradictions are read beside them, so that none is ever cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from console import bounded
from jobs.models import Case
from jobs.models.case import CaseKind

READ = 5000
"""Open cases ranked, the oldest ones; beyond that it is one outage, and the filters tell it apart."""
SIZE = 50
COUNTED = 999

LANES = ("contradicted", "breached", "open")


@dataclass(frozen=True)
class Line:
    """One case as the list shows it."""

    case: Case
    lane: str
    first: bool
    """Whether a lane begins with it."""
    parked: bool
    owned: bool


@dataclass(frozen=True)
class Stretch:
    """One page of the list; `cut`: there are more open cases than were ranked."""

    lines: list[Line]
    page: int
    more: bool
    total: bounded.Count
    lanes: dict[str, int]
    cut: bool


@dataclass(frozen=True)
class Waiting:
    """How many cases wait for a person, and whether one of them cannot wait any longer."""

    count: bounded.Count
    urgent: bool
    since: datetime | None


NOTHING = Waiting(bounded.Count(0), urgent=False, since=None)


def open_cases() -> QuerySet[Case]:
    """Return the cases that nobody has closed (`case_open`)."""
    cases: QuerySet[Case] = Case.objects.filter(closed_at__isnull=True)
    return cases


def waiting(now: datetime) -> Waiting:
    """Count what waits, reading a bounded number of rows."""
    urgent = Q(kind=CaseKind.CONTRADICTION) | Q(sla_due_at__lte=now)
    oldest = open_cases().order_by("opened_at")[: COUNTED + 1]
    found = oldest.aggregate(n=Count("id"), urgent=Count("id", filter=urgent), since=Min("opened_at"))
    count = bounded.Count(min(found["n"], COUNTED), found["n"] > COUNTED)
    return Waiting(count, found["urgent"] > 0, found["since"])


def lane(kind: str, due: datetime | None, now: datetime) -> str:
    """Return which part of the list a case belongs to."""
    if kind == CaseKind.CONTRADICTION:
        return "contradicted"
    return "breached" if due is not None and due <= now else "open"


def read(matching: QuerySet[Case], *, page: int, now: datetime) -> Stretch:
    """Return one page of the open cases among `matching`, in order, in three queries."""
    light = ("id", "kind", "sla_due_at", "amount", "opened_at")
    rows = list(matching.order_by("opened_at", "id").values_list(*light)[: READ + 1])
    cut = len(rows) > READ
    found = {row[0]: row for row in rows[:READ]}
    if cut:
        loud = matching.filter(kind=CaseKind.CONTRADICTION).order_by("opened_at", "id")
        found |= {row[0]: row for row in loud.values_list(*light)[:READ]}
    ranked = sorted(found.values(), key=lambda row: _rank(row, now))
    lanes = [lane(row[1], row[2], now) for row in ranked]
    start = (page - 1) * SIZE
    here = [row[0] for row in ranked[start : start + SIZE]]
    cases = Case.objects.in_bulk(here)
    lines = [
        Line(
            cases[key],
            lanes[start + n],
            first=n == 0 or lanes[start + n] != lanes[start + n - 1],
            parked=parked(cases[key], now),
            owned=owned(cases[key], now),
        )
        for n, key in enumerate(here)
    ]
    sums = {name: lanes.count(name) for name in LANES}
    return Stretch(lines, page, len(ranked) > start + SIZE, bounded.Count(len(ranked), cut), sums, cut)


def parked(case: Case, now: datetime) -> bool:
    """Whether somebody put it aside until an instant that is still to come."""
    return case.parked_until is not None and case.parked_until > now


def owned(case: Case, now: datetime) -> bool:
    """Whether somebody has taken it, and still has it."""
    return bool(case.owner) and (case.owned_until is None or case.owned_until > now)


def _rank(row: Any, now: datetime) -> Any:
    key, kind, due, amount, opened_at = row
    age = Decimal(max(0, int((now - opened_at).total_seconds())))
    stake = abs(amount) * age if amount is not None else Decimal(0)
    return LANES.index(lane(kind, due, now)), -stake, opened_at, key
