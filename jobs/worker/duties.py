"""Duties of every worker: take back what lapsed, promote what came due, clear old worker rows (contract §8).

Each is isolated: an exception in one is logged and counted, and the next pass tries again. They run whether
claims are open or not.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from jobs import measures
from jobs.failpoints import failpoint
from jobs.ledger import worker as worker_rows
from jobs.ledger.outage import is_outage
from jobs.ledger.session import transact
from jobs.models import Job
from jobs.outcomes import Refused
from jobs.runtime import DurableJobRuntime
from jobs.status import HoldReason

T = TypeVar("T")
log = logging.getLogger("interlock.worker")

PAGE = 200
PAGES = 20
MASS = 10
"""Fewer expired leases than this are never taken for a sign that something else is wrong."""
PRUNE_SECONDS = 3600.0


class Duties:
    """The periodic passes. `passed` remembers when each last succeeded, for the worker's row."""

    def __init__(self, runtime: DurableJobRuntime, *, worker_id: str, clock: Callable[[], float]) -> None:
        self.runtime = runtime
        self.worker_id = worker_id
        self.clock = clock
        self.passed: dict[str, float] = {}
        self._mass_seen = False
        self._pruned: float | None = None

    def attempt(self, name: str, duty: Callable[..., T], now: datetime | None) -> T | None:
        """Perform one duty; a failure that is no outage is told and counted, and stays its own."""
        try:
            done = duty(now=now)
        except Exception as error:
            if is_outage(error):
                raise
            measures.count(f"duty_errors.{name}")
            log.exception("duty failed", extra={"duty": name})
            return None
        self.passed[name] = self.clock()
        return done

    def all_alive(self) -> None:
        """A look at the leases found none that had run out, so the next mass expiry is the first again."""
        self._mass_seen = False

    def recover(self, *, now: datetime | None = None) -> int:
        """Take back expired leases and end jobs past their deadline, page by page; returns how many."""
        if self._is_mass_expiry(now):
            return 0
        ended = 0
        for _ in range(PAGES):
            failpoint("recover.before")
            page = self._page(now)
            failpoint("recover.after")
            ended += page
            if page < PAGE:
                break
        return ended

    def promote(self, *, now: datetime | None = None) -> set[str]:
        """Make claimable what has come due; returns the queues that have more to do now."""
        queues: set[str] = set()
        for _ in range(PAGES):
            promoted = self.runtime.promote(limit=1000, now=now)
            queues.update(promoted)
            if len(promoted) < 1000:
                break
        return queues

    def prune(self, *, now: datetime | None = None) -> None:
        """Delete rows of workers that have not been heard of for a day, once an hour."""
        if self._pruned is not None and self.clock() - self._pruned < PRUNE_SECONDS:
            return
        transact(
            worker_rows.prune,
            using=self.runtime.using,
            vocabulary=self.runtime.vocabulary,
            now=now,
            durable=False,
            fenced=False,
        )
        self._pruned = self.clock()

    # -- recovery ------------------------------------------------------------------------------------------

    def _is_mass_expiry(self, now: datetime | None) -> bool:
        """Whether more than half of all leases have just run out: perhaps a clock jumped or a network broke.

        Then this pass does nothing; if the next one sees the same, it is true and recovery goes on.
        """
        running, expired = self.runtime.running(now=now)
        mass = expired >= MASS and expired * 2 > running
        first, self._mass_seen = mass and not self._mass_seen, mass
        if first:
            measures.count("recovery_paused")
            log.warning(
                "most leases ran out at once; recovery waits", extra={"expired": expired, "of": running}
            )
        return first

    def _page(self, now: datetime | None) -> int:
        try:
            return len(self.runtime.recover(limit=PAGE, now=now))
        except Exception as error:
            if is_outage(error):
                raise
            # A callback raised for some row of the page, so nothing of it was written.
            log.exception("recovery page rolled back, rows tried one by one")
            return self._one_by_one(now)

    def _one_by_one(self, now: datetime | None) -> int:
        ended = 0
        for job_id in self.runtime.lapsed_ids(limit=PAGE, now=now):
            try:
                ended += len(self.runtime.recover_one(job_id, now=now))
            except Exception as error:
                if is_outage(error):
                    raise
                log.exception("row quarantined", extra={"job_id": job_id})
                self._quarantine(job_id, error, now)
        return ended

    def _quarantine(self, job_id: str, error: Exception, now: datetime | None) -> None:
        measures.count("quarantined")
        try:
            Job.objects.db_manager(self.runtime.using).hold(
                uuid.UUID(job_id),
                actor=f"worker {self.worker_id}"[:150],
                reason=f"recovery raised {type(error).__name__}",
                hold_reason=HoldReason.QUARANTINE,
                now=now,
            )
        except Refused as refused:  # it ended meanwhile
            log.info("quarantine not needed", extra={"job_id": job_id, "code": refused.code})
