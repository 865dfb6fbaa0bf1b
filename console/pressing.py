"""What the open cases ask of people, in a few lines: contradictions, what is late, each kind of matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from django.db import models
from django.db.models import CharField, Count, F, Min, Q, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from console import inbox
from jobs.models.case import CaseKind
from jobs.operations.approvals import Question

READ = 2000
"""Cases read, the oldest first: beyond that the inbox says how many there are."""
END = datetime.max.replace(tzinfo=UTC)
LATE = "late"
ORDER = (CaseKind.CONTRADICTION, LATE, CaseKind.UNKNOWN, CaseKind.CONFLICT, CaseKind.APPROVAL)


@dataclass
class Matter:
    """Cases that ask the same of a person: how many, about what, since when, how much is at stake."""

    what: str
    """A kind of case, or LATE: past its SLA, whatever its kind."""
    count: int = 0
    kinds: set[str] = field(default_factory=set)
    sums: dict[str, Decimal] = field(default_factory=dict)
    unknown: dict[str, Decimal] = field(default_factory=dict)
    """What of the sums is of unknown outcomes: what is late may be of any kind."""
    since: datetime | None = None
    due: datetime | None = None
    rulings: int = 0
    sends: int = 0
    """Of what waits for a second person: rulings, and sendings."""

    @property
    def effect_kind(self) -> str:
        """The one kind of effect that it is about; empty where there are several."""
        return next(iter(self.kinds)) if len(self.kinds) == 1 else ""

    def add(
        self,
        kind: str,
        currency: str,
        n: int,
        amount: Decimal | None,
        since: datetime,
        due: datetime | None,
        *,
        unknown: bool = False,
    ) -> None:
        """Count some more cases in."""
        self.count += n
        self.kinds.add(kind)
        self.since = min(filter(None, (self.since, since)))
        self.due = min(filter(None, (self.due, due)), default=None)
        if amount is not None:
            self.sums[currency] = self.sums.get(currency, Decimal()) + amount
            if unknown:
                self.unknown[currency] = self.unknown.get(currency, Decimal()) + amount


def matters(now: datetime) -> list[Matter]:
    """Return what is open, the most pressing first; an unknown outcome is told by the kind of its effect.

    What is parked asks nothing meanwhile, unless its time limit is over. What waits for an approval is told
    by `approvals`: rulings wait for one too, in cases of other kinds.
    """
    here = Q(parked_until__isnull=True) | Q(parked_until__lte=now) | Q(sla_due_at__lte=now)
    asking = inbox.open_cases().filter(here)
    last = Subquery(asking.order_by("opened_at").values("opened_at")[READ - 1 : READ])
    late = When(sla_due_at__lte=now, then=Value(LATE))
    contradicted = When(kind=CaseKind.CONTRADICTION, then=F("kind"))
    rows = (
        asking.filter(opened_at__lte=Coalesce(last, Value(END)))
        .annotate(what=models.Case(contradicted, late, default=F("kind"), output_field=CharField()))
        .order_by()
        .values_list("what", "kind", "effect_kind", "currency")
        .annotate(n=Count("pk"), amount=Sum("amount"), since=Min("opened_at"), due=Min("sla_due_at"))
    )
    found: dict[tuple[str, str], Matter] = {}
    for what, case_kind, kind, currency, n, amount, since, due in rows:
        if what == CaseKind.APPROVAL:
            continue
        key = (what, kind if what == CaseKind.UNKNOWN else "")
        unknown = case_kind == CaseKind.UNKNOWN
        found.setdefault(key, Matter(what)).add(kind, currency, n, amount, since, due, unknown=unknown)
    # Of one sort the one that is due first; all that nobody set a limit for come after it, the oldest first.
    return sorted(found.values(), key=lambda m: (ORDER.index(m.what), m.due is None, m.due or m.since))


def approvals(questions: Sequence[Question]) -> list[Matter]:
    """Return what waits for a second person, rulings and sendings told apart; nothing where nothing does."""
    matter = Matter(CaseKind.APPROVAL)
    for q in questions:
        matter.add(q.effect_kind, q.currency, 1, q.amount, q.at, q.sla_due_at)
        matter.sends += q.is_sending
        matter.rulings += not q.is_sending
    return [matter] if questions else []
