"""Laying the search attributes of jobs that were there before their kind declared any, or declared others."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from jobs import handlers, narrowing, search
from jobs.handlers import Handler
from jobs.ledger import search as rows
from jobs.ledger.session import Session, transact
from jobs.models import Job
from jobs.outcomes import InvalidJob
from jobs.vocabulary import JOB

LOOKED = 5000
"""So many jobs, of any kind, are gone through at a time: none is found by its kind alone."""
PAGE = 200
"""Jobs that one transaction holds still. What ends one of them waits meanwhile."""


class Read(NamedTuple):
    """A job's input as it was read, outside of any transaction."""

    id: uuid.UUID
    input: str
    input_digest: str


class Indexed(NamedTuple):
    """How many jobs were gone through, how many attributes they lacked, and how many they had in vain."""

    jobs: int = 0
    added: int = 0
    removed: int = 0

    def __add__(self, other: Any) -> Indexed:
        return Indexed(*(one + more for one, more in zip(self, other, strict=True)))


def index(kind: str, *, using: str = DEFAULT_DB_ALIAS) -> Iterator[Indexed]:
    """Let every job of a kind be found by what the kind declares now; yields what each page took.

    Cut off half-way, what was laid stays; run again, it lays the rest. Beside a revision the job is found by
    the input that it has afterwards. Raises InvalidJob for a kind that this process does not know.
    """
    handler = handlers.find(kind)
    if handler is None:
        raise InvalidJob("kind", _("no handler of this process is called so"))
    for page in _pages(handler, using):
        done = Indexed(jobs=len(page))
        while page:
            after, left = _lay(handler, page, using)
            done += after
            page = _read(Job.objects.using(using).filter(id__in=left))  # revised meanwhile
        yield done


def _pages(handler: Handler, using: str) -> Iterator[list[Read]]:
    """Yield the jobs of a kind, under any of its names, by id."""
    jobs, after = Job.objects.using(using).order_by("id"), uuid.UUID(int=0)
    while True:
        rest = jobs.filter(id__gt=after)
        last = narrowing.nth(rest, LOOKED)
        found = rest.filter(kind__in=[handler.name, *handler.aliases])
        if last is not None:
            found = found.filter(id__lte=last)
        ids = list(found.values_list("id", flat=True))
        for start in range(0, len(ids), PAGE):
            yield _read(jobs.filter(id__in=ids[start : start + PAGE]))
        if last is None:
            return
        after = last


def _read(jobs: QuerySet[Job]) -> list[Read]:
    return [Read(*row) for row in jobs.order_by("id").values_list("id", "input", "input_digest")]


def _lay(handler: Handler, page: Sequence[Read], using: str) -> tuple[Indexed, list[uuid.UUID]]:
    """Index the jobs whose input is still the one that was read; returns what it took, and the others."""

    def work(session: Session) -> tuple[Indexed, list[uuid.UUID]]:
        seen = [{"id": job.id.hex, "input_digest": job.input_digest} for job in page]
        held = rows.still(session, seen)
        found = []
        for job in page:
            if job.id.hex in held:
                found += rows.pairs(job.id.hex, search.read(handler.search, json.loads(job.input)))
        added, removed = rows.amend(session, sorted(held), found)
        return Indexed(0, added, removed), [job.id for job in page if job.id.hex not in held]

    return transact(work, using=using, vocabulary=JOB, fenced=False)
