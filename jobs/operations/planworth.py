"""What is at stake in a plan: the sum of its jobs' outside effects, and the rows that most hangs on."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F

from jobs.models import EffectSlot

SHOWN = 8
"""Rows that a plan is shown with; all of them are in its items."""
AT_ONCE = 500


def worth(found: Sequence[Any], using: str) -> dict[str, Any]:
    """Return the `amounts` by currency and the `largest` rows, then others, as texts that a plan keeps.

    Amounts of the effects that a job bound with the input that it has now, settled or not.
    """
    by_job = of_jobs([one.id for one in found], using=using)
    total: dict[str, Decimal] = defaultdict(Decimal)
    for amounts in by_job.values():
        for currency, amount in amounts.items():
            total[currency] += amount

    def of(job_id: uuid.UUID) -> dict[str, Decimal]:
        return by_job.get(job_id, {})

    largest = sorted(found, key=lambda one: -max(map(abs, of(one.id).values()), default=0))[:SHOWN]
    return {
        "amounts": _texts(total),
        "largest": [
            {
                "job_id": str(one.id),
                "label": one.label or one.kind,
                "version": one.version,
                "amounts": _texts(of(one.id)),
            }
            for one in largest
        ],
    }


def of_jobs(
    ids: Sequence[uuid.UUID], *, using: str = DEFAULT_DB_ALIAS
) -> dict[uuid.UUID, dict[str, Decimal]]:
    """Return of each of these jobs that has any the sums by currency, of the input that it has now."""
    found: dict[uuid.UUID, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for job_id, currency, amount in _bound(list(ids), using):
        found[job_id][currency] += amount
    return dict(found)


def _bound(ids: list[uuid.UUID], using: str) -> Iterator[tuple[uuid.UUID, str, Decimal]]:
    slots = EffectSlot.objects.using(using).filter(revision=F("job__revision"))
    for n in range(0, len(ids), AT_ONCE):
        part = slots.filter(job_id__in=ids[n : n + AT_ONCE])
        for job_id, currency, amount in part.order_by().values_list("job_id", "currency", "amount"):
            if amount is not None:
                yield job_id, currency, amount


def _texts(amounts: dict[str, Decimal]) -> dict[str, str]:
    return {currency: str(amount) for currency, amount in sorted(amounts.items())}
