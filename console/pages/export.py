"""The lists as files: the rows that the page would show, under the page's permission and its filters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import casefile, closed, csvfile, inbox, outages, providers, ranking, walk, wording
from console.csvfile import CHUNK
from console.pages import audit
from console.pages.audit import AuditPage
from console.pages.inbox import InboxPage
from console.pages.jobs import ROW, JobsPage, rows

Cells = Iterator[list[Any]]
WINDOWS = 50
"""So many windows of the job table are walked for rare matches: a million jobs."""


class _Export:
    """Answers with the file; an address that cannot be applied is led to the page, which says why."""

    regions: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str]
    columns: ClassVar[list[str]]
    complete = True
    """Whether the rows were all that there is, once they are read."""

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        """Stream the list."""
        if self.refused():
            return HttpResponseRedirect(f"{reverse(f'admin:{self.name}')}?{request.GET.urlencode()}")
        return csvfile.answer(self.name, self.heads(), self.cells(), lambda: self.complete)

    def heads(self) -> list[str]:
        """Return the names of the columns."""
        return self.columns

    def refused(self) -> bool:
        """Whether the filters cannot be applied."""
        raise NotImplementedError

    def cells(self) -> Cells:
        """Yield the rows, reading `CHUNK` of them at a time."""
        raise NotImplementedError


class JobsExport(_Export, JobsPage):  # type: ignore[misc]  # it answers with a stream
    """The job list."""

    name = "jobs"
    columns: ClassVar[list[str]] = [
        *("id", "kind", "label", "tags", "key", "status", "why", "queue", "attempts", "max_attempts"),
        *("worker", "rescued", "fenced", "enqueued_at", "started_at", "finished_at"),
    ]

    def refused(self) -> bool:
        return bool(self.problems)

    def cells(self) -> Cells:
        matching, scope = self.filters.walked(*ROW)
        before, windows = None, 0
        while True:
            stretch = walk.older(matching, scope, before=before, size=CHUNK)
            for row in rows(stretch.jobs, self.around):
                job = row.job
                yield [
                    *(job.id, job.kind, job.label, job.tags, job.unique_key, job.status),
                    *(wording.why(row.why, self.around.now), job.queue, job.attempts_used, job.max_attempts),
                    *(job.worker_id, row.marks.rescued, row.marks.fenced),
                    *(job.created_at, job.started_at, job.finished_at),
                ]
            before, windows = stretch.older, windows + stretch.cut
            self.complete = before is None
            if self.complete or windows == WINDOWS:
                return


class InboxExport(_Export, InboxPage):  # type: ignore[misc]  # it answers with a stream
    """The open cases, each on a line of its own, in the order of the inbox; or the closed ones, as listed."""

    name = "inbox"
    columns: ClassVar[list[str]] = [
        *("id", "lane", "label", "amount", "currency", "case", "effect_kind", "provider", "unknown_since"),
        *("sla_due_at", "owner", "parked_until", "evidence"),
    ]
    of_closed: ClassVar[list[str]] = [
        *("id", "label", "amount", "currency", "case", "effect_kind", "provider", "opened_at", "closed_at"),
        *("closed_as", "verdict", "by", "approved_by", "reason"),
    ]

    def heads(self) -> list[str]:
        return self.of_closed if self.filters.closed else self.columns

    def refused(self) -> bool:
        return bool(self.problems)

    def cells(self) -> Cells:
        if self.filters.closed:
            yield from self._ended()
            return
        now, like = self.around.now, self.filters.form.cleaned_data["like"]
        found = ranking.rank(self.filters.qs, now)
        self.complete = not found.cut
        ranked = found.rows if like is None else outages.outage_of(found, like, now)
        for start in range(0, len(ranked), CHUNK):
            for line in inbox.lines(ranked[start : start + CHUNK], now):
                case = line.case
                yield [
                    *(case.id, line.lane, case.label, case.amount, case.currency, case.kind),
                    *(
                        case.effect_kind,
                        providers.named([case.effect_kind])[case.effect_kind],
                        case.opened_at,
                    ),
                    *(case.sla_due_at, case.owner if line.owned else "", case.parked_until),
                    casefile.evidence_class(case, line.inquiry),
                ]

    def _ended(self) -> Cells:
        after, windows = self.filters.form.cleaned_data["after"], 0
        while True:
            stretch = closed.read(self.filters.qs, after=after, size=CHUNK)
            for line in stretch.lines:
                case, ruling = line.case, line.ruling
                yield [
                    *(case.id, case.label, case.amount, case.currency, case.kind, case.effect_kind),
                    *(providers.named([case.effect_kind])[case.effect_kind], case.opened_at, case.closed_at),
                    case.closed_as,
                    *((ruling.verdict, ruling.by, ruling.approved_by, ruling.reason) if ruling else [""] * 4),
                ]
            after, windows = stretch.next, windows + stretch.cut
            self.complete = after is None
            if self.complete or windows == WINDOWS:
                return


class AuditExport(_Export, AuditPage):  # type: ignore[misc]  # it answers with a stream
    """The chain's entries, with what each changed as the page shows it."""

    name = "audit"
    columns: ClassVar[list[str]] = [
        *("seq", "at", "actor", "action", "reason", "object_type", "object_id", "changed", "source"),
        *("approver", "request_id", "sound"),
    ]

    def refused(self) -> bool:
        return bool(self.problems)

    def cells(self) -> Cells:
        before = self.filters.form.cleaned_data["before"]
        while entries := self._found(before, CHUNK):
            for row in map(audit.row_of, entries):
                entry = row.entry
                changes = [f"{c.name}: {c.before or ''} → {c.after or ''}" for c in row.changes]
                yield [
                    *(entry.seq, entry.at, entry.actor, entry.action, entry.reason, entry.object_type),
                    *(entry.object_id, "; ".join(changes), entry.source, entry.approver, entry.request_id),
                    "yes" if row.sound else "no",
                ]
            before = entries[-1].seq
