"""Reading the feed of changes in an order in which nothing is ever slipped in behind a reader."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from jobs.ledger.session import Session

# Numbers are handed out before commit: a lower one may become visible later. So the order is by the writing
# transaction first, and only transactions older than every open one are told; whoever commits later is later.
# The horizon is of the very snapshot that the rows are read in.
AFTER = """
SELECT writer, id, at, verb, jobs, actor, reason
  FROM jobs_change
 WHERE (writer, id) > (%(writer)s, %(id)s) AND writer < {horizon}
 ORDER BY writer, id
 LIMIT %(limit)s
"""
LAST = """
SELECT writer, id FROM jobs_change WHERE writer < {horizon} ORDER BY writer DESC, id DESC LIMIT 1
"""


class Place(NamedTuple):
    """A place in the feed; the first change stands after START."""

    writer: int
    id: int


START = Place(-1, 0)


class Told(NamedTuple):
    """One change as the feed tells it; `jobs` are (id, new status)."""

    place: Place
    at: datetime
    verb: str
    jobs: list[list[str]]
    actor: str
    reason: str


def after(session: Session, place: Place, *, limit: int) -> list[Told]:
    """Return the changes that follow a place, in the feed's order."""
    rows = session.run(AFTER, writer=place.writer, id=place.id, limit=limit)
    return [_told(session, row) for row in rows]


def last(session: Session) -> Place:
    """Return the place of the newest change that may be told."""
    rows = session.run(LAST)
    return Place(*rows[0]) if rows else START


def _told(session: Session, row: Any) -> Told:
    writer, number, at, verb, jobs, actor, reason = row
    moment = session.moment(at)
    assert moment is not None  # noqa: S101  (the column is never null)
    jobs = json.loads(jobs) if isinstance(jobs, str) else jobs
    return Told(Place(writer, number), moment, verb, jobs, actor, reason)
