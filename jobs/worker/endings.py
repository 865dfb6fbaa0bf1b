"""Endings on their way to the database: group commit, replays, and what to do when one is refused.

An ending leaves the list when the database has answered it, or when its lease has surely ended. Until then
it is sent again at the same generation; the ledger tells a replay from a conflict.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

from jobs import measures
from jobs.failpoints import failpoint
from jobs.ledger import settle
from jobs.ledger.outage import is_outage
from jobs.ledger.session import transact
from jobs.outcomes import Code, Ending, Outcome
from jobs.runtime import DurableJobRuntime
from jobs.worker.held import Held, Holdings
from jobs.worker.pace import Pace
from jobs.worker.running import Finished
from jobs.worker.tally import Tally

log = logging.getLogger("interlock.worker")

Send = Callable[[Sequence[Finished], datetime | None], None]
AT_ONCE = 500
"""Endings per transaction: more would hold their row locks for longer than a lone job wants to wait."""
TRIES = 3
"""How often an ending that the database refuses alone (not an outage) is tried before it is given up."""


class Endings:
    """The endings that handlers reported and the database has not answered yet."""

    def __init__(
        self,
        runtime: DurableJobRuntime,
        holdings: Holdings,
        *,
        pace: Pace,
        tally: Tally,
        clock: Callable[[], float],
    ) -> None:
        self.runtime = runtime
        self.holdings = holdings
        self.pace = pace
        self.tally = tally
        self.clock = clock
        self.bell = threading.Event()
        """Rung when there is something to send."""
        self._waiting: deque[Finished] = deque()
        self._refused: dict[Held, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def report(self, held: Held, finished: Finished | None) -> None:
        """Take what a handler came to; called from its thread, touches no database."""
        if held.began is not None:
            self.pace.note(held.handler.name, self.clock() - held.began)
        if finished is None:
            self.discard(held)
            return
        self._waiting.append(finished)
        if not self.bell.is_set():
            self.bell.set()

    def add(self, finished: Finished) -> None:
        """Queue an ending that no handler reported: a time limit, a stop."""
        self._waiting.append(finished)
        self.bell.set()

    def turn(self, *, now: datetime | None = None, limit: int = AT_ONCE) -> int:
        """Send up to `limit` endings, each group in one transaction; returns how many were answered.

        Raises the database's error with nothing forgotten: what was not answered is sent again next time.
        """
        batch = self._take(limit)
        if not batch:
            return 0
        commits = [finished for finished in batch if finished.ending is None]
        others = [finished for finished in batch if finished.ending is not None]
        try:
            self._write_notes(batch)
            self._send(commits, self._commit, now)
            self._send(others, self._end, now)
        except BaseException:
            self._waiting.extendleft(reversed([*commits, *others]))
            raise
        return len(batch)

    # -- sending -------------------------------------------------------------------------------------------

    def _take(self, limit: int) -> list[Finished]:
        """Take endings whose lease may still be alive; the others are lost without asking anybody."""
        now = self.clock()
        batch: list[Finished] = []
        while len(batch) < limit and self._waiting:
            finished = self._waiting.popleft()
            held = finished.held
            if held.lost or now >= held.surely_ends:
                held.lose("LEASE_EXPIRED")
                self.discard(held)
            else:
                batch.append(finished)
        return batch

    def _write_notes(self, batch: Sequence[Finished]) -> None:
        """Write the last progress of attempts that told any: once they have ended it cannot be."""
        notes = [f.held.note() for f in batch if f.held.dirty and f.held.progress[2] is not None]
        if notes:
            transact(
                lambda session: settle.note_attempts(session, notes),
                using=self.runtime.using,
                vocabulary=self.runtime.vocabulary,
                durable=False,
                fenced=False,
            )

    def _send(self, group: list[Finished], send: Send, now: datetime | None) -> None:
        """Send a group and empty it as it is answered.

        One that the database will not have together is sent one by one, so that a bad ending, or a callback
        that raises for it, spoils only itself.
        """
        if not group:
            return
        try:
            send(group, now)
            group.clear()
        except Exception as error:
            if is_outage(error):
                raise
            measures.count("endings_refused")
            log.exception("endings refused together, sent one by one", extra={"endings": len(group)})
        while group:
            try:
                send(group[:1], now)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refuse(group[0])
            del group[0]

    def _refuse(self, finished: Finished) -> None:
        """The database, or somebody's callback, will not have it: try again, then let the lease run out."""
        held = finished.held
        tries = self._refused[held] = self._refused.get(held, 0) + 1
        log.exception("ending refused", extra={"job_id": held.lease.job_id, "tries": tries})
        if tries < TRIES:
            self.add(finished)
            return
        held.lose("ENDING_REFUSED")
        self.discard(held)

    def _commit(self, batch: Sequence[Finished], now: datetime | None) -> None:
        failpoint("commit.before")
        logs = {f.held.lease.attempt_id: text for f in batch if (text := f.held.log) is not None}
        outcomes = self.runtime.commit([(f.held.lease, f.text, f.digest) for f in batch], logs=logs, now=now)
        failpoint("commit.after")
        done = [f.held for f, outcome in zip(batch, outcomes, strict=True) if outcome.landed]
        for held in done:
            self._forget(held)
        self._measure(done)
        if len(done) < len(batch):
            for finished, outcome in zip(batch, outcomes, strict=True):
                if not outcome.landed:
                    self._answer(finished, outcome)

    def _end(self, batch: Sequence[Finished], now: datetime | None) -> None:
        endings = [f.ending for f in batch if f.ending is not None]
        releases = any(e.verb == "release" for e in endings)
        failpoint("release.before" if releases else "fail.before")
        outcomes = self.runtime.end(endings, now=now)
        failpoint("release.after" if releases else "fail.after")
        for finished, outcome in zip(batch, outcomes, strict=True):
            if not outcome.landed:
                self._answer(finished, outcome)
                continue
            ending = finished.ending
            assert ending is not None  # noqa: S101  (the batch was picked by it)
            self._forget(finished.held)
            self.tally.ended(ending.verb)
            log.info(
                "attempt ended",
                extra={
                    "job_id": finished.held.lease.job_id,
                    "attempt_id": finished.held.lease.attempt_id,
                    "kind": finished.held.lease.kind,
                    "verb": ending.verb,
                    "error_code": ending.error_code,
                    "status": outcome.status.value if outcome.status else "",
                },
            )

    def _answer(self, finished: Finished, outcome: Outcome) -> None:
        """Do what a refusal asks for: acknowledge, release, or stop."""
        held, lease = finished.held, finished.held.lease
        if outcome.code == Code.CANCELLED:
            self.add(Finished(held, ending=Ending.acknowledge_cancel(lease, log=held.log)))
        elif outcome.code == Code.STALE_INPUT or outcome.reason == "HELD":
            message = "the input was revised while it ran" if outcome.code == Code.STALE_INPUT else "on hold"
            ending = Ending.release(lease, error_code="WORKER_LEASE_RELEASED", message=message, log=held.log)
            self.add(Finished(held, ending=ending))
        elif outcome.reason == "EFFECT_UNRESOLVED":
            note = "the handler returned while the outcome of an effect was open"
            self.add(Finished(held, ending=Ending.uncertain(lease, note, log=held.log)))
        else:
            held.lose(outcome.reason)
            self.discard(held)

    # -- accounts ------------------------------------------------------------------------------------------

    def discard(self, held: Held) -> None:
        """The attempt is over and what it did is worth nothing: count the time, tell once."""
        held.close()
        self._forget(held)
        if not held.lost:
            return  # ended before, by a time limit or a stop
        seconds = self.clock() - (held.began or held.claimed)
        measures.count("discarded_seconds", total=seconds, queue=held.lease.queue, kind=held.lease.kind)
        self.tally.lost += 1
        log.warning(
            "lease lost, result discarded",
            extra={
                "job_id": held.lease.job_id,
                "attempt_id": held.lease.attempt_id,
                "kind": held.lease.kind,
                "reason": held.lost,
            },
        )

    def _forget(self, held: Held) -> None:
        self.holdings.drop(held)
        self._refused.pop(held, None)

    def _measure(self, done: Sequence[Held]) -> None:
        now = self.clock()
        self.tally.committed += len(done)
        waits: dict[tuple[str, str], list[float]] = {}
        for held in done:
            lease = held.lease
            if lease.created_at is not None and lease.started_at is not None:
                queued = (
                    lease.started_at - max(lease.created_at, lease.due_at or lease.created_at)
                ).total_seconds()
                waits.setdefault((lease.queue, lease.kind), []).append(queued + now - held.claimed)
        for (queue, kind), seconds in waits.items():
            measures.observe_all("due_to_commit", seconds, queue=queue, kind=kind)
