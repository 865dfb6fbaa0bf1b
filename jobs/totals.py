"""Running totals as metric families: the counters and histograms that workers flush (jobs/measures.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from jobs import measures
from jobs.ledger.metrics import Total

ByMeasure = dict[str, list[Total]]
Labels = tuple[str, ...]

_PLAIN = (
    ("claims", "claims", "Claims that a sign of work prompted."),
    ("claims_empty", "claims_empty", "Those of them that found nothing."),
    ("renew_failures", "renew_failures", "Leases that a renewal found lost."),
    (
        "transaction_retries",
        "transaction_retry",
        "Transactions run again after a deadlock or a serialisation failure.",
    ),
    ("clock_regressions", "clock_went_back", "Times the database's clock went back, which closed claims."),
    (
        "recovery_pauses",
        "recovery_paused",
        "Recovery passes that waited because most leases had run out at once.",
    ),
    ("quarantined", "quarantined", "Jobs put on hold because taking them back raised an error."),
    ("inquiries", "inquiries", "Questions to providers about effects whose outcome is unknown."),
    ("late_evidence", "late_evidence", "Reports of effects that came too late to decide."),
    ("contradictions", "contradictions", "Late reports that contradict what was recorded or ruled."),
    ("reports_spooled", "reports_spooled", "Reports kept on a worker's disk because no database heard them."),
    (
        "endings_refused",
        "endings_refused",
        "Groups of endings that the database or a callback would not have.",
    ),
)


def families(totals: Iterable[Total]) -> Iterator[Metric]:
    """Yield every family; one that nothing was counted for yet is there, and empty."""
    by_measure: ByMeasure = defaultdict(list)
    for total in totals:
        by_measure[total.measure].append(total)
    yield from _fence(by_measure)
    recovered = _counter(
        "recovered", "Jobs taken back or ended by recovery, by what became of them.", "outcome", "queue"
    )
    for (outcome, queue), entries in _grouped(
        by_measure, "recovered.", lambda t: (t.measure.partition(".")[2], t.queue)
    ):
        recovered.add_metric([outcome, queue], sum(entry.number for entry in entries))
    yield recovered
    yield _histogram(
        "reclaim_delay_seconds",
        "From the end of a lease to its recovery.",
        by_measure["reclaim_delay"],
        "queue",
    )
    yield _histogram(
        "due_to_commit_seconds",
        "From when a job was due to its canonical commit.",
        by_measure["due_to_commit"],
        "queue",
        "kind",
    )
    yield from _tried(by_measure)
    attempts = SummaryMetricFamily(
        "interlock_attempts_per_job", "Attempts that ended jobs had taken.", labels=["kind"]
    )
    for entry in by_measure["attempts"]:
        attempts.add_metric([entry.kind], entry.number, entry.total)
    yield attempts
    discarded = _counter(
        "discarded_attempt_seconds", "Working time of attempts that had lost their lease.", "queue", "kind"
    )
    for entry in by_measure["discarded_seconds"]:
        discarded.add_metric([entry.queue, entry.kind], entry.total)
    yield discarded
    for name, measure, meaning in _PLAIN:
        yield _counter(name, meaning, value=sum(entry.number for entry in by_measure[measure]))
    yield from _errors(by_measure)


def _tried(by_measure: ByMeasure) -> Iterator[Metric]:
    """What went on to another attempt and what did not, by who ended the one before."""
    for name, meaning, own in (
        ("retries", "Attempts that failed or were lost and whose job went on to another one.", "pending"),
        ("failed", "Jobs that failed for good.", "failed"),
    ):
        family = _counter(name, meaning, "ended_by")
        for by, measure in (("worker", name), ("recovery", f"recovered.{own}")):
            family.add_metric([by], sum(entry.number for entry in by_measure[measure]))
        yield family


def _fence(by_measure: ByMeasure) -> Iterator[Metric]:
    checks = _counter(
        "fence_checks", "Writes that the fence judged, and what became of them.", "point", "result"
    )
    coverage = GaugeMetricFamily(
        "interlock_fence_coverage_ratio",
        "Share of accepted writes that were judged: 1, or a write path bypasses it.",
        labels=["point"],
    )
    sums: dict[str, dict[str, int]] = defaultdict(lambda: {"checked": 0, "accepted": 0})
    for (point, result), entries in _grouped(
        by_measure, "fence.", lambda t: tuple(t.measure.split(".")[1:3])
    ):
        sums[point][result] = sum(entry.number for entry in entries)
    for point, found in sorted(sums.items()):
        checks.add_metric([point, "accepted"], found["accepted"])
        checks.add_metric([point, "refused"], max(0, found["checked"] - found["accepted"]))
        coverage.add_metric(
            [point], min(1.0, found["checked"] / found["accepted"]) if found["accepted"] else 1.0
        )
    yield from (checks, coverage)
    fenced = _counter("fenced", "Writes that the fence refused.", "point", "reason")
    for (point, reason), entries in _grouped(
        by_measure, "refused.", lambda t: tuple(t.measure.split(".")[1:3])
    ):
        fenced.add_metric([point, reason], sum(entry.number for entry in entries))
    yield fenced


def _errors(by_measure: ByMeasure) -> Iterator[Metric]:
    errors = _counter("worker_errors", "Failures inside a worker's loops and duties, which go on.", "part")
    for prefix in ("loop_errors.", "duty_errors."):
        for (part,), entries in _grouped(by_measure, prefix, lambda t: (t.measure.partition(".")[2],)):
            errors.add_metric([part], sum(entry.number for entry in entries))
    yield errors


def _grouped(
    by_measure: ByMeasure, prefix: str, labels: Callable[[Total], Labels]
) -> Iterator[tuple[Labels, list[Total]]]:
    found: dict[Labels, list[Total]] = defaultdict(list)
    for measure, entries in by_measure.items():
        if measure.startswith(prefix):
            for entry in entries:
                found[labels(entry)].append(entry)
    yield from sorted(found.items())


def _counter(name: str, meaning: str, *labels: str, value: float | None = None) -> CounterMetricFamily:
    return CounterMetricFamily(
        f"interlock_{name}", meaning, labels=labels if value is None else None, value=value
    )


def _histogram(name: str, meaning: str, entries: Iterable[Total], *labels: str) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"interlock_{name}", meaning, labels=labels)
    found: dict[Labels, list[Total]] = defaultdict(list)
    for entry in entries:
        found[tuple(getattr(entry, label) for label in labels)].append(entry)
    for values, group in sorted(found.items()):
        counts = {entry.bucket: entry.number for entry in group}
        seen, buckets = 0, []
        for bound in measures.BUCKETS:
            seen += counts.get(bound, 0)
            buckets.append((f"{bound / 1000:g}", float(seen)))
        buckets.append(("+Inf", float(seen + counts.get(measures.MORE, 0))))
        family.add_metric(values, buckets, sum(entry.total for entry in group) / 1000)
    return family
