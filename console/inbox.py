"""The inbox: a page of the open cases in their order (console/ranking.py), an outage told as one line."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter

from django.db.models import F, Max, Q, QuerySet
from django.http import HttpRequest

from console import bounded, environment, outages, pinned, ranking
from console.outages import Group
from console.pinned import Pin
from console.ranking import LANES, Row
from jobs.ledger import counts
from jobs.models import Case, Evidence
from jobs.operations import approvals
from jobs.operations.approvals import Asked

SIZE = 30
COUNTED = 999
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
    asked: Asked | None = None
    """What somebody asks of a second person."""
    target: str = ""
    """To whom or what the effect goes."""


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
    new: int = 0
    """Lines that the page would show besides, were it loaded anew."""
    loud: int = 0
    """So many of them contradict what was recorded."""

    @property
    def shown(self) -> str:
        """Return which lines stand here, for the page to ask for the same ones."""
        return pinned.written((line.case.pk, line.lane, line.group is not None) for line in self.lines)


@dataclass(frozen=True)
class Waiting:
    """How many cases wait for a person, and whether one of them cannot wait any longer."""

    count: bounded.Count
    urgent: bool


def open_cases() -> QuerySet[Case]:
    """Return the cases that nobody has closed (`case_open`)."""
    cases: QuerySet[Case] = Case.objects.filter(closed_at__isnull=True)
    return cases


def waiting(now: datetime) -> Waiting:
    """Count what waits, reading a bounded number of rows."""
    n, urgent = counts.open_cases("default", now, most=COUNTED + 1)
    return Waiting(bounded.Count(min(n, COUNTED), n > COUNTED), urgent > 0)


def waiting_here(request: HttpRequest) -> Waiting:
    """Return what waits, counted once for each request: the menu says it, and so does a tab."""
    found: Waiting | None = getattr(request, "waiting", None)
    if found is None:
        found = waiting(environment.surroundings(request).now)
        request.waiting = found  # type: ignore[attr-defined]
    return found


def read(
    matching: QuerySet[Case],
    *,
    now: datetime,
    after: uuid.UUID | None = None,
    like: uuid.UUID | None = None,
    size: int | None = None,
    each: bool = False,
    pins: Sequence[Pin] = (),
) -> Stretch:
    """Return the page of the open cases among `matching` that begins after a case, most pressing first.

    `like` keeps the outage that this case belongs to; there, and with `each`, every case has its own line.
    `pins` are the lines that a person sees already; they stay, and what would come besides is counted.
    """
    size = size or SIZE
    found = ranking.rank(matching, now)
    if like is None:
        ranked, groups = found.rows, {} if each else outages.groups(found.oldest)
    else:
        ranked, groups = outages.outage_of(found, like, now), {}
    shown = outages.one_line_each(ranked, groups)
    start = ranking.place(shown, after, now)
    part = shown[start : start + size]
    kept = pinned.keep(pins, found, groups, part, now) if pins else pinned.Kept(part, groups, [])
    lanes = Counter(map(itemgetter(0), ranked))
    return Stretch(
        lines(kept.rows, now, kept.groups),
        bounded.Count(len(ranked), found.cut),
        {name: lanes[place] for place, name in enumerate(LANES)},
        ranking.sums(ranked),
        found.cut,
        len(groups),
        next=uuid.UUID(part[-1].id) if len(shown) > start + size else None,
        back=uuid.UUID(shown[start - size - 1].id) if start > size else None,
        new=len(kept.new),
        loud=sum(row.lane == 0 for row in kept.new),
    )


def lines(part: Sequence[Row], now: datetime, groups: Mapping[str, Group] = NO_GROUPS) -> list[Line]:
    """Return ranked cases as the list shows them, in two queries; one that is gone is left out."""
    cases = approvals.with_questions(Case.objects.annotate(target=F("effect__target")))
    found = cases.in_bulk([uuid.UUID(row.id) for row in part])
    said = _inquiries(found.values())
    shown: list[Line] = []
    for row in part:
        if (case := found.get(uuid.UUID(row.id))) is None:
            continue
        here = LANES[row.lane]
        first = not shown or shown[-1].lane != here
        shown.append(
            Line(
                case,
                here,
                first,
                parked=parked(case, now),
                owned=owned(case, now),
                group=groups.get(row.id),
                inquiry=said.get(case.effect_id, ""),
                asked=approvals.asked_of(case, now),
                target=getattr(case, "target", ""),
            )
        )
    return shown


def following(
    user: str,
    now: datetime,
    *,
    than: uuid.UUID | None = None,
    answers: Collection[uuid.UUID] = (),
    asked: Collection[uuid.UUID] = (),
    only: bool = False,
    first: bool = False,
) -> uuid.UUID | None:
    """Return the most pressing case that asks something of this person: not parked, not another person's.

    `asked` are the cases that wait for a second person's word, which ask nothing of anybody else; `answers`
    those of them that wait for this person's, whoever has taken them: with `only` nothing else counts, with
    `first` they come before all else. From `than`, while it is one of them,
    it is the one behind it, and from the last one the first again: who leaves a case as it is would else be
    led to and fro between two.
    """
    free = Q(owner="") | Q(owner=user) | Q(owned_until__lte=now)
    others = set(asked) - set(answers)
    wanted = Q(pk__in=answers) if only else Q(pk__in=answers) | free & ~Q(pk__in=others)
    rows = ranking.rank(open_cases().filter(wanted).exclude(parked_until__gt=now), now).rows
    if first:
        mine = {case.hex for case in answers}
        rows.sort(key=lambda row: row.id not in mine)
    places = {row.id: place for place, row in enumerate(rows)}
    here = places.get(than.hex) if than is not None else None
    if here is not None:
        rows = [*rows[here + 1 :], *rows[:here]]
    return uuid.UUID(rows[0].id) if rows else None


def parked(case: Case, now: datetime) -> bool:
    """Whether somebody put it aside until an instant that is still to come."""
    return case.parked_until is not None and case.parked_until > now


def owned(case: Case, now: datetime) -> bool:
    """Whether somebody has taken it, and still has it."""
    return bool(case.owner) and (case.owned_until is None or case.owned_until > now)


def _inquiries(cases: Iterable[Case]) -> dict[str, str]:
    """Return what the provider said last of each case's effect, along an index."""
    effects = [case.effect_id for case in cases]
    inquiries = Evidence.objects.filter(effect__in=effects, source="inquiry").order_by()
    newest = inquiries.values("effect").annotate(last=Max("id")).values("last")
    return dict(Evidence.objects.filter(pk__in=newest).values_list("effect_id", "outcome"))
