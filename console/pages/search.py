"""The search of the bar: jobs, cases and effects by id or its first digits, by key, by label; bounded."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console import inbox, walk
from console.pages.base import Page
from jobs.models import Case, EffectSlot, Job
from jobs.narrowing import nth

SHOWN = 20
LEAST = 4
"""Digits from which on they may be the beginning of an id."""
RECENT = 2000
"""So many of the newest cases are looked through for a label; the open ones always are."""
_HEX = re.compile(rf"[0-9a-f]{{{LEAST},64}}", re.ASCII)
_JOB = ("id", "kind", "label", "unique_key", "status", "created_at", "queue")


class SearchPage(Page):
    """What was found, by what it is. One whole id leads straight to what has it."""

    template_name = "console/search.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with what was found, or lead to the one thing that has this id."""
        self.words = request.GET.get("q", "").strip()[:200]
        digits = self.words.lower().replace("-", "")
        self.digits = digits if _HEX.fullmatch(digits) else ""
        whole = self._whole()
        return HttpResponseRedirect(whole) if whole else super().get(request, *args, **kwargs)

    def page(self) -> dict[str, Any]:
        """Return what was found of each sort; of jobs the newest, of cases the open ones first."""
        sees = self.request.user.has_perm("jobs.view_case")
        jobs, cut = self._jobs() if self.words else ([], False)
        cases = self._cases() if self.words and sees else []
        effects = self._effects() if sees else []
        return {
            "title": _("Search"),
            "search": self.words,
            "jobs": jobs,
            "cut": cut,
            "window": walk.WINDOW,
            "cases": cases,
            "effects": effects,
            "shown": SHOWN,
            "none": not (jobs or cases or effects),
        }

    def _whole(self) -> str:
        """Return where a whole id leads; empty where it is none, or nothing has it."""
        if len(self.digits) == 32:
            found = uuid.UUID(self.digits)
            if Job.objects.filter(pk=found).exists():
                return reverse("admin:job", args=[found])
            if self.request.user.has_perm("jobs.view_case") and Case.objects.filter(pk=found).exists():
                return reverse("admin:case", args=[found])
        if len(self.digits) == 64:
            job_id = EffectSlot.objects.filter(pk=self.digits).values_list("job_id", flat=True).first()
            if job_id:
                return reverse("admin:job", args=[job_id])
        return ""

    def _between(self) -> tuple[uuid.UUID, uuid.UUID]:
        return uuid.UUID(self.digits.ljust(32, "0")), uuid.UUID(self.digits.ljust(32, "f"))

    @property
    def _begins(self) -> bool:
        return LEAST <= len(self.digits) <= 32

    def _jobs(self) -> tuple[list[Job], bool]:
        """Return jobs, those whose id begins so before the others, which are looked for in one window."""
        rows: list[Job] = []
        if self._begins:
            rows = list(Job.objects.filter(id__range=self._between()).only(*_JOB).order_by("-id")[:SHOWN])
        words = Q(unique_key=self.words) | Q(concurrency_key=self.words) | Q(label__icontains=self.words)
        stretch = walk.older(
            Job.objects.filter(words).only(*_JOB), Job.objects.all(), before=None, size=SHOWN
        )
        return _once([*rows, *stretch.jobs]), stretch.cut

    def _cases(self) -> list[Case]:
        rows: list[Case] = []
        if self._begins:
            rows = list(Case.objects.filter(id__range=self._between()).order_by("-id")[:SHOWN])
        floor = nth(Case.objects.order_by("-id"), RECENT + 1)
        recent = Case.objects.filter(id__gt=floor) if floor else Case.objects.all()
        for scope in (inbox.open_cases(), recent):
            rows += scope.filter(label__icontains=self.words).order_by("-id")[:SHOWN]
        return _once(rows)

    def _effects(self) -> list[EffectSlot]:
        """Return effects whose key begins so: a range, which every index serves."""
        if not self.digits:
            return []
        keys = EffectSlot.objects.filter(pk__gte=self.digits, pk__lt=self.digits + "g")
        return list(keys.defer("payload", "response", "conflict_payload").order_by("pk")[:SHOWN])


def _once(rows: Iterable[Any]) -> list[Any]:
    return list({row.pk: row for row in rows}.values())[:SHOWN]
