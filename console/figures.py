"""Figures made of the minute rows: rates, percentiles, fence coverage. Nothing here counts jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Floor

from jobs.ledger import indexed
from jobs.ledger.epochs import Epoch
from jobs.measures import BUCKETS, HOURLY, MORE, hour_of
from jobs.models import Minute

COMMITS = "fence.commit.accepted"
LATENCY = "due_to_commit"
"""Histogram of the time from due to canonical commit (contract §14)."""
REFUSED = "refused."
CLAIMS, EMPTY = "claims", "claims_empty"
"""Claims that a sign of work prompted, and those of them that found nothing."""
RETRIES, LOST = "retries", "recovered.pending"
"""Attempts that failed, and those that lost their lease, whose job went on to another one."""
FAILED, LAST_LOST = "failed", "recovered.failed"
"""Jobs that failed for good: by an attempt's own ending, and by recovery."""
UNKNOWN = "fence.uncertain.accepted"
_COUNTERS = {
    COMMITS: "commits",
    RETRIES: "retries",
    LOST: "retries",
    FAILED: "failed",
    LAST_LOST: "failed",
    UNKNOWN: "unknown",
    CLAIMS: "claims",
    EMPTY: "empty",
}

WIDE = 2
"""Hours of a bin where the range is longer than a day: a week is 84 of them, as many as a chart can show."""
Histogram = dict[int, int]


@dataclass
class Bin:
    """One stretch of time on a chart."""

    start: datetime
    commits: int = 0
    refused: int = 0
    claims: int = 0
    empty: int = 0
    retries: int = 0
    failed: int = 0
    unknown: int = 0
    latency: Histogram = field(default_factory=lambda: defaultdict(int))


def flow(now: datetime, *, hours: int) -> list[Bin]:
    """Return the last `hours` in bins, oldest first: sixty up to a day, and beyond that one for two hours.

    The running minute, or the running hour, is left out: it is not over.
    """
    return _by_minute(now, hours) if hours <= 24 else _by_hour(now, hours)


def _by_minute(now: datetime, hours: int) -> list[Bin]:
    width = hours
    end = now.replace(second=0, microsecond=0)
    start = end - timedelta(hours=hours)
    bins = [Bin(start + timedelta(minutes=width * n)) for n in range(60)]
    rows = (
        indexed.whole(Minute.objects.all())
        .filter(_charted(), minute__gte=start, minute__lt=end)
        .order_by()
        .values_list(_place(start, 60.0 * width), "measure", "bucket")
        .annotate(n=Sum("count"))
    )
    for number, measure, bucket, n in rows:
        _add(bins[min(59, int(number))], measure, bucket, n)
    return bins


def _by_hour(now: datetime, hours: int) -> list[Bin]:
    kept = _hours(now, hours)[:-1]
    width = timedelta(hours=WIDE)
    bins = [Bin(kept[0] + width * n) for n in range(-(-hours // WIDE))]
    rows = (
        _hourly(kept)
        .filter(_charted(HOURLY))
        .values_list(_place(kept[0], width.total_seconds()), "measure", "bucket")
        .annotate(n=Sum("count"))
    )
    for number, measure, bucket, n in rows:
        _add(bins[int(number)], measure.removeprefix(HOURLY), bucket, n)
    return bins


def _hours(now: datetime, before: int) -> list[datetime]:
    """Return the running hour, last, and so many before it, by their first minutes."""
    return [hour_of(now) - timedelta(hours=n) for n in range(before, -1, -1)]


def _hourly(hours: Iterable[datetime]) -> QuerySet[Minute]:
    """Return what is kept of these hours, one by one, so that nothing between two first minutes is read."""
    return indexed.whole(Minute.objects.filter(minute__in=list(hours))).order_by()


def _charted(prefix: str = "") -> Q:
    names = [prefix + name for name in (LATENCY, *_COUNTERS)]
    return Q(measure__in=names) | Q(measure__startswith=prefix + REFUSED)


def _add(part: Bin, measure: str, bucket: int, n: int) -> None:
    if measure == LATENCY:
        part.latency[bucket] += n
    else:
        name = _COUNTERS.get(measure, "refused")
        setattr(part, name, getattr(part, name) + n)


def _place(start: datetime, seconds: float) -> Floor:
    """Return the number of the bin that a minute lies in, made by the database: it has thousands of rows."""
    # A second more, lest an instant that is told to the millisecond fall into the bin before.
    return Floor((Epoch("minute") - (start.timestamp() - 1)) / seconds)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return one histogram of several."""
    total: Histogram = defaultdict(int)
    for histogram in histograms:
        for bucket, n in histogram.items():
            total[bucket] += n
    return total


def percentile(histogram: Histogram, share: float) -> float | None:
    """Return the seconds that `share` of the observations stay below, read between a bucket's bounds."""
    total = sum(histogram.values())
    if not total:
        return None
    rank, passed, low = share * total, 0.0, 0.0
    for bound in (*BUCKETS, MORE):
        n = histogram.get(bound, 0)
        if n and passed + n >= rank:
            if bound == MORE:
                return BUCKETS[-1] / 1000
            return (low + (bound - low) * (rank - passed) / n) / 1000
        passed += n
        low = float(bound)
    return BUCKETS[-1] / 1000


@dataclass(frozen=True)
class Coverage:
    """How many accepted writes were checked by the fence; `share` is None where nothing was accepted yet."""

    accepted: int
    checked: int
    refused: int

    @property
    def share(self) -> float | None:
        return None if not self.accepted else 100 * self.checked / self.accepted

    @property
    def whole(self) -> bool:
        return self.checked >= self.accepted


def coverage(now: datetime) -> Coverage:
    """Return what the fence checked of what it let in, in the running hour and the 24 before, by point."""
    kept = _hourly(_hours(now, 24)).filter(measure__startswith=f"{HOURLY}fence.")
    sums: dict[str, dict[str, int]] = defaultdict(dict)
    for measure, n in kept.values_list("measure").annotate(n=Sum("count")):
        _, point, word = measure.removeprefix(HOURLY).split(".", 2)
        sums[point][word] = n
    accepted = sum(point.get("accepted", 0) for point in sums.values())
    checked = sum(min(p.get("checked", 0), p.get("accepted", 0)) for p in sums.values())
    refused = sum(max(0, p.get("checked", 0) - p.get("accepted", 0)) for p in sums.values())
    return Coverage(accepted, checked, refused)


def commits_by_queue(now: datetime, *, bins: int = 20) -> dict[str, list[int]]:
    """Return the commits of the last hour by queue, in bins of three minutes."""
    end = now.replace(second=0, microsecond=0)
    start = end - timedelta(minutes=3 * bins)
    series: dict[str, list[int]] = defaultdict(lambda: [0] * bins)
    rows = (
        Minute.objects.filter(minute__gte=start, minute__lt=end, measure=LATENCY)
        .exclude(queue="")
        .order_by()
        .values_list("queue", _place(start, 180.0))
        .annotate(n=Sum("count"))
    )
    for queue, number, n in rows:
        series[queue][min(bins - 1, int(number))] += n
    return series
