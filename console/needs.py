"""What needs a person now, read in bounded queries: the first thing an operator sees."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Min, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce

from console import bounded, pressing
from jobs.explain import Silent, Surroundings
from jobs.ledger import indexed
from jobs.ledger.epochs import Epoch
from jobs.ledger.rows import fetch
from jobs.models import AuditHead, EffectSlot, Job, Queue, RaiseProposal
from jobs.operations import raising
from jobs.operations.approvals import Question
from jobs.status import EffectStatus, JobStatus

SHOWN = 5
READ = 1000
"""Rows read of each trouble: beyond that it is one trouble, however many rows it has."""


@dataclass(frozen=True)
class Group:
    """Jobs that are alike: how many, and the oldest and newest of them."""

    name: str
    count: int
    since: datetime | None
    example: str = ""


@dataclass(frozen=True)
class Paused:
    """A paused queue and what waits in it."""

    queue: Queue
    ready: bounded.Count
    oldest: datetime | None


@dataclass
class Needs:
    """All that stands still until somebody acts."""

    uncertain: list[Group] = field(default_factory=list)
    failed: list[Group] = field(default_factory=list)
    failed_more: bool = False
    held: list[Group] = field(default_factory=list)
    paused: list[Paused] = field(default_factory=list)
    silent: Sequence[Silent] = ()
    claims_closed: bool = False
    raise_asked: RaiseProposal | None = None
    chain: Chain | None = None
    matters: list[pressing.Matter] = field(default_factory=list)
    """What the open cases ask, for who may see them; the jobs of `uncertain` say it to all others."""

    @property
    def jobs(self) -> bool:
        """Whether something is asked about jobs, beside what the cases ask."""
        return bool(
            self.claims_closed
            or self.raise_asked
            or self.chain_broken
            or self.uncertain
            or self.failed
            or self.held
        )

    @property
    def chain_broken(self) -> bool:
        """Whether the audit chain is known not to be whole."""
        return self.chain is not None and self.chain.broken

    @property
    def nobody(self) -> bool:
        """Whether everything goes by itself."""
        return not (self.matters or self.jobs or self.paused or self.silent)


@dataclass(frozen=True)
class Chain:
    """What the last verification found of the audit chain; `head` is None where its end was lost."""

    head: AuditHead | None

    @property
    def broken(self) -> bool:
        return self.head is None or self.head.checked_ok is False

    @property
    def since(self) -> int:
        """Entries that came after the last verification."""
        return self.head.seq - (self.head.checked_seq or 0) if self.head else 0


def chain() -> Chain:
    """Return what is known of the audit chain: one row, nothing is walked."""
    return Chain(AuditHead.objects.filter(pk=1).first())


def read(
    around: Surroundings, known: Chain, *, cases: bool = True, questions: Sequence[Question] = ()
) -> Needs:
    """Return what needs a person at this moment; `cases` only for who may see them, and the `questions` there
    that wait for a second person."""
    failed, more = failed_lately(around.now)
    matters = [*pressing.matters(around.now), *pressing.approvals(questions)] if cases else []
    return Needs(
        matters=matters,
        uncertain=[] if matters else uncertain(),
        failed=failed,
        failed_more=more,
        held=held(),
        paused=paused(around),
        silent=around.silent,
        claims_closed=not around.scheduler.claims_open,
        raise_asked=raising.open_now(around.now, around.scheduler.epoch),
        chain=known,
    )


def uncertain() -> list[Group]:
    """Return the jobs with an unknown outcome by kind, the kind that waits longest first."""
    open_slots = EffectSlot.objects.filter(
        pk__in=indexed.open_effects(EffectSlot.objects.filter(status=EffectStatus.UNKNOWN))
        .order_by("changed_at")
        .values("pk")[:READ]
    )
    rows = (
        open_slots.filter(job__status=JobStatus.UNCERTAIN)
        .order_by()
        .values_list("job__kind")
        .annotate(n=Count("job", distinct=True), since=Min("changed_at"))
    )
    return sorted((Group(kind, n, since) for kind, n, since in rows), key=lambda g: (g.since, g.name))


def failed_lately(now: datetime) -> tuple[list[Group], bool]:
    """Return what failed in the last 24 hours by error code, and whether more may have."""
    newest = indexed.abnormal(Job.objects.filter(status=JobStatus.FAILED)).order_by("-id")
    by_code: dict[str, list[tuple[float, str]]] = defaultdict(list)
    day_ago = (now - timedelta(hours=24)).timestamp()
    # Grouped here: the database would look each of these rows up twice, and sort them by their texts.
    for code, finished, kind in fetch(newest.values_list("error_code", Epoch("finished_at"), "kind")[:READ]):
        if finished > day_ago:
            by_code[code].append((finished, kind))
    groups = []
    for code, failed in by_code.items():
        kinds = sorted({kind for _, kind in failed})
        example = kinds[0] if len(kinds) == 1 else f"{kinds[0]} +{len(kinds) - 1}"
        groups.append(Group(code, len(failed), _instant(max(failed)[0]), example))
    groups.sort(key=lambda g: (-g.count, g.name))
    return groups, sum(group.count for group in groups) >= READ


def held() -> list[Group]:
    """Return the jobs on hold by reason."""
    jobs = indexed.held(Job.objects.all())
    last = Subquery(jobs.order_by("-id").values("id")[READ - 1 : READ])
    rows = (
        jobs.filter(id__gte=Coalesce(last, Value(uuid.UUID(int=0), UUIDField())))
        .order_by()
        .values_list("hold_reason")
        .annotate(n=Count("id"), since=Min("created_at"))
    )
    return sorted((Group(reason, n, since) for reason, n, since in rows), key=lambda g: (-g.count, g.name))


def paused(around: Surroundings) -> list[Paused]:
    """Return the paused queues with the ready jobs that wait in them."""
    names = sorted(around.paused)
    if not names:
        return []
    waiting = indexed.ready(Job.objects.filter(queue__in=names)).order_by()
    by_queue: dict[str, list[float]] = defaultdict(list)
    for queue, ready in fetch(waiting.values_list("queue", Epoch("ready_at"))[:READ]):
        by_queue[queue].append(ready)
    found = {queue: (len(instants), _instant(min(instants))) for queue, instants in by_queue.items()}
    full = sum(n for n, _ in found.values()) >= READ
    return [
        Paused(
            around.paused[name],
            bounded.Count(found.get(name, (0, None))[0], more=full),
            found.get(name, (0, None))[1],
        )
        for name in names
    ]


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
