"""The heartbeat: renewals, progress, the worker's row, the clock's mark and the counts.

In the threaded worker it runs in a thread of its own on a connection of its own, so that neither a handler
that blocks nor a busy claim loop starves it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from jobs import measures
from jobs.failpoints import failpoint
from jobs.ledger import epoch as scheduler
from jobs.ledger import settle, timeline
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.models import Job
from jobs.outcomes import Code, Outcome
from jobs.runtime import DurableJobRuntime
from jobs.worker.held import Held, Holdings

log = logging.getLogger("interlock.worker")

ROW_SECONDS = 10.0
NOTE_SECONDS = 1.0
BUSY_SECONDS = 1.0
AT_ONCE = 500


class Beat:
    """Keeps leases alive and tells handlers what the database says about theirs."""

    def __init__(
        self,
        runtime: DurableJobRuntime,
        holdings: Holdings,
        *,
        clock: Callable[[], float],
        describe: Callable[[], dict[str, Any]],
        worker_id: str,
    ) -> None:
        self.runtime = runtime
        self.holdings = holdings
        self.clock = clock
        self.describe = describe
        self.worker_id = worker_id
        self.every = float(settings.INTERLOCK["HEARTBEAT_SECONDS"])
        self.fenced = False
        self.failing_since: float | None = None
        """When beats began to fail; None while they land."""
        self._hasty = False
        self._next_renewal = 0.0
        self._next_row = 0.0
        self._next_notes = 0.0

    def hasten(self) -> None:
        """Renew at the next turn, fresh leases too: a cancel request is waiting to be told."""
        self._hasty = True

    def turn(self, *, now: datetime | None = None) -> None:
        """Do what is due. Raises the database's error; what was not done stays due."""
        instant = self.clock()
        try:
            self._turn(instant, now)
        except Exception:
            if self.failing_since is None:
                self.failing_since = instant
            raise
        self.failing_since = None

    def fails_for(self, seconds: float) -> bool:
        """Whether no beat has landed for so long."""
        return self.failing_since is not None and self.clock() - self.failing_since >= seconds

    def _turn(self, instant: float, now: datetime | None) -> None:
        if self._hasty or instant >= self._next_renewal:
            self.renew(now=now, everything=self._hasty)
            self._hasty = False
        if instant >= self._next_notes:
            self.write_notes(now=now)
            self._next_notes = instant + NOTE_SECONDS
        if instant >= self._next_row:
            self.write_row(now=now)
            self._next_row = instant + ROW_SECONDS

    # -- renewals ------------------------------------------------------------------------------------------

    def renew(self, *, now: datetime | None = None, everything: bool = False) -> None:
        """Extend every lease that is not quite fresh, all in one statement per page.

        A lease claimed or renewed less than half a heartbeat ago is left alone: most jobs end before they
        are ever renewed.
        """
        instant = self.clock()
        due = [
            held
            for held in self.holdings
            if not held.lost and (everything or instant - held.renewed >= self._interval(held) / 2)
        ]
        soon = instant + self.every * random.uniform(0.9, 1.0)
        for start in range(0, len(due), AT_ONCE):
            if self._renew_page(due[start : start + AT_ONCE], now):
                soon = min(soon, instant + BUSY_SECONDS)
        shortest = min((self._interval(held) for held in self.holdings), default=self.every)
        self._next_renewal = min(soon, instant + shortest)

    def _interval(self, held: Held) -> float:
        """Return how often this lease is renewed: a row may carry a shorter lease than its kind has now."""
        return min(self.every, held.lease.ttl_seconds / 3)

    def _renew_page(self, page: Sequence[Held], now: datetime | None) -> bool:
        """Renew a page and tell its handlers; returns whether some must be asked again soon."""
        sent = self.clock()
        failpoint("renew.before")
        outcomes = self.runtime.renew([held.renewal for held in page], now=now)
        failpoint("renew.after")
        again = False
        for held, outcome in zip(page, outcomes, strict=True):
            again |= self._hear(held, outcome, sent)
        return again

    def _hear(self, held: Held, outcome: Outcome, sent: float) -> bool:
        if outcome.code == Code.RENEWED:
            held.extend(sent=sent)
        elif outcome.code == Code.CANCELLED:
            held.tell_cancel(outcome.cancel_generation or 0)
            log.info("cancel requested", extra={"job_id": held.lease.job_id})
            return True  # nothing was extended: renew under the new number
        elif outcome.code == Code.BUSY:
            return True
        elif not held.closed or self.clock() >= held.surely_ends:
            # An ending that is under way may have landed already, which looks the same from here.
            measures.count("renew_failures", kind=held.lease.kind)
            held.lose(outcome.reason)
            self.holdings.drop(held)
            log.warning("lease lost", extra={"job_id": held.lease.job_id, "reason": outcome.reason})
        return False

    # -- small writes ----------------------------------------------------------------------------------------

    def write_notes(self, *, now: datetime | None = None) -> None:
        """Write what handlers told of their progress, and their log lines."""
        dirty = [held for held in self.holdings if held.dirty and not held.closed]
        if dirty:
            notes = [held.note() for held in dirty]
            self._write(lambda session: settle.note_attempts(session, notes), now)

    def write_row(self, *, now: datetime | None = None) -> None:
        """Write the worker's row; with work in hand also the clock's mark and the counts."""
        failpoint("beat.before")
        counts = measures.drain()
        # An older copy of a file is known by its clock's mark, which stays as it is until a person has come.
        busy = (bool(counts) or len(self.holdings) > 0) and not timeline.moved(self.runtime.using)

        def work(session: Session) -> tuple[Any, bool]:
            fenced_at = worker_rows.beat(session, id=self.worker_id, **self.describe())
            back = scheduler.mark_clock(session) if busy else False
            worker_rows.add_minutes(session, counts)
            return fenced_at, back

        try:
            fenced_at, back = self._write(work, now)
        except BaseException:
            measures.put_back(counts)
            raise
        failpoint("beat.after")
        if busy:
            timeline.note(self.runtime.using)
        if fenced_at is not None:
            self.fenced = True
        if back:
            self.close_claims()

    def close_claims(self) -> None:
        """The database's clock went back: close claims until a person has looked (contract §2)."""
        if Job.objects.db_manager(self.runtime.using).close_claims(
            actor=f"worker {self.worker_id}"[:150], reason="clock"
        ):
            measures.count("clock_went_back")
            log.error("the database's clock went back: claims are closed")

    def _write(self, work: Callable[[Session], Any], now: datetime | None) -> Any:
        return transact(
            work,
            using=self.runtime.using,
            vocabulary=self.runtime.vocabulary,
            now=now,
            durable=False,
            fenced=False,
        )


def iso(seconds_ago: float) -> str:
    """Return an instant that lies `seconds_ago` back, as the worker's row keeps it."""
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds_ago, UTC).isoformat()
