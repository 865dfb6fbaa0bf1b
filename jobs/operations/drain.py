"""Whether the cluster may be stopped: SAFE, WAIT (time will do it) or BLOCKED (a person must), and why.

Leases are read after claims and before everything that an ending may leave behind, so that with claims closed
nothing can slip from a part that has not been read into one that has: no SAFE is a matter of luck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext_noop

from jobs.explain import WORKER_TTL
from jobs.ledger import indexed
from jobs.ledger.clock import clock
from jobs.models import Attempt, EffectSlot, Job, Scheduler, Worker
from jobs.status import EffectStatus, HoldReason, JobStatus

SHOWN = 10
BOUND = 1000
"""Rows of one part that are counted; of more, "1000+" is told."""


class Verdict(StrEnum):
    """What to do: stop it, wait, or fetch a person."""

    SAFE = "SAFE"
    WAIT = "WAIT"
    BLOCKED = "BLOCKED"


@dataclass(frozen=True)
class Part:
    """One line of the checklist. `rows` are the first of `count`; `more`: even `count` is a bound."""

    name: str
    verdict: Verdict
    sentence: str
    rows: list[dict[str, Any]]
    count: int
    more: bool = False


@dataclass(frozen=True)
class Versions:
    """What the workers that are heard of run: how many of each version, most first, and the one they should.

    A worker that says no version (a remote one need not) is not counted. `old` are the ids of those that
    should be gone: of another version than was asked for, else than the worker started last for their kinds.
    """

    wanted: str
    beating: dict[str, int]
    old: list[str]

    @property
    def all(self) -> int:
        """How many workers there are."""
        return sum(self.beating.values())

    @property
    def others(self) -> list[str]:
        """The versions beside it."""
        return [version for version in self.beating if version != self.wanted]

    @property
    def right(self) -> int:
        """How many of them run the version that they should."""
        return self.beating.get(self.wanted, 0)


@dataclass(frozen=True)
class Checklist:
    """All parts, read at one time of the database's clock."""

    at: datetime
    epoch: int
    claims_open: bool
    parts: list[Part]
    versions: Versions

    @property
    def verdict(self) -> Verdict:
        """The worst of all parts."""
        found = {part.verdict for part in self.parts}
        return next((v for v in (Verdict.BLOCKED, Verdict.WAIT) if v in found), Verdict.SAFE)

    @property
    def waiting_helps(self) -> bool:
        """Whether something is on its way that may change the verdict without a person."""
        return not self.claims_open and any(part.verdict is Verdict.WAIT for part in self.parts)

    def document(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "verdict": self.verdict,
            "at": self.at,
            "epoch": self.epoch,
            "claims_open": self.claims_open,
            "version": self.versions.wanted,
            "versions": [{"version": version, "workers": n} for version, n in self.versions.beating.items()],
            "parts": [
                {
                    "name": part.name,
                    "verdict": part.verdict,
                    "count": part.count,
                    "more": part.more,
                    "rows": part.rows,
                }
                for part in self.parts
            ],
        }


SENTENCES = {
    "claims": gettext_noop("Claims are closed."),
    "claims_open": gettext_noop("Claims are open: waiting changes nothing, a person must close them."),
    "leases": gettext_noop("Leases held, or run out and not yet taken back."),
    "quarantined": gettext_noop(
        "Quarantined while running: nobody takes these back before the hold is lifted."
    ),
    "staged": gettext_noop("Staged results that wait for their commit."),
    "executing": gettext_noop("Effects being sent."),
    "unknown": gettext_noop("Effects whose outcome is unknown; a person must rule where no inquiry decides."),
    "uncertain": gettext_noop("Uncertain jobs: their open matters must be settled first."),
    "workers": gettext_noop("Workers of an older epoch, or fenced ones, that are still beating."),
    "versions": gettext_noop("Workers of another version that are still beating."),
}
JOB = ("id", "kind", "queue", "worker_id", "scheduler_epoch", "lease_expires_at")
EFFECT = ("id", "job_id", "kind", "slot", "status", "label", "amount", "currency", "changed_at")


def look(using: str = DEFAULT_DB_ALIAS, *, version: str = "") -> Checklist:
    """Return the checklist now. Every read is served by a small table or a partial index; writes nothing.

    `version` is the one that all workers should be of; without it, for each kind that of the worker that was
    started last for it: two services may share a database, and each has versions of its own.
    """
    before = Scheduler.objects.using(using).get()
    now = clock(using)
    jobs = Job.objects.using(using)
    running = indexed.running(jobs)
    quarantined = Q(hold_reason=HoldReason.QUARANTINE)
    effects = indexed.open_effects(EffectSlot.objects.using(using))
    beating = Worker.objects.using(using).filter(stopped_at=None, beat_at__gt=now - WORKER_TTL)
    versions = _versions(beating, version)
    parts = [
        _part("leases", Verdict.WAIT, running.exclude(quarantined).order_by("id"), JOB),
        _part("quarantined", Verdict.BLOCKED, running.filter(quarantined).order_by("id"), JOB),
        _part("staged", Verdict.WAIT, _staged(running, using), ("id", "job_id", "worker_id", "staged_at")),
        _effects("executing", Verdict.WAIT, effects.filter(status=EffectStatus.EXECUTING)),
        _effects("unknown", Verdict.BLOCKED, effects.filter(status=EffectStatus.UNKNOWN)),
        _part(
            "uncertain",
            Verdict.BLOCKED,
            indexed.abnormal(jobs.filter(status=JobStatus.UNCERTAIN)).order_by("-id"),
            ("id", "kind", "queue", "label", "open_effects"),
        ),
        _part(
            "workers",
            Verdict.WAIT,
            beating.filter(Q(scheduler_epoch__lt=before.epoch) | Q(fenced_at__isnull=False)).order_by("id"),
            ("id", "scheduler_epoch", "beat_at", "fenced_at", "running"),
        ),
        _part(
            "versions",
            Verdict.WAIT,
            beating.filter(id__in=versions.old).order_by("id"),
            ("id", "version", "started_at", "beat_at", "running"),
        ),
    ]
    after = Scheduler.objects.using(using).get()
    if after.changed_at != before.changed_at:
        # Opened and closed meanwhile: what was read of the leases proves nothing.
        return look(using, version=version)
    return Checklist(now, after.epoch, after.claims_open, [_claims(after), *parts], versions)


def wait(
    *,
    timeout: float,
    recover: Callable[[], object],
    sleep: Callable[[float], None],
    seconds: Callable[[], float],
    every: float = 1.0,
    using: str = DEFAULT_DB_ALIAS,
    seen: Callable[[Checklist], None] = lambda _checklist: None,
    version: str = "",
) -> Checklist:
    """Look again until it is safe, until only a person could change it, or for `timeout` seconds.

    `recover` is a recovery pass: workers that died, and claims of an older epoch, are taken back although
    nobody claims (contract §8). `seen` is told of every look.
    """
    ends = seconds() + timeout
    while True:
        recover()
        found = look(using, version=version)
        seen(found)
        if not found.waiting_helps or seconds() >= ends:
            return found
        sleep(min(every, max(0.0, ends - seconds())))


def _claims(row: Scheduler) -> Part:
    """Open claims block: new work would start for ever, so waiting for the end of it is no plan."""
    shown = {"changed_at": row.changed_at, "changed_by": row.changed_by, "reason": row.reason}
    if row.claims_open:
        return Part("claims", Verdict.BLOCKED, SENTENCES["claims_open"], [shown], 1)
    return Part("claims", Verdict.SAFE, SENTENCES["claims"], [shown], 0)


def _versions(beating: QuerySet[Worker], wanted: str) -> Versions:
    """Return how many workers run which version, and which of them should be gone; BOUND of them are read."""
    said = beating.exclude(version="").order_by("-started_at", "-id")
    rows = list(said.values_list("id", "version", "kinds")[:BOUND])[::-1]
    newest = {kind: version for _id, version, kinds in rows for kind in kinds}
    old = [
        worker_id
        for worker_id, version, kinds in rows
        if (version != wanted if wanted else any(newest[kind] != version for kind in kinds))
    ]
    found = Counter(version for _id, version, _kinds in rows)
    last = rows[-1][1] if rows else ""
    return Versions(wanted or last, dict(sorted(found.items(), key=lambda row: (-row[1], row[0]))), old)


def _staged(running: QuerySet[Job], using: str) -> QuerySet[Attempt]:
    return (
        Attempt.objects.using(using)
        .filter(pk__in=running.values("attempt_id"), staged_at__isnull=False, status="running")
        .order_by("id")
    )


def _effects(name: str, verdict: Verdict, rows: QuerySet[EffectSlot]) -> Part:
    return _part(name, verdict, rows.order_by("changed_at", "id"), EFFECT)


def _part(name: str, verdict: Verdict, rows: QuerySet[Any], fields: Sequence[str]) -> Part:
    shown = list(rows.only(*fields)[: SHOWN + 1])
    count = len(shown) if len(shown) <= SHOWN else len(rows.values_list("pk")[: BOUND + 1])
    return Part(
        name,
        verdict if shown else Verdict.SAFE,
        SENTENCES[name],
        [_row(row, fields) for row in shown[:SHOWN]],
        min(count, BOUND),
        more=count > BOUND,
    )


def _row(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in fields}
