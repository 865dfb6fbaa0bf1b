"""The refused writes: what came too late, from whom, what it presented and what the row said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext_lazy as _

from console.filters import RefusalFilter
from console.pages.base import Page
from jobs.ledger.reading import reading
from jobs.models import FenceRefusal, Job
from jobs.narrowing import nth
from jobs.sentences import sentence

SIZE = 50
WINDOW = 50_000


@dataclass(frozen=True)
class Difference:
    """One fact that the writer and the row disagree on."""

    name: str
    presented: object
    found: object


@dataclass(frozen=True)
class RefusalRow:
    """One refused write, with the facts that decided it."""

    refusal: FenceRefusal
    why: str
    differences: list[Difference]
    kind: str = ""


def shown(refusals: list[FenceRefusal], kinds: dict[Any, str] | None = None) -> list[RefusalRow]:
    """Return refusals with what they say."""
    return [
        RefusalRow(r, sentence(r.reason, {}), _differences(r), (kinds or {}).get(r.job_id, ""))
        for r in refusals
    ]


def _differences(refusal: FenceRefusal) -> list[Difference]:
    presented, found = refusal.presented or {}, refusal.found or {}
    differing = [
        Difference(name, value, found[name])
        for name, value in presented.items()
        if name in found and found[name] != value and not isinstance(value, dict | list)
    ]
    if found.get("status") not in (None, "running"):
        differing.append(Difference("status", "running", found["status"]))
    return differing


class RefusalsPage(Page):
    """Refused writes, newest first."""

    template_name = "console/refusals/page.html"
    folder = "console/refusals"
    regions = ("table",)

    @cached_property
    def filters(self) -> RefusalFilter:
        """The filters that the address names."""
        return RefusalFilter(self.request.GET, FenceRefusal.objects.all())

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied."""
        return self.filters.problems()

    def page(self) -> dict[str, Any]:
        """Return the filter bar."""
        return {"title": _("Refused writes"), "filters": self.filters, "problems": self.problems}

    def table(self) -> dict[str, Any]:
        """Return one page of the list, looking at a bounded number of rows."""
        if self.problems:
            return {"problems": self.problems, "http_status": 400}
        before = self.filters.form.cleaned_data["before"]
        rows, floor = self._walk(before)
        place = rows[SIZE - 1].id if len(rows) > SIZE else floor
        rows = rows[:SIZE]
        kinds = dict(Job.objects.filter(pk__in={r.job_id for r in rows}).values_list("id", "kind"))
        kept = [(n, value) for n, values in self.filters.active() for value in values]
        return {
            "refusals": shown(rows, kinds),
            "older_url": "?" + urlencode([*kept, ("before", place)]) if place is not None else "",
            "first_url": "?" + urlencode(kept),
            "on_first": before is None,
            "cut": place is not None and len(rows) < SIZE,
            "window": WINDOW,
            "filtered": bool(kept),
        }

    def _walk(self, before: int | None) -> tuple[list[FenceRefusal], int | None]:
        """Return the next refusals, one more than are shown, and where the window ends that was looked at."""
        scope, matching = FenceRefusal.objects.all(), self.filters.qs
        if before is not None:
            scope, matching = scope.filter(id__lt=before), matching.filter(id__lt=before)
        # A rare match makes the planner sort the whole table instead of walking its key.
        with reading(DEFAULT_DB_ALIAS):
            floor = nth(scope.order_by("-id"), WINDOW)
            if floor is not None:
                matching = matching.filter(id__gte=floor)
            return list(matching.order_by("-id")[: SIZE + 1]), floor
