"""Counting in memory, flushed to `Minute` rows with each worker beat (contract §14).

Everything another process may want to read is in the database; nothing here is exported from memory.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

BUCKETS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000)
"""Upper bounds in milliseconds; the last bucket of a row is 'more'."""
MORE = 2**62
EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The minute under which the running totals are kept: pruning minutes must leave it alone."""


HOURLY = "hour."
"""What stands before a measure where it is kept by the hour, under its first minute and no queue: a week
has ten thousand minutes, each with a row for every measure and bucket."""


def hour_of(moment: datetime) -> datetime:
    """Return the first minute of an hour, under which the hour's sums are kept."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


class Key(NamedTuple):
    minute: datetime
    measure: str
    queue: str
    kind: str
    bucket: int


_lock = threading.Lock()
_counts: dict[Key, list[float]] = defaultdict(lambda: [0, 0.0])


def count(measure: str, amount: int = 1, *, queue: str = "", kind: str = "", total: float = 0.0) -> None:
    """Add `amount` occurrences of `measure` in the current minute, and `total` to the sum of its values."""
    if not amount:
        return
    key = Key(_minute(), measure, queue, kind, 0)
    with _lock:
        entry = _counts[key]
        entry[0] += amount
        entry[1] += total


def observe(measure: str, seconds: float, *, queue: str = "", kind: str = "") -> None:
    """Add one observation of a duration to the histogram of `measure`."""
    milliseconds = max(0.0, seconds * 1000)
    bucket = next((bound for bound in BUCKETS if milliseconds <= bound), MORE)
    key = Key(_minute(), measure, queue, kind, bucket)
    with _lock:
        entry = _counts[key]
        entry[0] += 1
        entry[1] += milliseconds


def observe_all(measure: str, durations: Iterable[float], *, queue: str = "", kind: str = "") -> None:
    """Add many observations of one measure, at the price of one."""
    found: dict[int, list[float]] = {}
    for seconds in durations:
        milliseconds = max(0.0, seconds * 1000)
        index = bisect_left(BUCKETS, milliseconds)
        entry = found.setdefault(BUCKETS[index] if index < len(BUCKETS) else MORE, [0, 0.0])
        entry[0] += 1
        entry[1] += milliseconds
    minute = _minute()
    with _lock:
        for bucket, (amount, total) in found.items():
            kept = _counts[Key(minute, measure, queue, kind, bucket)]
            kept[0] += amount
            kept[1] += total


def drain() -> list[dict[str, object]]:
    """Take what was counted since the last call; `put_back` it when it could not be written."""
    with _lock:
        taken = dict(_counts)
        _counts.clear()
    return [key._asdict() | {"count": int(entry[0]), "total": entry[1]} for key, entry in taken.items()]


def put_back(rows: list[dict[str, object]]) -> None:
    """Keep rows that could not be written for the next flush."""
    with _lock:
        for row in rows:
            entry = _counts[Key(*(row[name] for name in Key._fields))]  # type: ignore[arg-type]
            entry[0] += row["count"]  # type: ignore[operator]
            entry[1] += row["total"]  # type: ignore[operator]


def _minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)
