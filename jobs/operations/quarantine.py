"""Holding what may have touched the world without a trace: after a failover, jobs whose slot row may be lost.

What is lost cannot be read. What can: jobs with a slot of a non-replayable effect, and the kinds of job that
have ever left one, whose other unfinished jobs may have had one too. A kind without a slot row is not found:
name it (`kinds`). Effect kinds are registered without their job kinds, so the code cannot tell either.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs.models import EffectSlot, Job
from jobs.operations.actor import HOLD, admit
from jobs.status import TERMINAL

PAGE = 200


def suspect_kinds(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the kinds of job that have ever left a slot of a non-replayable effect. Reads all slots."""
    slots = EffectSlot.objects.using(using).filter(replay="non_replayable")
    return sorted(slots.order_by().values_list("job__kind", flat=True).distinct())


def pages(kinds: Sequence[str], using: str = DEFAULT_DB_ALIAS) -> Iterator[list[uuid.UUID]]:
    """Yield the unfinished jobs of these kinds that nobody holds, by id, a page at a time."""
    jobs = Job.objects.using(using).filter(kind__in=kinds, hold_reason="").exclude(status__in=TERMINAL)
    after = uuid.UUID(int=0)
    while page := list(jobs.filter(id__gt=after).order_by("id").values_list("id", flat=True)[:PAGE]):
        yield page
        after = page[-1]


def quarantine(
    kinds: Sequence[str], *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS
) -> Iterator[int]:
    """Hold the jobs of these kinds, a page in a transaction; yields how many of each.

    Cut off half-way, what was held stays held; run it again for the rest.
    """
    by = admit(actor, HOLD).signature
    for page in pages(kinds, using):
        yield Job.objects.db_manager(using).quarantine(page, actor=by, reason=reason)
