"""What is at stake in a plan: the sum of its jobs' outside effects, and the rows that most hangs on."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import F

from jobs.models import EffectSlot

SHOWN = 8
"""Rows that a plan is shown with; all of them are in its items."""
AT_ONCE = 500


def worth(found: Sequence[Any], using: str) -> dict[str, Any]:
    """Return the `amounts` by currency and the `largest` rows, then others, as texts that a plan keeps.

    Amounts of the effects that a job bound with the input that it has now, settled or not.
    """
    by_job: dict[uuid.UUID, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    total: dict[str, Decimal] = defaultdict(Decimal)
    for job_id, currency, amount in _bound([one.id for one in found], using):
        by_job[job_id][currency] += amount
        total[currency] += amount
    largest = sorted(found, key=lambda one: -max(map(abs, by_job[one.id].values()), default=0))[:SHOWN]
    return {
        "amounts": _texts(total),
        "largest": [
            {
                "job_id": str(one.id),
                "label": one.label or one.kind,
                "version": one.version,
                "amounts": _texts(by_job[one.id]),
            }
            for one in largest
        ],
    }


def _bound(ids: list[uuid.UUID], using: str) -> Iterator[tuple[uuid.UUID, str, Decimal]]:
    slots = EffectSlot.objects.using(using).filter(revision=F("job__revision"))
    for n in range(0, len(ids), AT_ONCE):
        part = slots.filter(job_id__in=ids[n : n + AT_ONCE])
        for job_id, currency, amount in part.order_by().values_list("job_id", "currency", "amount"):
            if amount is not None:
                yield job_id, currency, amount


def _texts(amounts: dict[str, Decimal]) -> dict[str, str]:
    return {currency: str(amount) for currency, amount in sorted(amounts.items())}
