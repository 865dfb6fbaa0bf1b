"""The job list: filters in the address, newest first, with the reason why each job is where it is."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console import bounded, saved, walk
from console.jobfilters import JobFilter
from console.pages.base import Page
from console.walk import Stretch
from jobs import handlers
from jobs.explain import Explanation, explain_many
from jobs.models import Attempt, FenceRefusal, Job
from jobs.operations.plans import PERMISSIONS
from jobs.searching import bounded as within
from jobs.searching import candidates, window
from jobs.status import AttemptStatus, JobStatus

ROW = [
    "id",
    "kind",
    "queue",
    "label",
    "tags",
    "status",
    "wait_reason",
    "hold_reason",
    "unique_key",
    "created_at",
    "next_attempt_at",
    "deadline_at",
    "started_at",
    "finished_at",
    "worker_id",
    "claim_generation",
    "scheduler_epoch",
    "lease_expires_at",
    "attempt_count",
    "attempts_excused",
    "max_attempts",
    "open_effects",
    "unmet_edges",
    "cancel_requested_at",
    "cancel_requested_by",
    "error_code",
    "error_message",
]
"""What a row shows or is explained by; never the input, which may be long."""
NEW = 99
"""Jobs that came in meanwhile are counted so far."""
NO_FENCE = ("CANCELLED", "STALE_INPUT")
"""Refusals that tell a worker what a person asked for, and fence nobody."""


@dataclass(frozen=True)
class Marks:
    """What happened to a job on its way."""

    rescued: int = 0
    fenced: int = 0


@dataclass(frozen=True)
class Row:
    """One job as the list shows it."""

    job: Job
    why: Explanation
    marks: Marks

    @property
    def marked(self) -> bool:
        """Whether there is anything to mark."""
        return bool(
            self.job.cancel_requested_at or self.job.hold_reason or self.marks.rescued or self.marks.fenced
        )


def rows(jobs: Sequence[Job], around: Any) -> list[Row]:
    """Return jobs with their reasons and marks, in two queries and what `explain_many` takes."""
    marks = marks_of([job.id for job in jobs])
    reasons = explain_many(jobs, around=around)
    return [Row(job, why, marks[job.id]) for job, why in zip(jobs, reasons, strict=True)]


def marks_of(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Marks]:
    """Return how often each job was taken back from a lost worker, and how often a late one was refused."""
    lost = Attempt.objects.filter(job_id__in=ids, status=AttemptStatus.LOST)
    refused = FenceRefusal.objects.filter(job_id__in=ids).exclude(reason__in=NO_FENCE)
    rescued = dict(lost.order_by().values_list("job_id").annotate(n=Count("id")))
    fenced = dict(refused.order_by().values_list("job_id").annotate(n=Count("id")))
    return {i: Marks(rescued.get(i, 0), fenced.get(i, 0)) for i in ids}


class JobsPage(Page):
    """Jobs, newest first."""

    template_name = "console/jobs/page.html"
    folder = "console/jobs"
    regions = ("counts", "table")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the list; a search for one whole id leads straight to that job."""
        job_id = _whole_id(request.GET.get("q", ""))
        if job_id and Job.objects.filter(pk=job_id).exists():
            return HttpResponseRedirect(reverse("admin:job", args=[job_id]))
        return super().get(request, *args, **kwargs)

    @cached_property
    def filters(self) -> JobFilter:
        """The filters that the address names."""
        return JobFilter(self.request.GET, Job.objects.only(*ROW))

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then nothing is listed."""
        return self.filters.problems()

    def page(self) -> dict[str, Any]:
        """Return the filter bar."""
        return {
            "title": _("Jobs"),
            "filters": self.filters,
            "arguments": handlers.searchable(),
            "active": [] if self.problems else self._active(),
            "problems": self.problems,
            "status_kept": [] if self.problems else self.request.GET.getlist("status"),
            "search": self.request.GET.get("q", ""),
            "may_plan": any(self.request.user.has_perm(needed) for needed in PERMISSIONS.values()),
            "plan_url": "" if self.problems else self._plan_url(),
            "export_url": "" if self.problems else self._export_url(),
            "views": saved.tabs(
                self.request, "jobs", "" if self.problems else urlencode(self._kept_except())
            ),
            "table_url": self._pinned(),
        }

    @cached_property
    def stretch(self) -> Stretch:
        """The page of the list that the address names."""
        return self._stretch()

    @cached_property
    def walked(self) -> tuple[QuerySet[Job], QuerySet[Any]]:
        """The jobs that are asked for, and the scope to walk them in."""
        return self.filters.walked(*ROW)

    def _pinned(self) -> str:
        """Return where the table refreshes itself: from the first job that it shows, lest it jump."""
        here = self.request.get_full_path()
        if self.problems or not self._on_first or not self.stretch.jobs:
            return here
        kept = [*self._kept_except(), ("top", str(self.stretch.jobs[0].id))]
        return f"{self.request.path}?{urlencode(kept)}"

    @property
    def _on_first(self) -> bool:
        return not (self.request.GET.get("before") or self.request.GET.get("after"))

    def _newer_than(self, top: uuid.UUID) -> bounded.Count:
        """Return how many matching jobs came in above the first that is shown, in one window of the walk."""
        matching, scope = self.walked
        last = window(within(scope, "gt", top), walk.WINDOW, "id")
        newer = within(candidates(matching, scope), "gt", top)
        return bounded.count(within(newer, "lte", last) if last else newer, NEW)

    def counts(self) -> dict[str, Any]:
        """Return how many jobs there are of each status; its word where something else is filtered by."""
        kept = self._kept_except("status")
        chosen = self.request.GET.getlist("status")
        numbers = {} if kept else dict(walk.counts())
        chips = [
            (word, numbers.get(word), "?" + urlencode([*kept, ("status", word)]), word in chosen)
            for word in map(str, JobStatus)
        ]
        return {
            "chips": chips,
            "all_url": "?" + urlencode(kept),
            "all_chosen": not chosen,
            "with_numbers": not kept,
        }

    def table(self) -> dict[str, Any]:
        """Return one page of the list."""
        if self.problems:
            return {"problems": self.problems, "http_status": 400}
        stretch = self.stretch
        top = self.filters.form.cleaned_data["top"]
        return {
            "rows": rows(stretch.jobs, self.around),
            "new": self._newer_than(top) if top else None,
            "stretch": stretch,
            "window": walk.WINDOW,
            "older_url": self._page_url("before", stretch.older),
            "newer_url": self._page_url("after", stretch.newer),
            "first_url": "?" + urlencode(self._kept_except()),
            "on_first": self._on_first,
            "filtered": bool(self.filters.active()),
            "link_to": self._link_to(),
        }

    def _stretch(self) -> Stretch:
        clean = self.filters.form.cleaned_data
        matching, scope = self.walked
        if clean["after"]:
            stretch = walk.newer(matching, scope, after=clean["after"])
            if stretch is not None:
                return stretch
        if clean["top"] and not clean["before"]:  # what came since is counted, not shown
            scope = within(scope, "lte", clean["top"])
            if scope.model is Job:
                matching = within(matching, "lte", clean["top"])
        return walk.older(matching, scope, before=clean["before"], all_match=self.filters.scope_is_all())

    def _plan_url(self) -> str:
        """Return where a plan for what is listed begins; nowhere while nothing is filtered by."""
        kept = self._kept_except()
        return f"{reverse('admin:plan-new')}?{urlencode(kept)}" if kept else ""

    def _export_url(self) -> str:
        return f"{reverse('admin:jobs-export')}?{urlencode(self._kept_except())}"

    def _active(self) -> list[tuple[Any, str, str]]:
        """Return (label, value, address without it) for each filter in use."""
        shown = []
        for name, values in self.filters.active():
            label = self.filters.form.fields[name].label
            if name != "status":  # the chips above show it
                shown.append((label, ", ".join(values), "?" + urlencode(self._kept_except(name))))
        return shown

    def _kept_except(self, *names: str) -> list[tuple[str, str]]:
        """Return the address's filters without these and without its place in the list."""
        kept = [(n, values) for n, values in self.filters.active() if n not in names]
        return [(n, value) for n, values in kept for value in values]

    def _page_url(self, cursor: str, place: uuid.UUID | None) -> str:
        return "?" + urlencode([*self._kept_except(), (cursor, str(place))]) if place else ""

    def _link_to(self) -> dict[str, str]:
        """Return the beginnings of addresses that filter by one more value."""
        return {
            name: "?" + urlencode([*self._kept_except(name), (name, "")])
            for name in ("queue", "worker", "kind", "error_code", "tag")
        }


def _whole_id(text: str) -> uuid.UUID | None:
    digits = text.strip().lower().replace("-", "")
    if len(digits) != 32 or not set(digits) <= set("0123456789abcdef"):
        return None
    return uuid.UUID(digits)
