"""Outages: unknown outcomes of one effect kind, with one error and near in time, told as one line."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from operator import itemgetter, sub

from console import ranking
from console.ranking import Row
from jobs.ledger.epochs import Epoch
from jobs.ledger.rows import fetch
from jobs.models import Case
from jobs.models.case import CaseKind

MANY, NEAR = 5, 600
"""So many cases alike, none later than so many seconds after the one before, are shown as one line."""
OPENED, ID, ALIKE = itemgetter(2), itemgetter(3), itemgetter(6, 7)


@dataclass(frozen=True)
class Group:
    """An outage: cases alike and near in time. Its name is its oldest case's."""

    rows: Sequence[Row] = field(repr=False)
    """The oldest first."""

    @property
    def id(self) -> uuid.UUID:
        return uuid.UUID(self.rows[0].id)

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.rows[0].opened, UTC)

    @property
    def sums(self) -> list[tuple[str, Decimal]]:
        """What is at stake, by currency."""
        return ranking.sums(self.rows)


def parted(oldest: Sequence[Row]) -> list[list[Row]]:
    """Return the unknown outcomes by effect kind, error and time, each part oldest first as they came.

    Five thousand rows for each answer: what is done with each of them is done by the interpreter's own parts.
    """
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in oldest:
        if row.kind == "unknown":
            alike[ALIKE(row)].append(row)
    parts = []
    for rows in alike.values():
        times = list(map(OPENED, rows))
        gaps = map(sub, islice(times, 1, None), times)
        ends = [place for place, gap in enumerate(gaps, 1) if gap > NEAR]
        parts += [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]
    return parts


def groups(oldest: Sequence[Row]) -> dict[str, Group]:
    """Return the outage of each case that belongs to one."""
    found: dict[str, Group] = {}
    for part in parted(oldest):
        if len(part) >= MANY:
            found |= dict.fromkeys(map(ID, part), Group(part))
    return found


def outage_of(found: ranking.Ranking, case: uuid.UUID, now: datetime) -> list[Row]:
    """Return the cases of the outage that a case belongs to; that case may have been closed meanwhile."""
    name = next((row for row in found.rows if row.id == case.hex), None)
    oldest = found.oldest
    if name is None:
        gone = ranking.rows_of(Case.objects.filter(pk=case), now)
        if not gone:
            return []
        name = gone[0]
        oldest = sorted([*oldest, name], key=itemgetter(2, 3))
    members = {row.id for part in parted(oldest) if name in part for row in part}
    return [row for row in found.rows if row.id in members or row.id == case.hex]


def around(case: Case) -> tuple[int, datetime] | None:
    """Return how many open cases are of this one's outage, and since when; None where it is of none."""
    if case.kind != CaseKind.UNKNOWN or case.closed_at is not None:
        return None
    alike = Case.objects.filter(
        closed_at__isnull=True, kind=case.kind, effect_kind=case.effect_kind, cause=case.cause
    )
    rows = fetch(alike.order_by("opened_at", "id").values_list(Epoch("opened_at"))[: ranking.READ])
    times = [opened for (opened,) in rows]
    # The database may round the last digit of an instant another way.
    start = end = bisect_left(times, case.opened_at.timestamp() - 0.001)
    if start == len(times):  # one of very many, and not of the oldest
        return None
    while end < len(times) and (end == start or times[end] - times[end - 1] <= NEAR):
        end += 1
    while start and times[start] - times[start - 1] <= NEAR:
        start -= 1
    return (end - start, datetime.fromtimestamp(times[start], UTC)) if end - start >= MANY else None


def one_line_each(ranked: list[Row], found: dict[str, Group]) -> list[Row]:
    """Return what gets a line: of an outage only its most pressing case."""
    told: set[int] = set()
    shown = []
    for row in ranked:
        group = found.get(row.id)
        if group is None:
            shown.append(row)
        elif id(group) not in told:
            told.add(id(group))
            shown.append(row)
    return shown
