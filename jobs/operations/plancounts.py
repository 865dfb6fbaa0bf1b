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
from jobs.operations.planparts import Filters

GROWING = {"ended", "odd"}
CLAIMED = {"ready", "due"}
ATTRIBUTES = {"tag", "arg"}
"""Filters that each job is asked for where very many have what they name (jobs/searching.py)."""
ASKED = 1_000
"""So many of each status, and of the claimable ones, are asked then."""
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
    and by what very many jobs have ASKED of each, also of the ready ones and of those that are due later;
    unless the jobs were `picked`: one by one, or by what an index finds few by. What several actions are
    possible for is read once. Raises Refused PLAN_SEARCH_LONG.
    """
    most, jobs = settings.INTERLOCK["PLAN_ROWS"], jobs.using(using)
    made_of = {action: planparts.made_of(action, filters) for action in actions}
    names = {name for parts in made_of.values() for name in parts}
    searched = not picked and any(name != "status" for name, _ in filters)
    asks = searched and any(name in ATTRIBUTES for name, _ in filters)
    look = ASKED if asks else LOOKED
    with planparts.searching(using):
        ends = floors(using, look) if searched and names & GROWING else {}
        cut = {name for name in GROWING if ends.keys() & set(planparts.statuses(name, filters))}
        pieces = {
            name: _newest(name, jobs, filters, ends) if name in cut else [planparts.part(name, jobs)]
            for name in sorted(names)
        }
        for name in names & CLAIMED if asks else ():
            first = planparts.part(name, Job.objects.using(using)).values("id")
            if first[look : look + 1].exists():
                cut.add(name)
                pieces[name] = [jobs.filter(id__in=first[:look]).order_by()]
        found = of_parts(using, pieces, most=most + 1)
        glances: dict[PlanAction, Glance] = {}
        for action, parts in made_of.items():
            if action == PlanAction.CANCEL:
                n = sum(_unasked(found[name], pieces[name], most) for name in parts)
            else:
                n = sum(found[name].rows for name in parts)
            glances[action] = Glance(n, more=not cut.isdisjoint(parts))
    return glances


def _newest(
    name: str, jobs: QuerySet[Job], filters: Filters, ends: dict[str, uuid.UUID]
) -> list[QuerySet[Job]]:
    """Return what is newer than where the look ends, of each status of a part.

    Status by status, because one condition for them all is none that an index begins with.
    """
    part = planparts.part(name, jobs)
    return [
        part.filter(status=status, id__gt=ends[status]) if status in ends else part.filter(status=status)
        for status in planparts.statuses(name, filters)
    ]


def _unasked(found: Asked, pieces: list[QuerySet[Job]], most: int) -> int:
    """Return how many jobs a cancel would be asked for; of those counted some may have been asked already."""
    if found.rows <= most:
        return found.rows - found.asked
    return sum(planparts.unasked(piece).values("id")[: most + 1].count() for piece in pieces)
