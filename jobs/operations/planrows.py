"""The rows of a plan, a page at a time in the order that they are gone through."""

from __future__ import annotations

from heapq import merge
from operator import attrgetter

from django.db import DEFAULT_DB_ALIAS

from jobs.models import Plan, PlanRow
from jobs.models.plan import RowOutcome


def after(
    plan: Plan, place: int = 0, *, outcome: str = "", most: int, using: str = DEFAULT_DB_ALIAS
) -> list[PlanRow]:
    """Return at most so many rows with a higher id than `place`, of one outcome or of all.

    Outcome by outcome, because that is how the index stands: walked by its key alone, the table would be read
    from the first row of the first plan on.
    """
    found = (
        PlanRow.objects.using(using).filter(plan=plan, outcome=one, id__gt=place).order_by("id")[:most]
        for one in ([outcome] if outcome else RowOutcome)
    )
    return list(merge(*found, key=attrgetter("id")))[:most]
