"""The parts of the jobs that mass actions are for, each read along the index that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from django.db import OperationalError
from django.db.models import QuerySet

from jobs.handlers import PLAN
from jobs.ledger import indexed
from jobs.ledger.reading import reading
from jobs.models import Job
from jobs.models.plan import PlanAction
from jobs.outcomes import Refused
from jobs.status import CLAIMABLE, TERMINAL, UNFINISHED, JobStatus

ENDED = TERMINAL - {JobStatus.SUCCEEDED}
ODD = {JobStatus.BLOCKED, JobStatus.UNCERTAIN}
HOLDS: dict[str, AbstractSet[JobStatus]] = {
    "ready": CLAIMABLE,
    "due": CLAIMABLE,
    "running": {JobStatus.RUNNING},
    "odd": ODD,
    "held": UNFINISHED,
    "ended": ENDED,
}
"""The parts, which have no job in common, with the statuses of their jobs."""
_FREE = ("ready", "due", "running", "odd")
MADE_OF: dict[PlanAction, tuple[str, ...]] = {
    PlanAction.RETRY: ("ended",),
    PlanAction.CANCEL: (*_FREE, "held"),
    PlanAction.HOLD: _FREE,
    PlanAction.UNHOLD: ("held",),
}
Filters = Sequence[tuple[str, str]]
"""Names and values, as console and API know them; `status` means the same in both."""
TOO_LONG = "57014"
"""What PostgreSQL says of a statement that its time-out ended."""


def sources(action: PlanAction, jobs: QuerySet[Job], filters: Filters) -> list[QuerySet[Job]]:
    """Return the jobs that an action is possible for, in parts."""
    parts = [part(name, jobs) for name in made_of(action, filters)]
    return [unasked(rows) for rows in parts] if action == PlanAction.CANCEL else parts


def made_of(action: PlanAction, filters: Filters) -> list[str]:
    """Return the names of the parts of an action.

    A part that holds none of the statuses that are filtered for is left out: it would be read in vain.
    """
    return [name for name in MADE_OF[action] if statuses(name, filters)]


def statuses(name: str, filters: Filters) -> list[str]:
    """Return the statuses of a part's jobs, of those that are filtered for."""
    wanted = {value for given, value in filters if given == "status"}
    return [str(status) for status in sorted(HOLDS[name]) if not wanted or status in wanted]


def part(name: str, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return a part of the jobs, along the index that holds it."""
    jobs = jobs.exclude(kind=PLAN).order_by()
    free = jobs.filter(hold_reason="")
    match name:
        case "ready":
            return indexed.ready(jobs)
        case "due":
            return indexed.due(jobs)
        case "running":
            return indexed.running(free)
        case "odd":
            return indexed.abnormal(free.filter(status__in=ODD))
        case "ended":
            return indexed.abnormal(jobs.filter(status__in=ENDED))
        case _:
            return indexed.held(jobs).exclude(status__in=TERMINAL)


def unasked(rows: QuerySet[Job]) -> QuerySet[Job]:
    """Leave out whom a cancel was asked for already: they need not be asked again."""
    return rows.filter(cancel_requested_at__isnull=True)


@contextmanager
def searching(using: str) -> Iterator[None]:
    """Read within a time limit. Raises Refused PLAN_SEARCH_LONG where it is over."""
    try:
        with reading(using):
            yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != TOO_LONG:
            raise
        raise Refused("PLAN_SEARCH_LONG") from error
