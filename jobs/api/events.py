"""`/events`: the feed of changes, long-polled, for who wants to know without asking of each job."""

from __future__ import annotations

from typing import ClassVar

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import filters, paging, schema, waiting
from jobs.api.auth import Caller
from jobs.api.problems import Problem
from jobs.api.schema import ID, INSTANT, TEXT, record
from jobs.api.view import View
from jobs.ledger.feed import START, Place
from jobs.operations import feed
from jobs.status import JobStatus

LATEST = "latest"
CHANGE = record(
    {
        "cursor": TEXT,
        "at": INSTANT,
        "verb": TEXT,
        "actor": TEXT,
        "reason": TEXT,
        "jobs": schema.rows(record({"id": ID, "status": schema.words(JobStatus)})),
    }
)


class FeedView(View):
    """`/events`: what happened after a cursor, in the order in which it became known."""

    scopes: ClassVar[dict[str, str]] = {"GET": "jobs:read"}
    queries = {
        "GET": {
            "after": TEXT,
            "limit": paging.limit_parameter(),
            "wait": waiting.parameter(),
        }
    }
    answers = {"GET": {200: schema.listing(CHANGE, next=TEXT, more=schema.FLAG)}}

    def get(self, request: Request) -> Response:
        query = request.query_params
        filters.unknown(query, self.queries["GET"])
        seconds, limit = waiting.asked(query), paging.rows_of(query)
        caller, cursors = Caller.of(request), feed.Cursors()
        jobs = caller.jobs() if caller.token is not None and caller.token.queues else None
        at = _place(cursors, query.get("after"))

        def changed() -> feed.Page | None:
            nonlocal at
            found = feed.page(at, limit=limit, jobs=jobs)
            at = found.place  # what this caller may not see is not looked at twice
            return found if found.told or found.more else None

        found = waiting.wait_for(changed, seconds, caller.token, request) or feed.Page([], at, more=False)
        return Response(
            {
                "results": [feed.document(told, cursors) for told in found.told],
                "next": cursors.write(found.place),
                "more": found.more,
            }
        )


def _place(cursors: feed.Cursors, cursor: str | None) -> Place:
    if cursor is None:
        return START
    if cursor == LATEST:
        return feed.newest()
    try:
        return cursors.read(cursor)
    except feed.BadCursor:
        raise paging.wrong("after", _("not a cursor of ours; begin again without one")) from None
    except feed.CursorGone:
        raise Problem("cursor-gone") from None
