"""ETag, If-None-Match and If-Match: which version a caller has, and which one he saw before he acts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _
from rest_framework.request import Request

from jobs.api.auth import Caller
from jobs.api.problems import Problem, refused
from jobs.api.shape import job_in_full
from jobs.models import Job
from jobs.outcomes import Refused


def etag(job: Job) -> str:
    """Return the strong tag of what a job's page shows."""
    return f'"{job.state_version}"'


def has(request: Request, tag: str) -> bool:
    """Return whether If-None-Match names our tag; a weak form of it means the same bytes here."""
    header = request.META.get("HTTP_IF_NONE_MATCH", "")
    return header.strip() == "*" or tag in [part.strip().removeprefix("W/") for part in header.split(",")]


def seen(request: Request, caller: Caller, job: Job, *, needed: bool = True) -> int | None:
    """Return the version that If-Match names, which is the job's; None where none is given and none needed.

    Raises Problem `precondition-required`, and `stale` with the job as it is. A weak tag matches nothing, and
    neither does `*`: who acts must have looked.
    """
    header = request.META.get("HTTP_IF_MATCH")
    if header is None:
        if needed:
            raise Problem("precondition-required", _("Send the job's ETag as If-Match."))
        return None
    if etag(job) not in [part.strip() for part in header.split(",")]:
        raise Problem("stale", current=job_in_full(job, caller))
    return job.state_version


@contextmanager
def telling_the_current(caller: Caller, job: Job) -> Iterator[None]:
    """Answer who lost a race after `seen` as `seen` itself would have."""
    try:
        yield
    except Refused as error:
        if error.code != "VERSION":
            raise
        raise refused(error, current=job_in_full(Job.objects.get(pk=job.pk), caller)) from None
