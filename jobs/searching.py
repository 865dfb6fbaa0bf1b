"""Lists by tag and by argument: what may be asked for, and the way along the index of it, newest first.

A list walks by the job's id. Where it walks along the index of one attribute, that id is read off the row of
the attribute: PostgreSQL knows that both are the same and sorts by either, but takes a bound of one for no
bound of the other, and would begin each page at the newest job.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import F, Model, QuerySet
from django.utils.translation import gettext as _

from jobs import handlers, narrowing, search
from jobs.models import Job, SearchAttribute

M = TypeVar("M", bound=Model)
Attribute = tuple[str, str]
"""Name and value: the path of an argument and what stands there, or search.TAG and a tag."""
LONGEST = search.LONGEST_PATH + 1 + search.LONGEST_VALUE
WAY = "attribute_job"
"""The id of the job as the row of its attribute has it, where a list walks along those."""
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
        raise Unsearchable(_("a path, “=” and a value, such as invoice=INV-17"))
    if len(value) > search.LONGEST_VALUE:
        raise Unsearchable(_("a value of at most %(most)s characters") % {"most": search.LONGEST_VALUE})
    known = handlers.searchable()
    # A kind that only workers know has left rows.
    if path not in known and not SearchAttribute.objects.filter(name=path).exists():
        if not known:
            raise Unsearchable(_("no kind of job declares an argument to search by"))
        raise Unsearchable(_("one of the declared arguments: %s") % ", ".join(known))
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


def having(jobs: QuerySet[Job], wanted: Sequence[Attribute], *, along: bool = True) -> QuerySet[Job]:
    """Keep the jobs that have all of these; `along` the rows of the first, where a list is to walk there."""
    for place, attribute in enumerate(wanted):
        if along and place == 0:
            name, value = attribute
            jobs = jobs.filter(attributes__name=name, attributes__value=value)
            jobs = jobs.alias(**{WAY: F("attributes__job_id")})
        else:
            jobs = jobs.filter(id__in=rows(attribute).values("job_id"))
    return jobs


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
    if listed.model is SearchAttribute:
        return "job_id"
    return WAY if WAY in listed.query.annotations else "id"
