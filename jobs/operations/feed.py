"""The feed of changes as one caller may see it: resumable, in an order that nothing is slipped in behind.

A cursor is a place in the feed and the mark of the database's life that it was told in: after a restore the
numbers begin elsewhere, and a reader that went on would miss what happened since.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from jobs.ledger import feed
from jobs.ledger.feed import START, Place, Told
from jobs.ledger.reading import reading
from jobs.models import Job, Scheduler

CHUNK = 1000
_CURSOR = struct.Struct(">qq8s")


class BadCursor(ValueError):
    """This is no cursor of ours."""


class CursorGone(LookupError):
    """The cursor is of another life of this database."""


@dataclass(frozen=True)
class Page:
    """Some changes, where the next page begins, and whether it is known to hold anything."""

    told: list[Told]
    place: Place
    more: bool


def page(
    place: Place, *, limit: int, jobs: QuerySet[Job] | None = None, using: str = DEFAULT_DB_ALIAS
) -> Page:
    """Return what follows a place; with `jobs` only what was done to those, and nothing about the cluster."""
    with reading(using) as session:
        found = feed.after(session, place, limit=limit)
        told = found if jobs is None else _of(found, jobs)
    return Page(told, found[-1].place if found else place, len(found) == limit)


def newest(using: str = DEFAULT_DB_ALIAS) -> Place:
    """Return the place at the end of what may be told by now."""
    with reading(using) as session:
        return feed.last(session)


def _of(found: list[Told], jobs: QuerySet[Job]) -> list[Told]:
    ids = sorted({job_id for told in found for job_id, _status in told.jobs})
    seen: set[str] = set()
    for start in range(0, len(ids), CHUNK):
        part = jobs.filter(pk__in=ids[start : start + CHUNK]).values_list("pk", flat=True)
        seen |= {pk.hex for pk in part}
    visible = [told._replace(jobs=[pair for pair in told.jobs if pair[0] in seen]) for told in found]
    return [told for told in visible if told.jobs]


class Cursors:
    """Writes and reads cursors of this life of the database."""

    def __init__(self, using: str = DEFAULT_DB_ALIAS) -> None:
        timeline = Scheduler.objects.using(using).values_list("timeline", flat=True).get()
        self._mark = hashlib.sha256(timeline.encode()).digest()[:8]

    def write(self, place: Place) -> str:
        """Return the cursor of a place."""
        raw = _CURSOR.pack(place.writer, place.id, self._mark)
        return base64.urlsafe_b64encode(raw).decode()

    def read(self, cursor: str) -> Place:
        """Return the place of a cursor; raises BadCursor, CursorGone."""
        try:
            raw = base64.b64decode(cursor, altchars=b"-_", validate=True)
            writer, number, mark = _CURSOR.unpack(raw)
        except (binascii.Error, ValueError, struct.error):
            raise BadCursor(cursor) from None
        if writer < START.writer or number < 0:
            raise BadCursor(cursor)
        if mark != self._mark:
            raise CursorGone(cursor)
        return Place(writer, number)


def document(told: Told, cursors: Cursors) -> dict[str, Any]:
    """Return one change for machines."""
    return {
        "cursor": cursors.write(told.place),
        "at": told.at,
        "verb": told.verb,
        "actor": told.actor,
        "reason": told.reason,
        "jobs": [{"id": str(UUID(job_id)), "status": status} for job_id, status in told.jobs],
    }
