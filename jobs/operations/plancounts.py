"""How many jobs a plan would take, before there is one: a glance at a bounded number of rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from jobs.ledger.counts import Asked, floors, of_parts
from jobs.models import Job
from jobs.models.plan import PlanAction
from jobs.operations import planparts
from jobs.operations.planparts import HOLDS, Filters

GROWING = {"ended", "odd"}
LOOKED = 2_000
"""So many of the newest jobs of each ended or blocked status are looked at. There may be any number of ended
ones, and to look for a rare label among 60,000 took three times as long as the rest of the page."""


@dataclass(frozen=True)
class Glance:
    """So many jobs; or, with `more`, so many at least: not all of them were looked at."""

    n: int
    more: bool = False


def counts(
    actions: Iterable[PlanAction],
    jobs: QuerySet[Job],
    *,
    filters: Filters = (),
    picked: bool = False,
    using: str = DEFAULT_DB_ALIAS,
) -> dict[PlanAction, Glance]:
    """Return how many of `jobs` a plan of each action would take, counted up to PLAN_ROWS + 1.

    Where `filters` name more than statuses, the newest LOOKED of each ended or blocked status are looked at,
    unless the jobs were `picked` one by one. What several actions are possible for is read once. Raises
    Refused PLAN_SEARCH_LONG.
    """
    most, jobs, actions = settings.INTERLOCK["PLAN_ROWS"], jobs.using(using), list(actions)
    wanted = {value for name, value in filters if name == "status"}
    searched = not picked and any(name != "status" for name, _ in filters)
    names = list(dict.fromkeys(name for action in actions for name in planparts.made_of(action, filters)))
    if not names:
        return dict.fromkeys(actions, Glance(0))
    with planparts.searching(using):
        ends = floors(using, LOOKED) if searched and not GROWING.isdisjoint(names) else {}
        pieces = {name: _pieces(name, jobs, wanted, ends) for name in names}
        found = of_parts(using, pieces, most=most + 1)
        numbers: dict[PlanAction, Glance] = {}
        for action in actions:
            made_of = planparts.made_of(action, filters)
            number = sum(found[name].rows for name in made_of)
            if action == PlanAction.CANCEL:
                number = sum(_unasked(found[name], pieces[name], most) for name in made_of)
            numbers[action] = Glance(number, any(_is_cut(name, wanted, ends) for name in made_of))
    return numbers


def _pieces(
    name: str, jobs: QuerySet[Job], wanted: set[str], ends: dict[str, uuid.UUID]
) -> list[QuerySet[Job]]:
    """Return what is looked at of a part: all of it, or of each status what is newer than its end.

    Status by status, because one condition for them all is none that an index begins with.
    """
    part = planparts.part(name, jobs)
    if not _is_cut(name, wanted, ends):
        return [part]
    return [
        part.filter(status=status, id__gt=ends[status]) if status in ends else part.filter(status=status)
        for status in _statuses(name, wanted)
    ]


def _is_cut(name: str, wanted: set[str], ends: dict[str, uuid.UUID]) -> bool:
    """Whether there is more of a part than is looked at."""
    return name in GROWING and any(status in ends for status in _statuses(name, wanted))


def _statuses(name: str, wanted: set[str]) -> list[str]:
    return [str(status) for status in sorted(HOLDS[name]) if not wanted or status in wanted]


def _unasked(found: Asked, pieces: list[QuerySet[Job]], most: int) -> int:
    """Return how many jobs a cancel would be asked for; of those counted some may have been asked already."""
    if found.rows <= most:
        return found.rows - found.asked
    return sum(planparts.unasked(piece).values("id")[: most + 1].count() for piece in pieces)
