"""Claiming: how many, of what, from which queue first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from jobs import handlers
from jobs.failpoints import failpoint
from jobs.ledger.probe import held_by
from jobs.ledger.session import Session
from jobs.manager import LONGEST_LEASE
from jobs.outcomes import Ending, Lease
from jobs.runtime import KINDS_PER_CLAIM, DurableJobRuntime
from jobs.worker.held import Held, Holdings
from jobs.worker.running import Finished
from jobs.worker.tally import Tally

log = logging.getLogger("interlock.worker")

MOST = 500
"""Jobs per claim: a longer transaction would keep others from the same rows for too long."""


class Claims:
    """Takes jobs for the free slots and puts them into the holdings."""

    def __init__(
        self,
        runtime: DurableJobRuntime,
        holdings: Holdings,
        *,
        worker_id: str,
        queues: Sequence[str],
        tally: Tally,
        clock: Callable[[], float],
    ) -> None:
        self.runtime = runtime
        self.holdings = holdings
        self.worker_id = worker_id
        self.queues = list(queues)
        self.tally = tally
        self.clock = clock
        self.epoch = 0
        self._turns = 0

    def turn(self, kinds: Sequence[str], room: int, *, now: datetime | None = None) -> list[Held]:
        """Claim up to `room` jobs of `kinds`. An empty list means "nothing for me now".

        The queues are tried in the order given, starting one further at each claim, so that a full first
        queue does not starve the others. More kinds than one statement takes are offered one page after the
        other, until something is got.
        """
        room = min(room, MOST)
        if room <= 0 or not kinds:
            return []
        sent = self.clock()
        failpoint("claim.before")
        leases: list[Lease] = []
        if len(kinds) > KINDS_PER_CLAIM:
            kinds = _rotated(kinds, self._turns * KINDS_PER_CLAIM)
        for start in range(0, len(kinds), KINDS_PER_CLAIM):
            leases = self.runtime.claim(
                worker_id=self.worker_id,
                queues=_rotated(self.queues, self._turns),
                kinds=kinds[start : start + KINDS_PER_CLAIM],
                max_claims=room,
                ttl=LONGEST_LEASE,
                epoch=self.epoch,
                now=now,
            )
            if leases:
                break
        failpoint("claim.after")
        self._turns += 1
        self.tally.claimed += len(leases)
        return [self._hold(lease, sent) for lease in leases]

    def return_unheld(self, *, now: datetime | None = None) -> int:
        """Give back what the database says we hold and we never got: the answer to that claim was lost.

        Only the thread that claims may call this, so that no claim is under way meanwhile.
        """
        session = Session(self.runtime.using, self.runtime.vocabulary, now)
        leases = {lease.attempt_id: lease for lease in held_by(session, self.worker_id)}
        unheld = self.holdings.never_held(leases, self.clock())
        if not unheld:
            return 0
        log.warning("claims without an answer are given back", extra={"jobs": len(unheld)})
        message = "the answer to its claim was lost"
        endings = [
            Ending.release(leases[attempt_id], error_code="WORKER_LEASE_RELEASED", message=message)
            for attempt_id in unheld
        ]
        return sum(outcome.landed for outcome in self.runtime.end(endings, now=now))

    def _hold(self, lease: Lease, sent: float) -> Held:
        handler = handlers.find(lease.kind)
        assert handler is not None, lease.kind  # noqa: S101  (only known kinds are claimed)
        held = Held(lease, handler, sent=sent, clock=self.clock, using=self.runtime.using)
        self.holdings.add(held)
        return held


def released(held: Held, message: str) -> Finished:
    """Return the ending that gives a job back because this worker stops: it costs no attempt."""
    ending = Ending.release(held.lease, error_code="WORKER_LEASE_RELEASED", message=message, log=held.log)
    return Finished(held, ending=ending)


def _rotated(items: Sequence[str], start: int) -> list[str]:
    start %= len(items)
    return [*items[start:], *items[:start]]
