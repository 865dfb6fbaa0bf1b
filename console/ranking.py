"""The order of the open cases: contradictions, then what is past its SLA, then amount × age, then age.

The order moves with the clock, so no index holds it: the open cases are few rows of a partial index, of which
a bounded number is read and ranked here. Contradictions are read beside them, so that none is ever cut off.
"""

from __future__ import annotations

import math
import uuid
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Case as DbCase
from django.db.models import CharField, FloatField, Func, QuerySet, SmallIntegerField, Value, When
from django.db.models.functions import Abs, Cast, Coalesce, Greatest, Replace

from jobs.ledger.epochs import Epoch
from jobs.ledger.rows import fetch
from jobs.models import Case
from jobs.models.case import CaseKind

READ = 5000
"""Open cases ranked, the oldest ones; beyond that it is one outage, and the filters tell it apart."""
LANES = ("contradicted", "breached", "open")


class Row(NamedTuple):
    """What is read of a case, as texts and numbers: UUIDs, instants and decimals of 5,000 rows would take
    longer than all the rest. The first four are its rank: rows in their order are the list's order."""

    lane: int
    stake: float
    """Amount × age, negative: the most comes first."""
    opened: float
    """Seconds since 1970."""
    id: str
    """Hexadecimal digits."""
    kind: str
    amount: float | None
    effect_kind: str
    cause: str
    currency: str


@dataclass(frozen=True)
class Ranking:
    """The open cases in their order; `cut`: there are more than were read."""

    rows: list[Row]
    oldest: list[Row]
    """The same ones, the first that was opened first; contradictions read beside them at the end."""
    cut: bool


class _AsItIs(Func):  # type: ignore[misc,unused-ignore]
    """A number as the database gives it: Django would ask of each once more whether it is one."""

    template = "%(expressions)s"

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []


def rank(matching: QuerySet[Case], now: datetime) -> Ranking:
    """Return the open cases among `matching`, the most pressing first."""
    rows = rows_of(matching.order_by("opened_at", "id")[: READ + 1], now)
    cut = len(rows) > READ
    if cut:
        loud = matching.filter(kind=CaseKind.CONTRADICTION).order_by("opened_at", "id")[:READ]
        rows = list({row.id: row for row in [*rows[:READ], *rows_of(loud, now)]}.values())
    return Ranking(sorted(rows), rows, cut)


def rows_of(cases: QuerySet[Case], now: datetime) -> list[Row]:
    """Return what is read of cases, in the order of the query."""
    parts = When(kind=CaseKind.CONTRADICTION, then=0), When(sla_due_at__lte=now, then=1)
    lane = DbCase(*parts, default=2, output_field=SmallIntegerField())
    opened = Epoch("opened_at")
    stake = Abs(Cast("amount", FloatField())) * Greatest(Value(0.0), Value(now.timestamp()) - opened)
    columns = (
        _AsItIs(lane),
        _AsItIs(Coalesce(-stake, Value(0.0), output_field=FloatField())),
        _AsItIs(opened),
        Replace(Cast("id", CharField()), Value("-"), Value("")),
        "kind",
        _AsItIs(Cast("amount", FloatField())),
        "effect_kind",
        "cause",
        "currency",
    )
    # What `Row._make` does, without a call of Python for each row.
    return list(map(partial(tuple.__new__, Row), fetch(cases.values_list(*columns))))


def sums(rows: Iterable[Row]) -> list[tuple[str, Decimal]]:
    """Return what is at stake, by currency, the largest first."""
    found: dict[str, list[float]] = {}
    for currency, amount in map(itemgetter(8, 5), rows):
        if amount is not None:
            found.setdefault(currency, []).append(amount)
    exact = [(currency, Decimal(f"{math.fsum(amounts):.4f}")) for currency, amounts in found.items()]
    return sorted(exact, key=lambda pair: -abs(pair[1]))


def place(shown: list[Row], after: uuid.UUID | None, now: datetime) -> int:
    """Return where the page begins; a case that has left the list is followed by what came after it."""
    if after is None:
        return 0
    for index, row in enumerate(shown):
        if row.id == after.hex:
            return index + 1
    gone = rows_of(Case.objects.filter(pk=after), now)
    return bisect_right(shown, gone[0]) if gone else 0
