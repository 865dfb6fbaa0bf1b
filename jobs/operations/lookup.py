"""Finding one job, case or proposal by its id or by the beginning of it."""

from __future__ import annotations

import re
import uuid
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from jobs.models import Job

M = TypeVar("M", bound=Model)
LEAST = 8
SHOWN = 5
_HEX = re.compile(rf"[0-9a-f]{{{LEAST},32}}")


class BadId(ValueError):
    """This is no id, nor the beginning of one."""


class NotFound(LookupError):
    """Nothing has this id."""


class Ambiguous(LookupError):
    """Several begin like this: `ids` are some of them."""

    def __init__(self, ids: list[uuid.UUID]) -> None:
        super().__init__(ids)
        self.ids = ids


def one(text: str) -> Job:
    """Return the job whose id is `text` or, uniquely, begins with it; raises BadId, NotFound, Ambiguous."""
    return find(Job, text)


def find(model: type[M], text: str, *, using: str = DEFAULT_DB_ALIAS) -> M:
    """Return the row of `model` whose id is or, uniquely, begins with `text`; raises as `one` does."""
    first, last = bounds(text)
    rows = model._default_manager.using(using).filter(pk__gte=first, pk__lte=last).order_by("pk")  # noqa: SLF001
    found = list(rows[: SHOWN + 1])
    if not found:
        raise NotFound(text)
    if len(found) > 1:
        raise Ambiguous([row.pk for row in found[:SHOWN]])
    return found[0]


def bounds(text: str) -> tuple[uuid.UUID, uuid.UUID]:
    """Return the lowest and the highest id that begin with `text`, hyphens or not; raises BadId."""
    digits = text.strip().lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        raise BadId(text)
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))
