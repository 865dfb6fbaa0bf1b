"""Lists by tag and by argument: what may be asked for, and the walk along the rows of one, newest first.

Whether a job passes the other filters is asked row by row, in a subquery that no planner takes for a join. As
a join, PostgreSQL went through the jobs where the tag was common, and knew nothing there of where the page
begins: half a million rows were read for a page in the middle.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.db.models.lookups import IsNull
from django.utils.translation import gettext as _

from jobs import handlers, narrowing, search
from jobs.models import Job, SearchAttribute

M = TypeVar("M", bound=Model)
Attribute = tuple[str, str]
"""Name and value: the path of an argument and what stands there, or search.TAG and a tag."""
LONGEST = search.LONGEST_PATH + 1 + search.LONGEST_VALUE
SHOWN = 30
"""Declared arguments that a refusal names."""
RARE = 20_000
"""Of two that are asked for at once, the one that fewer jobs have is walked along."""


class Unsearchable(ValueError):
    """No job can be found by this; the text says why."""


def tag(text: str) -> Attribute:
    """Return what to look for; raises Unsearchable for what is no tag."""
    if problem := search.tag_problem(text):
        raise Unsearchable(problem)
    return search.TAG, text


def argument(text: str) -> Attribute:
    """Return the path and the value of `invoice=INV-17`; raises Unsearchable where no job could have it."""
    path, sign, value = text.partition("=")
    if not (path and sign and value):
        raise Unsearchable(_("an argument is searched for by its path and its value, as invoice=INV-17"))
    if len(value) > search.LONGEST_VALUE:
        raise Unsearchable(_("a value has at most %(most)s characters") % {"most": search.LONGEST_VALUE})
    known = handlers.searchable()
    # A kind that only workers know has left rows.
    if path not in known and not SearchAttribute.objects.filter(name=path).exists():
        if not known:
            raise Unsearchable(_("no kind of job declares an argument to search by"))
        told = ", ".join(known[:SHOWN]) + (" …" if len(known) > SHOWN else "")
        raise Unsearchable(_("no kind of job declares this argument to search by, but: %s") % told)
    return path, value


def rows(attribute: Attribute) -> QuerySet[SearchAttribute]:
    """Return the rows of all jobs that have this."""
    return SearchAttribute.objects.filter(name=attribute[0], value=attribute[1])


def rarest_first(wanted: Sequence[Attribute]) -> list[Attribute]:
    """Return them with one that few jobs have before one that many have."""
    if len(wanted) < 2:
        return list(wanted)
    return sorted(wanted, key=is_common)


def is_common(attribute: Attribute) -> bool:
    """Return whether more jobs have this than one page looks at."""
    return window(rows(attribute), RARE) is not None


def having(jobs: QuerySet[Job], wanted: Sequence[Attribute]) -> QuerySet[Job]:
    """Keep the jobs that have all of these.

    What few have leads to the jobs; of what many have each job is asked, or all of its rows would be read.
    """
    for attribute in wanted:
        if is_common(attribute):
            jobs = jobs.filter(_there(rows(attribute).filter(job_id=OuterRef("id"))))
        else:
            jobs = jobs.filter(id__in=rows(attribute).values("job_id"))
    return jobs


def candidates(jobs: QuerySet[Job], scope: QuerySet[Any]) -> QuerySet[Any]:
    """Return what there is to list: `jobs`, or the rows of an attribute (`scope`) that are of one."""
    if scope.model is Job:
        return jobs
    if not jobs.query.where:
        return scope
    passing: QuerySet[Any] = scope.filter(_there(jobs.filter(id=OuterRef("job_id"))))
    return passing


def _there(found: QuerySet[Any]) -> IsNull:
    """Say that there is such a row, in a way that is no join to any planner."""
    return IsNull(Subquery(found.order_by().values(_key(found))[:1]), False)


def first(
    jobs: QuerySet[Job], listed: QuerySet[Any], size: int, order: str = "-id"
) -> tuple[list[Job], list[uuid.UUID]]:
    """Return the first of what `candidates` returned, narrowed since: the jobs, and where each of them lies.

    A job that changes between two statements may be missing; its place is told all the same.
    """
    if listed.model is Job:
        found = list(ordered(listed, order)[:size])
        return found, [job.id for job in found]
    places = list(ordered(listed, order).values_list("job_id", flat=True)[:size])
    by_id = {job.id: job for job in jobs.filter(id__in=places)} if places else {}
    return [by_id[place] for place in places if place in by_id], places


def bounded(listed: QuerySet[M], bound: str, place: uuid.UUID) -> QuerySet[M]:
    """Keep what lies on one side of a place in the walk: `lt`, `lte`, `gt` or `gte`."""
    return listed.filter(**{f"{_key(listed)}__{bound}": place})


def ordered(listed: QuerySet[M], order: str) -> QuerySet[M]:
    """Return jobs, or rows of an attribute, by the id of the job: `-id` is newest first."""
    return listed.order_by(f"{'-' if order.startswith('-') else ''}{_key(listed)}")


def window(listed: QuerySet[Any], size: int, order: str = "-id") -> Any:
    """Return the id of the job at which a bounded look ends; None where there are fewer rows than `size`."""
    return narrowing.nth(ordered(listed, order), size, _key(listed))


def _key(listed: QuerySet[Any]) -> str:
    return "job_id" if listed.model is SearchAttribute else "id"
