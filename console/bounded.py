"""Counts that stop: a page never counts a big table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

LIMIT = 10_000


@dataclass(frozen=True)
class Count:
    """So many, or (with `more`) at least so many."""

    n: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.n:,}+" if self.more else f"{self.n:,}"

    def __bool__(self) -> bool:
        return self.n > 0

    @property
    def plural(self) -> int:
        """The number that chooses a sentence's plural."""
        return self.n + self.more


def count(queryset: QuerySet[Any], limit: int = LIMIT) -> Count:
    """Count the rows, reading at most `limit` + 1 of them."""
    n = queryset.order_by()[: limit + 1].count()
    return Count(min(n, limit), n > limit)


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of the admin's lists, none beyond `LIMIT` rows: count and offset do not grow with the table."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        # In the order of the key, whose index is all that is read then.
        return rows.order_by("pk").values("pk")[:LIMIT].count()  # type: ignore[no-any-return]
