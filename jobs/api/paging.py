"""Pages by key: newest first, each row exactly once whatever is added or removed between two pages.

A page remembers the last id it showed and nothing else, so rows that come or go shift nothing. A
cursor carries a digest of the ordering and the filters it belongs to and is refused with any others.

A filter that few rows pass is answered from a bounded window of the table: the page may then be short, or
empty, and still name a next one. Follow `next` until it is null.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import QueryDict
from django.utils.translation import gettext as _

from jobs.api import schema
from jobs.api.filters import FEW
from jobs.api.problems import Problem
from jobs.api.schema import Schema
from jobs.models import Job
from jobs.searching import bounded, candidates, first, ordered, window

ROWS = ("ordering", "limit", "cursor")
PARAMETERS = (*ROWS, "count")
ORDERINGS = ("-id", "id")
"""Ids begin with their time, so this is newest and oldest first; no other order has an index to walk."""
DEFAULT_ROWS = 50
WINDOW = 20_000
COUNTED = 10_000
INDEXED_STATUSES = (
    frozenset({"running"}),
    frozenset({"blocked", "cancelled", "failed", "skipped", "uncertain"}),
)
"""What is found by an index of its own (see Job.Meta.indexes) needs no window."""


@dataclass(frozen=True)
class Page:
    """One page of rows, and the query that asks for the next; None when the list has ended."""

    rows: list[Any]
    next_query: str | None

    def document(self, path: str, shown: Callable[[Any], Any]) -> dict[str, Any]:
        """Return it as it is answered."""
        following = f"{path}?{self.next_query}" if self.next_query else None
        return {"results": [shown(row) for row in self.rows], "next": following}


@dataclass(frozen=True)
class Paging:
    """What a query says about its page of one list."""

    of_what: str
    query: QueryDict
    ordering: str
    limit: int
    after: uuid.UUID | None
    counts: bool

    @classmethod
    def of(cls, query: QueryDict, what: str = "jobs") -> Paging:
        """Read the parameters of the list of `what`; raises Problem naming the one that is wrong."""
        ordering = query.get("ordering", ORDERINGS[0])
        if ordering not in ORDERINGS:
            raise wrong("ordering", _("one of %s is needed") % ", ".join(ORDERINGS))
        if query.get("count", "bounded") != "bounded":
            raise wrong("count", _("only “bounded” is known"))
        after = _read(str(query["cursor"]), _binding(what, query, ordering)) if "cursor" in query else None
        return cls(what, query, ordering, rows_of(query), after, "count" in query)

    def page(self, jobs: Any, scope: Any) -> Page:
        """Return one page of `jobs`, at the price of at most WINDOW rows of `scope` looked at.

        That is all jobs, or the rows of an attribute: of these jobs those that have it are meant.
        """
        rest = self._rest(candidates(jobs, scope))
        edge = window(self._rest(scope), WINDOW, self.ordering) if self._is_slow(jobs, scope) else None
        if edge is not None:
            rest = bounded(rest, "gte" if self.ordering.startswith("-") else "lte", edge)
        rows, places = first(jobs, rest, self.limit + 1, self.ordering)
        if len(places) > self.limit:
            kept = [row for row in rows if row.id != places[self.limit]]
            return Page(kept, self._next(places[self.limit - 1]))
        return Page(rows, self._next(edge) if edge is not None else None)

    def small(self, listed: Any) -> Page:
        """Return one page of another table, which needs no window."""
        rows = list(self._rest(listed)[: self.limit + 1])
        cut = len(rows) > self.limit
        return Page(rows[: self.limit], self._next(rows[self.limit - 1].id) if cut else None)

    def count(self, jobs: Any, scope: Any) -> dict[str, Any]:
        """Return how many jobs there are, at most COUNTED; `exact` says whether that is all of them."""
        floor = window(scope, 5 * WINDOW) if self._is_slow(jobs, scope) else None
        listed = candidates(jobs, scope)
        seen = listed if floor is None else bounded(listed, "gte", floor)
        found = seen.order_by()[: COUNTED + 1].count()
        return {"value": min(found, COUNTED), "exact": found <= COUNTED and floor is None}

    def _rest(self, listed: Any) -> Any:
        """Return what comes after the cursor, in order."""
        if self.after is not None:
            listed = bounded(listed, "lt" if self.ordering.startswith("-") else "gt", self.after)
        return ordered(listed, self.ordering)

    def _is_slow(self, jobs: Any, scope: Any) -> bool:
        """Return whether finding a page of `jobs` could mean reading all of the scope."""
        if scope.model is not Job:
            return bool(jobs.query.where)
        statuses = set(self.query.getlist("status"))
        indexed = bool(FEW & set(self.query)) or (
            bool(statuses) and any(statuses <= covered for covered in INDEXED_STATUSES)
        )
        return bool(jobs.query.where) and not indexed

    def _next(self, after: uuid.UUID) -> str:
        query = self.query.copy()
        query["cursor"] = _write(after, _binding(self.of_what, self.query, self.ordering))
        query.pop("count", None)
        return query.urlencode()


def rows_of(query: QueryDict) -> int:
    """Return how many rows a page is to have; raises Problem."""
    most = settings.INTERLOCK["PAGE_ROWS"]
    text = query.get("limit", str(min(DEFAULT_ROWS, most)))
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= most):
        raise wrong("limit", _("a whole number from 1 to %(most)s is needed") % {"most": most})
    return int(text)


def limit_parameter() -> Schema:
    """Return what `limit` may be, for docs/openapi.yaml."""
    return {"type": "integer", "minimum": 1, "maximum": settings.INTERLOCK["PAGE_ROWS"]}


def parameters(filters: dict[str, Schema], *, counts: bool = True) -> dict[str, Schema]:
    """Return what the query of a list may hold besides its filters, for docs/openapi.yaml."""
    found = filters | {
        "ordering": schema.words(ORDERINGS),
        "limit": limit_parameter(),
        "cursor": schema.TEXT,
    }
    return found | ({"count": schema.words(["bounded"])} if counts else {})


NEXT = schema.maybe(schema.TEXT)


def answer(item: Schema, **more: Schema) -> Schema:
    """Return what a list is answered with."""
    return schema.listing(item, next=NEXT, **more)


def _binding(what: str, query: QueryDict, ordering: str) -> str:
    """Return a digest of everything that decides which rows a list shows and in which order."""
    bound = sorted((name, sorted(query.getlist(name))) for name in query if name not in PARAMETERS)
    return hashlib.sha256(json.dumps([what, ordering, bound]).encode()).hexdigest()[:16]


def _write(after: uuid.UUID, binding: str) -> str:
    return base64.urlsafe_b64encode(after.bytes + bytes.fromhex(binding)).decode().rstrip("=")


def _read(cursor: str, binding: str) -> uuid.UUID:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(cursor) != 32 or len(raw) != 24:
        raise wrong("cursor", _("not a cursor of ours; begin again without one"))
    if raw[16:].hex() != binding:
        raise wrong("cursor", _("belongs to other filters or another ordering; begin again without one"))
    return uuid.UUID(bytes=raw[:16])


def wrong(parameter: str, detail: str) -> Problem:
    """Return the problem of one parameter of a query."""
    return Problem("invalid-query", errors=[{"parameter": parameter, "detail": detail}])
