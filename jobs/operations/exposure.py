"""What ending leases costs: whose they are, the attempts, and the effects whose outcome nobody will know."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, QuerySet, Sum

from jobs.ledger import indexed
from jobs.models import EffectSlot, Job
from jobs.status import EffectStatus

SHOWN = 20


@dataclass(frozen=True)
class Amount:
    """Effects being sent in one currency; `amount` is None where the effect kind declares none."""

    currency: str
    effects: int
    amount: Decimal | None

    @property
    def text(self) -> str:
        """The amount as people write it, the same on both databases; empty where there is none."""
        return "" if self.amount is None else f"{self.amount.normalize():f}"


@dataclass(frozen=True)
class KindPrice:
    """What one kind of job loses: attempts that run, effects that are being sent."""

    kind: str
    attempts: int
    effects: int


@dataclass(frozen=True)
class Exposure:
    """The price of fencing: `workers` are (id, leases), largest first, SHOWN of `worker_count`.

    `kinds` are those with most effects being sent, then with most attempts, SHOWN at most.
    """

    attempts: int
    worker_count: int
    workers: list[tuple[str, int]]
    effects: int
    amounts: list[Amount]
    kinds: list[KindPrice]

    def document(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "attempts_lost": self.attempts,
            "workers_fenced": self.worker_count,
            "workers": [{"id": worker, "leases": leases} for worker, leases in self.workers],
            "effects_unknown": self.effects,
            "amounts": [
                {"currency": a.currency, "effects": a.effects, "amount": a.text} for a in self.amounts
            ],
        }


def of_all(using: str) -> Exposure:
    """Return what a raise of the epoch would cost now. Looks at leases and open effects only."""
    return _exposure(
        indexed.running(Job.objects.using(using)),
        _sending(using),
    )


def of_worker(worker_id: str, using: str) -> Exposure:
    """Return what fencing one worker would cost now."""
    return _exposure(
        indexed.running(Job.objects.using(using).filter(worker_id=worker_id)),
        _sending(using).filter(job__worker_id=worker_id),
    )


def _sending(using: str) -> QuerySet[EffectSlot]:
    return indexed.open_effects(EffectSlot.objects.using(using)).filter(status=EffectStatus.EXECUTING)


def _exposure(leases: QuerySet[Job], sending: QuerySet[EffectSlot]) -> Exposure:
    per_worker = list(
        leases.order_by("worker_id").values_list("worker_id").annotate(leases=Count("pk")).order_by("-leases")
    )
    sums = sending.order_by("currency").values_list("currency").annotate(n=Count("pk"), total=Sum("amount"))
    attempts = dict(leases.order_by("kind").values_list("kind").annotate(n=Count("pk")))
    effects = dict(sending.order_by("job__kind").values_list("job__kind").annotate(n=Count("pk")))
    kinds = [KindPrice(kind, attempts.get(kind, 0), effects.get(kind, 0)) for kind in {*attempts, *effects}]
    kinds.sort(key=lambda k: (-k.effects, -k.attempts, k.kind))
    amounts = [Amount(currency, number, total) for currency, number, total in sums]
    return Exposure(
        attempts=sum(number for _worker, number in per_worker),
        worker_count=len(per_worker),
        workers=[(worker or "", number) for worker, number in per_worker[:SHOWN]],
        effects=sum(amount.effects for amount in amounts),
        amounts=amounts,
        kinds=kinds[:SHOWN],
    )
