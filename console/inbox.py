"""Which open case comes first: contradictions, then what is past its SLA, then amount × age, then age.

The order moves with the clock, so no index holds it: the open cases are few rows of a partial index, of which
a bounded number is read and ranked here. Contradictions are read beside them, so that none is ever cut off.
Many unknown outcomes of one effect kind, with one error and near in time, are one outage and one line.
"""

from __future__ import annotations

import math
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Case as DbCase
from django.db.models import (
    CharField,
    Count,
    FloatField,
    Func,
    Max,
    Min,
    Q,
    QuerySet,
    SmallIntegerField,
    Value,
    When,
)
from django.db.models.functions import Abs, Cast, Coalesce, Greatest, Replace

from console import bounded
from jobs.ledger.epochs import Epoch
from jobs.models import Case, Evidence
from jobs.models.case import CaseKind

READ = 5000
"""Open cases ranked, the oldest ones; beyond that it is one outage, and the filters tell it apart."""
SIZE = 50
COUNTED = 999
MANY, NEAR = 5, 600
"""So many cases alike, none later than so many seconds after the one before, are shown as one line."""

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
class Group:
    """An outage: cases alike and near in time. Its name is its oldest case's."""

    id: uuid.UUID
    n: int
    since: datetime
    sums: list[tuple[str, Decimal]]


NO_GROUPS: Mapping[str, Group] = {}


@dataclass(frozen=True)
class Line:
    """One case as the list shows it, or with `group` the most pressing of an outage."""

    case: Case
    lane: str
    first: bool
    """Whether a lane begins with it."""
    parked: bool
    owned: bool
    group: Group | None
    inquiry: str
    """What the provider said last; empty where it was not asked."""


@dataclass(frozen=True)
class Stretch:
    """One page of the list; `cut`: there are more open cases than were ranked."""

    lines: list[Line]
    total: bounded.Count
    lanes: dict[str, int]
    sums: list[tuple[str, Decimal]]
    cut: bool
    grouped: int
    """Cases that stand in the list as lines of an outage."""
    next: uuid.UUID | None = None
    back: uuid.UUID | None = None
    """The case after which the page before begins; None on the first page and on the second."""


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


def read(
    matching: QuerySet[Case],
    *,
    now: datetime,
    after: uuid.UUID | None = None,
    like: uuid.UUID | None = None,
    size: int | None = None,
) -> Stretch:
    """Return the page of the open cases among `matching` that begins after a case, most pressing first.

    `like` keeps the outage that this case belongs to, each of its cases a line of its own.
    """
    size = size or SIZE
    ranked, cut = rank(matching, now)
    groups = _groups(ranked)
    if like is not None:
        ranked = outage_of(ranked, like, now)
        groups = {}
    shown = _lines(ranked, groups)
    start = _place(shown, after, now)
    part = shown[start : start + size]
    lanes = Counter(map(itemgetter(0), ranked))
    return Stretch(
        lines(part, now, groups),
        bounded.Count(len(ranked), cut),
        {name: lanes[place] for place, name in enumerate(LANES)},
        _sums(ranked),
        cut,
        len(groups),
        next=uuid.UUID(part[-1].id) if len(shown) > start + size else None,
        back=uuid.UUID(shown[start - size - 1].id) if start > size else None,
    )


def lines(part: Sequence[Row], now: datetime, groups: Mapping[str, Group] = NO_GROUPS) -> list[Line]:
    """Return ranked cases as the list shows them, in three queries; one that is gone is left out."""
    found = Case.objects.in_bulk([uuid.UUID(row.id) for row in part])
    said = _inquiries(found.values())
    shown: list[Line] = []
    for row in part:
        if (case := found.get(uuid.UUID(row.id))) is None:
            continue
        here = LANES[row.lane]
        first = not shown or shown[-1].lane != here
        mine = owned(case, now), parked(case, now)
        shown.append(
            Line(case, here, first, mine[1], mine[0], groups.get(row.id), said.get(case.effect_id, ""))
        )
    return shown


class _AsItIs(Func):  # type: ignore[misc,unused-ignore]
    """A number as the database gives it: Django would ask of each once more whether it is one."""

    template = "%(expressions)s"

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []


def rank(matching: QuerySet[Case], now: datetime) -> tuple[list[Row], bool]:
    """Return the open cases among `matching`, the most pressing first, and whether some were left out."""
    rows = _rows(matching.order_by("opened_at", "id")[: READ + 1], now)
    cut = len(rows) > READ
    if cut:
        loud = matching.filter(kind=CaseKind.CONTRADICTION).order_by("opened_at", "id")[:READ]
        rows = list({row.id: row for row in [*rows[:READ], *_rows(loud, now)]}.values())
    return sorted(rows), cut


def _rows(cases: QuerySet[Case], now: datetime) -> list[Row]:
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
    return list(map(Row._make, cases.values_list(*columns)))


def following(user: str, now: datetime, *, than: uuid.UUID | None = None) -> uuid.UUID | None:
    """Return the most pressing case that is neither parked nor another person's; `than` is passed over."""
    free = Q(owner="") | Q(owner=user) | Q(owned_until__lte=now)
    here = open_cases().filter(free).exclude(parked_until__gt=now)
    if than is not None:
        here = here.exclude(pk=than)
    ranked, _ = rank(here, now)
    return uuid.UUID(ranked[0].id) if ranked else None


def parked(case: Case, now: datetime) -> bool:
    """Whether somebody put it aside until an instant that is still to come."""
    return case.parked_until is not None and case.parked_until > now


def owned(case: Case, now: datetime) -> bool:
    """Whether somebody has taken it, and still has it."""
    return bool(case.owner) and (case.owned_until is None or case.owned_until > now)


def _outages(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the unknown outcomes by effect kind, error and time, each part oldest first."""
    parts: dict[tuple[str, str], list[list[Row]]] = {}
    for row in sorted((r for r in rows if r.kind == "unknown"), key=itemgetter(2, 3)):
        mine = parts.setdefault((row.effect_kind, row.cause), [])
        if mine and row.opened - mine[-1][-1].opened <= NEAR:
            mine[-1].append(row)
        else:
            mine.append([row])
    return [part for mine in parts.values() for part in mine]


def _groups(rows: list[Row]) -> dict[str, Group]:
    """Return the outage of each case that belongs to one."""
    found: dict[str, Group] = {}
    for part in _outages(rows):
        if len(part) >= MANY:
            since = datetime.fromtimestamp(part[0].opened, UTC)
            group = Group(uuid.UUID(part[0].id), len(part), since, _sums(part))
            found |= dict.fromkeys((row.id for row in part), group)
    return found


def outage_of(ranked: list[Row], case: uuid.UUID, now: datetime) -> list[Row]:
    """Return the cases of the outage that a case belongs to; that case may have been closed meanwhile."""
    name = next((row for row in ranked if row.id == case.hex), None)
    rows = ranked
    if name is None:
        gone = _rows(Case.objects.filter(pk=case), now)
        if not gone:
            return []
        name = gone[0]
        rows = [*ranked, name]
    members = {row.id for part in _outages(rows) if name in part for row in part}
    return [row for row in ranked if row.id in members or row.id == case.hex]


def _lines(ranked: list[Row], groups: dict[str, Group]) -> list[Row]:
    """Return what gets a line: of an outage only its most pressing case."""
    told: set[int] = set()
    shown = []
    for row in ranked:
        group = groups.get(row.id)
        if group is None:
            shown.append(row)
        elif id(group) not in told:
            told.add(id(group))
            shown.append(row)
    return shown


def _place(shown: list[Row], after: uuid.UUID | None, now: datetime) -> int:
    """Return where the page begins; a case that has left the list is followed by what came after it."""
    if after is None:
        return 0
    for index, row in enumerate(shown):
        if row.id == after.hex:
            return index + 1
    gone = _rows(Case.objects.filter(pk=after), now)
    return bisect_right(shown, gone[0]) if gone else 0


def _sums(rows: Iterable[Row]) -> list[tuple[str, Decimal]]:
    """Return what is at stake, by currency, the largest first."""
    sums: dict[str, list[float]] = {}
    for row in rows:
        if row.amount is not None:
            sums.setdefault(row.currency, []).append(row.amount)
    exact = [(currency, Decimal(f"{math.fsum(amounts):.4f}")) for currency, amounts in sums.items()]
    return sorted(exact, key=lambda pair: -abs(pair[1]))[:3]


def _inquiries(cases: Iterable[Case]) -> dict[str, str]:
    """Return what the provider said last of each case's effect, in two queries along an index."""
    effects = [case.effect_id for case in cases]
    newest = Evidence.objects.filter(effect__in=effects, source="inquiry").order_by()
    ids = [row["last"] for row in newest.values("effect").annotate(last=Max("id"))]
    return dict(Evidence.objects.filter(pk__in=ids).values_list("effect_id", "outcome"))
