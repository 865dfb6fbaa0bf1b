"""Walks the job table newest first, in bounded windows, so that no filter reads the whole of it.

A rare match in a million rows would otherwise be looked for in all of them at each refresh. What an index
finds by itself (a status that is not normal, a hold, a parent, what may be claimed) is walked along it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from console import bounded
from console.bounded import Count
from jobs.ledger import indexed
from jobs.ledger.counts import by_status
from jobs.models import Job
from jobs.searching import bounded as within
from jobs.searching import candidates, first, window
from jobs.status import CLAIMABLE, JobStatus

WINDOW = 20_000
SIZE = 30
HELD = 2000
"""So many claimable jobs are listed exactly; more are walked to like any other."""
NEWEST = 2000
"""Succeeded jobs are counted among so many of the newest: there is no index of what went well."""


@dataclass(frozen=True)
class Stretch:
    """One page of the walk. `cut`: it ended at the window, not at a full page or the last row."""

    jobs: list[Job]
    older: uuid.UUID | None = None
    newer: uuid.UUID | None = None
    cut: bool = False


def older(
    matching: QuerySet[Job],
    scope: QuerySet[Any],
    *,
    before: uuid.UUID | None,
    size: int = SIZE,
    all_match: bool = False,
) -> Stretch:
    """Return up to `size` jobs of `matching` older than `before`, out of the next `WINDOW` of `scope`.

    The scope is jobs, or the rows of an attribute (jobs/searching.py). Where `all_match`, every job of it is
    meant: then no window is needed.
    """
    listed = candidates(matching, scope)
    if before is not None:
        listed, scope = within(listed, "lt", before), within(scope, "lt", before)
    floor = None if all_match else window(scope, WINDOW)
    if floor is not None:
        listed = within(listed, "gte", floor)
    jobs, places = first(matching, listed, size + 1)
    newer = places[0] if places and before is not None else None
    if len(places) > size:
        kept = [job for job in jobs if job.id != places[size]]
        return Stretch(kept, older=places[size - 1], newer=newer)
    return Stretch(jobs, older=floor, newer=newer, cut=floor is not None)


def newer(
    matching: QuerySet[Job], scope: QuerySet[Any], *, after: uuid.UUID, size: int = SIZE
) -> Stretch | None:
    """Return up to `size` jobs just newer than `after`, newest first; None if the first page holds them."""
    listed, scope = within(candidates(matching, scope), "gt", after), within(scope, "gt", after)
    ceiling = window(scope, WINDOW, "id")
    if ceiling is not None:
        listed = within(listed, "lte", ceiling)
    jobs, places = first(matching, listed, size + 1, "id")
    if len(places) <= size and ceiling is None:
        return None
    cut = len(places) <= size
    places = places[:size][::-1]
    jobs = [job for job in jobs[::-1] if job.id in places]
    return Stretch(jobs, older=places[-1] if places else after, newer=ceiling if cut else places[0], cut=cut)


def along_index(status: str) -> QuerySet[Job] | None:
    """Return the jobs of a status by an index of it; None where it has none, or is spread over three."""
    jobs: QuerySet[Job] = Job.objects.all()
    if status in indexed.ABNORMAL:
        return indexed.abnormal(jobs.filter(status=status))
    return indexed.running(jobs) if status == JobStatus.RUNNING else None


def few_claimable(status: str) -> list[uuid.UUID] | None:
    """Return the ids of all pending, or all waiting, jobs; None where there are too many claimable ones.

    Three indexes hold them: ready, due later, on hold. Of each its first rows are read, whatever their
    status: to look for the few waiting ones among many ready ones would read them all.
    """
    found: list[uuid.UUID] = []
    for source in _claimable():
        rows = list(source.values_list("status", "id")[: HELD + 1])
        if len(rows) > HELD:
            return None
        found += [job_id for word, job_id in rows if word == status]
    return found


def _claimable() -> list[QuerySet[Job]]:
    jobs: QuerySet[Job] = Job.objects.order_by()
    return [indexed.ready(jobs), indexed.due(jobs), indexed.held(jobs)]


def counts() -> list[tuple[str, Count]]:
    """Return how many jobs there are of each status, reading a bounded number of rows."""
    found = by_status("default", claimable=HELD, newest=NEWEST, most=bounded.LIMIT + 1)
    ready, due, held, newest = (found[name] for name in ("ready", "due", "held", "newest"))
    answer = []
    for status in JobStatus:
        if status in CLAIMABLE:
            waiting = status == JobStatus.WAITING
            n, due_n, held_n = (f.of_word if waiting else f.rows - f.of_word for f in (ready, due, held))
            cut = ready.rows >= HELD
            if cut and not waiting:  # what is ready is pending, but for a few
                n, cut = found["all ready"].rows, False
            n += due_n + held_n
            more = cut or max(due.rows, held.rows) >= HELD
        elif status == JobStatus.SUCCEEDED:
            n, more = newest.of_word, newest.rows >= NEWEST
        else:
            n, more = found[status].rows, False
        answer.append((status.value, Count(min(n, bounded.LIMIT), more or n > bounded.LIMIT)))
    return answer
