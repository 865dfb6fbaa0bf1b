"""A lease in this process's hands, and all of them: memory that handlers, heartbeat and endings share.

No field is guarded by a lock. Each is written by one side only, or once; what must happen once for an
attempt (its ending) is taken by `close`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from jobs import admission, redact
from jobs.handlers import Handler
from jobs.outcomes import Lease

# Counts on while the machine is suspended, which CLOCK_MONOTONIC does not: a laptop that slept for an hour
# must know that its leases are gone (contract §2). Other systems have the next best.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LARGEST = 2**63 - 1
REMEMBERED_SECONDS = 600.0
"""How long beyond its end a lease that was let go is remembered: until recovery has surely been by."""


def boottime() -> float:
    """Return seconds on the clock by which a worker fences itself."""
    return time.clock_gettime(_BOOT)


class Held:
    """One claimed job, from the claim to the answer to its ending."""

    __slots__ = (
        "_right",
        "_secrets",
        "beats",
        "began",
        "cancel_requested",
        "claimed",
        "clock",
        "dirty",
        "handler",
        "lease",
        "lines",
        "lines_dropped",
        "lost",
        "progress",
        "released",
        "renewal",
        "renewed",
        "surely_ends",
        "timed_out",
        "using",
    )

    def __init__(
        self,
        lease: Lease,
        handler: Handler,
        *,
        sent: float,
        clock: Callable[[], float],
        using: str = DEFAULT_DB_ALIAS,
    ) -> None:
        self.using = using
        self.lease = lease
        """As claimed: what a commit presents."""
        self.renewal = lease
        """With the newest cancel number: what a renewal presents."""
        self.handler = handler
        self.clock = clock
        self.claimed = self.renewed = sent
        self.surely_ends = sent + _seconds(lease)
        """Boot time, counted from before the claim or renewal was sent; nothing is committed from then on."""
        self.began: float | None = None
        self.cancel_requested = False
        self.lost = ""
        self.timed_out = False
        self.released = False
        self.dirty = False
        self.progress: tuple[int | None, int | None, str | None] = (None, None, None)
        self.lines: deque[str] | None = None
        self.lines_dropped = 0
        self.beats = 0
        self._right = [None]
        self._secrets: set[str] | None = None

    # -- who ends it ------------------------------------------------------------------------------------

    def close(self) -> bool:
        """Take the right to end this attempt; True for one caller only."""
        try:
            self._right.pop()
        except IndexError:
            return False
        return True

    @property
    def closed(self) -> bool:
        """Whether an ending was decided, sent or not."""
        return not self._right

    # -- what the heartbeat says -------------------------------------------------------------------------

    def extend(self, *, sent: float) -> None:
        """The renewal sent at `sent` was granted."""
        self.renewed = sent
        self.beats += 1
        self.dirty = True
        ends = sent + self.lease.ttl_seconds
        if self.lease.deadline_at is not None and self.lease.started_at is not None:
            ends = min(ends, self.claimed + (self.lease.deadline_at - self.lease.started_at).total_seconds())
        self.surely_ends = max(self.surely_ends, ends)

    def tell_cancel(self, cancel_generation: int) -> None:
        """A cancel was requested; renewals go on under the new number, commits do not."""
        self.renewal = self.renewal.told_cancel(cancel_generation)
        self.cancel_requested = True

    def lose(self, reason: str) -> None:
        """The lease is gone."""
        self.lost = self.lost or reason or "LEASE_EXPIRED"

    # -- what the handler says ----------------------------------------------------------------------------

    def is_late(self, now: float) -> bool:
        """Whether the handler has run longer than its kind's time limit."""
        limit = self.handler.timeout
        return self.timed_out or (limit is not None and self.began is not None and now - self.began >= limit)

    def note_progress(self, done: int, total: int | None, note: str) -> None:
        """Remember how far the handler is. Raises TypeError or ValueError for what is no whole number."""
        numbers = [None if n is None else _whole(n) for n in (done, total)]
        self.progress = (numbers[0], numbers[1], self._clean(note, 800)[:200])
        self.dirty = True

    def note_line(self, text: object) -> None:
        """Remember a log line; the newest LOG_LINES are kept."""
        keep = settings.INTERLOCK["LOG_LINES"]
        if self.lines is None:
            self.lines = deque(maxlen=keep)
        for line in self._clean(text, settings.INTERLOCK["LOG_LINE_BYTES"]).splitlines() or [""]:
            self.lines_dropped += len(self.lines) == keep
            self.lines.append(line)
        self.dirty = True

    def _clean(self, text: object, limit: int) -> str:
        if self._secrets is None:
            self._secrets = admission.secrets_of(self.lease)
        return redact.clean(text, limit=limit, secrets=self._secrets)

    @property
    def log(self) -> str | None:
        """The log as it is stored, or None when there is none."""
        if self.lines is None:
            return None
        lines = list(self.lines)
        if self.lines_dropped:
            lines.insert(0, f"… {self.lines_dropped} earlier lines were not kept")
        return "\n".join(lines)

    def note(self) -> dict[str, Any]:
        """Return beats, progress and log as the attempt's row takes them, and count them as written."""
        self.dirty = False
        beats, self.beats = self.beats, 0
        done, total, text = self.progress
        return {
            "attempt_id": self.lease.attempt_id,
            "beats": beats,
            "progress_done": done,
            "progress_total": total,
            "progress_note": text,
            "log": self.log,
        }

    def database_now(self) -> datetime:
        """Return the database's time as this process knows it: the claim's, plus what has passed since."""
        passed = timedelta(seconds=self.clock() - self.claimed)
        return (self.lease.started_at or datetime.now(UTC)) + passed


def _seconds(lease: Lease) -> float:
    """Return the lease's length: the kind's, or less where a deadline cuts it."""
    if lease.deadline_at is None or lease.lease_expires_at is None or lease.started_at is None:
        return float(lease.ttl_seconds)
    return min(float(lease.ttl_seconds), (lease.lease_expires_at - lease.started_at).total_seconds())


def _whole(number: int) -> int:
    value = int(number)
    if abs(value) > LARGEST:
        raise ValueError("a progress beyond 2**63 - 1")
    return value


class Holdings:
    """Every lease this process holds, by attempt."""

    def __init__(self) -> None:
        self._by_attempt: dict[Any, Held] = {}
        self._let_go: dict[Any, float] = {}

    def add(self, held: Held) -> None:
        self._by_attempt[held.lease.attempt_id] = held

    def drop(self, held: Held) -> None:
        """The lease is given up, committed or lost: nobody renews it any more."""
        if held.lost:
            self._let_go[held.lease.attempt_id] = held.surely_ends
        self._by_attempt.pop(held.lease.attempt_id, None)

    def never_held(self, attempt_ids: Iterable[Any], now: float) -> set[Any]:
        """Return those of `attempt_ids` that this process never had in its hands.

        A lease that was let go on purpose is not among them: it must run out, and cost its attempt.
        """
        self._let_go = {a: ends for a, ends in self._let_go.items() if now < ends + REMEMBERED_SECONDS}
        return set(attempt_ids) - self._by_attempt.keys() - self._let_go.keys()

    def __len__(self) -> int:
        return len(self._by_attempt)

    def __iter__(self) -> Iterator[Held]:
        # Other threads add and drop meanwhile; a copy made in one step is a consistent moment.
        return iter(list(self._by_attempt.values()))
