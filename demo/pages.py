"""The demonstration's page: what was converted, and the results to open."""

from __future__ import annotations

import mimetypes
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext_lazy as _

from console.pages.base import Page
from demo.convert import PAGE_POLICY
from demo.kinds import convert
from jobs.models import Attempt, Job
from jobs.narrowing import nth
from jobs.status import JobStatus

WINDOW, SHOWN = 2000, 100
LAST = ["result_commit_id", "attempt_id"]
SAID = ["kind", "label", "status", "created_at", "error_code", "error_message", *LAST]
"""What a row says of a job; never its input, which may be long."""


@dataclass
class Row:
    """One conversion as the page shows it."""

    job: Job
    attempt: Attempt | None
    result: dict[str, Any]

    @property
    def percent(self) -> int | None:
        attempt = self.attempt
        if attempt is None or not attempt.progress_total or attempt.progress_done is None:
            return None
        return min(100, attempt.progress_done * 100 // attempt.progress_total)


class ConversionsPage(Page):
    """The newest conversions, looked for among the newest jobs only: the list must not read a big table."""

    template_name = "demo/conversions/page.html"
    folder = "demo/conversions"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        return {"title": _("Conversions")}

    def table(self) -> dict[str, Any]:
        floor = nth(Job.objects.order_by("-id"), WINDOW)
        newest = Job.objects.filter(pk__gte=floor) if floor else Job.objects.all()
        jobs = newest.filter(kind=convert.name).only(*SAID).order_by("-pk")[:SHOWN]
        last = [job.result_commit_id or job.attempt_id for job in jobs]
        attempts = {a.pk: a for a in Attempt.objects.filter(pk__in=[pk for pk in last if pk])}
        rows = []
        for job, pk in zip(jobs, last, strict=True):
            attempt = attempts.get(pk) if pk else None
            done = attempt is not None and job.status == JobStatus.SUCCEEDED
            rows.append(Row(job, attempt, attempt.value if done and attempt else {}))
        return {"rows": rows, "window": WINDOW}


def conversion_file(request: HttpRequest, job_id: uuid.UUID) -> HttpResponseBase:
    """Send a conversion's file: the committed attempt's, never another one's (INV-5)."""
    job = Job.objects.filter(pk=job_id, kind=convert.name, status=JobStatus.SUCCEEDED).first()
    attempt = Attempt.objects.filter(pk=job.result_commit_id).first() if job else None
    if attempt is None:
        raise Http404(_("There is no such result."))
    key = attempt.value["file"]
    if not default_storage.exists(key):
        raise Http404(_("The result's file is gone."))
    kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
    response = FileResponse(default_storage.open(key), content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'inline; filename="{Path(key).name}"'
    # A converted page is somebody's document: it may show itself, and do nothing.
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
