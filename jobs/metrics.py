"""What Prometheus reads: every figure comes from the database, so that any web process gives the same answer.

Counters are the running totals that workers flush with each beat; they never fall, whatever is pruned. Gauges
are read at the moment, bounded (see jobs/ledger/metrics.py). docs/metrics.md explains each for operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobs import totals
from jobs.drills import kept
from jobs.ledger import epoch
from jobs.ledger import metrics as readings
from jobs.ledger.reading import reading
from jobs.ledger.session import Session
from jobs.models import AuditHead, Queue, RaiseProposal, Worker
from jobs.models.drill import DrillKind, DrillVerdict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SILENT_AFTER = timedelta(seconds=90)
"""A worker beats every ten seconds; after this long it is taken for gone."""
RECENT = timedelta(minutes=5)


def exposition(using: str = DEFAULT_DB_ALIAS, *, now: datetime | None = None) -> bytes:
    """Return every metric in Prometheus' text format; raises DatabaseError where there is none to ask."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Installation(using, now))
    return generate_latest(registry)


class Installation(Collector):
    """Collects the metrics of one database."""

    def __init__(self, using: str, now: datetime | None = None) -> None:
        self.using = using
        self.now = now

    def describe(self) -> Iterable[Metric]:
        """Promise nothing: the registry would collect once more to find out."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Take every reading in one short transaction."""
        with reading(self.using, now=self.now) as session:
            now = session.clock()
            yield from _queues(session, now, self.using)
            yield from _leases(session, now)
            yield from _people(session, now)
            yield from _scheduler(session, now)
            yield from _audit(self.using, now)
            yield from _drills(self.using, now)
            yield from _workers(self.using, now)
            yield from totals.families(readings.totals(session))
            yield _contention(session, now)


def _queues(session: Session, now: datetime, using: str) -> Iterator[Metric]:
    depth = _gauge(
        "queue_depth", "Jobs that could be claimed now; 10000 stands for that many or more.", "queue"
    )
    oldest = _gauge("queue_oldest_seconds", "Age of the oldest of them.", "queue")
    for entry in readings.waiting(session):
        depth.add_metric([entry.queue], entry.depth)
        oldest.add_metric([entry.queue], _age(now, entry.oldest_at))
    yield depth
    yield oldest
    paused = _gauge("queue_paused", "1 for a queue that somebody has paused.", "queue")
    for queue in Queue.objects.using(using).filter(paused_at__isnull=False):
        if queue.paused_until is None or queue.paused_until > now:
            paused.add_metric([queue.name], 1)
    yield paused


def _leases(session: Session, now: datetime) -> Iterator[Metric]:
    running = _gauge("running", "Leases that are held.", "queue")
    held = readings.running(session)
    for entry in held:
        running.add_metric([entry.queue], entry.running)
    yield running
    since = min((entry.expired_since for entry in held if entry.expired_since), default=None)
    yield _gauge(
        "expired_leases",
        "Leases that have run out and wait for the next recovery pass.",
        value=sum(entry.expired for entry in held),
    )
    yield _gauge(
        "expired_lease_oldest_seconds", "How long the first of them has waited.", value=_age(now, since)
    )


def _people(session: Session, now: datetime) -> Iterator[Metric]:
    uncertain = _gauge("uncertain", "Jobs that wait for a person's ruling.", "kind")
    for kind, count in readings.uncertain(session).items():
        uncertain.add_metric([kind], count)
    asked = _gauge("cases", "Open cases, by what is asked of a person.", "kind")
    for kind, count in readings.open_cases(session).items():
        asked.add_metric([kind], count)
    held = _gauge("held", "Jobs on hold until a person lifts it.", "reason")
    for reason, count in readings.held(session).items():
        held.add_metric([reason], count)
    effects = _gauge("unknown_effects", "Outside effects whose outcome nobody knows.", "kind", "replay")
    oldest = _gauge("unknown_effect_oldest_seconds", "Age of the oldest of them.", "kind", "replay")
    for entry in readings.open_effects(session):
        effects.add_metric([entry.kind, entry.replay], entry.number)
        oldest.add_metric([entry.kind, entry.replay], _age(now, entry.oldest_at))
    yield from (uncertain, asked, held, effects, oldest)


def _scheduler(session: Session, now: datetime) -> Iterator[Metric]:
    row = epoch.read(session)
    yield _gauge("epoch", "The epoch; a raise refuses every older claim.", value=row.epoch)
    waits = RaiseProposal.objects.using(session.using).filter(
        decision="", epoch=row.epoch, expires_at__gt=now
    )
    asked_at = waits.values_list("at", flat=True).first()
    yield _gauge(
        "raise_waits_seconds",
        "How long a raise of the epoch has waited for its second person; 0 where none does.",
        value=_age(now, asked_at),
    )
    yield _gauge("claims_open", "1 while workers may claim.", value=int(row.claims_open))
    behind = _age(row.clock_high_water, now) if row.clock_high_water else 0.0
    yield _gauge(
        "clock_behind_seconds", "How far the database's clock is behind its highest mark.", value=behind
    )


def _audit(using: str, now: datetime) -> Iterator[Metric]:
    """What the last verification found; nothing is walked here. Where nobody ever verified, no figure."""
    whole = _gauge("audit_chain_ok", "1 where the last verification found the audit chain whole.")
    age = _gauge("audit_verified_age_seconds", "How long ago the audit chain was verified.")
    entries = _gauge("audit_entries", "Entries in the audit chain.")
    head = AuditHead.objects.using(using).first()
    if head is None:
        whole.add_metric([], 0)
    else:
        entries.add_metric([], head.seq)
        if head.checked_at is not None:
            whole.add_metric([], int(bool(head.checked_ok)))
            age.add_metric([], _age(now, head.checked_at))
    yield from (whole, age, entries)


def _drills(using: str, now: datetime) -> Iterator[Metric]:
    """What the last zombie drill showed. Where none ever did, no figure."""
    refused = _gauge("zombie_drill_ok", "1 where the last zombie drill was refused at every point.")
    age = _gauge("zombie_drill_age_seconds", "How long ago that drill ended.")
    last = kept.last_finished(DrillKind.ZOMBIE, recorded=False, using=using)
    if last is not None:
        refused.add_metric([], int(last.verdict == DrillVerdict.PASSED))
        age.add_metric([], _age(now, last.finished_at))
    yield from (refused, age)


def _workers(using: str, now: datetime) -> Iterator[Metric]:
    states = {"live": 0, "stopping": 0, "silent": 0, "fenced": 0}
    beats = []
    for worker in (
        Worker.objects.using(using).filter(stopped_at=None).only("beat_at", "stopping_at", "fenced_at")
    ):
        beats.append(worker.beat_at)
        silent = now - worker.beat_at > SILENT_AFTER
        state = (
            "fenced"
            if worker.fenced_at
            else "silent"
            if silent
            else "stopping"
            if worker.stopping_at
            else "live"
        )
        states[state] += 1
    workers = _gauge("workers", "Worker processes that have not stopped in an orderly way.", "state")
    for state, count in states.items():
        workers.add_metric([state], count)
    yield workers
    yield _gauge(
        "worker_oldest_beat_seconds",
        "Age of the oldest beat among them.",
        value=_age(now, min(beats, default=None)),
    )


def _contention(session: Session, now: datetime) -> Metric:
    claims, empty = readings.recent_claims(session, now - RECENT)
    return _gauge(
        "claim_contention_ratio",
        "Share of the last five minutes' claims that a sign of work prompted and that found nothing.",
        value=empty / claims if claims else 0.0,
    )


def _gauge(name: str, meaning: str, *labels: str, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        f"interlock_{name}", meaning, labels=labels if value is None else None, value=value
    )


def _age(now: datetime, since: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0
