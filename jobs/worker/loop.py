"""The worker: a machine of small turns, each of which can be taken by hand.

`step()` takes one of each in the calling thread: attend to what lapsed and came due, claim, run, settle,
beat. The threaded worker (threads.py) takes the same turns in loops of their own, so that claiming, running
and committing overlap.
"""

from __future__ import annotations

import logging
import os
import platform
import socket
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from jobs.ledger import timeline
from jobs.ledger import worker as worker_rows
from jobs.ledger.probe import Findings, probe
from jobs.ledger.session import Session, transact
from jobs.models import Job
from jobs.worker import start
from jobs.worker.beat import Beat, iso
from jobs.worker.claims import MOST, Claims, released
from jobs.worker.coroutines import Coroutines
from jobs.worker.duties import Duties
from jobs.worker.endings import Endings
from jobs.worker.held import Held, Holdings, boottime
from jobs.worker.pace import Pace
from jobs.worker.reconciler import Reconciler
from jobs.worker.running import timed_out
from jobs.worker.slots import Slots
from jobs.worker.stop import ERROR, Stop
from jobs.worker.tally import Tally

log = logging.getLogger("interlock.worker")

PROBE_SECONDS = 1.0
BARREN_SECONDS = 5.0
HOSTAGE_SECONDS = 5.0
"""How long a job claimed ahead may wait behind slots that are all busy."""
UNSENT = 2000
"""Endings that may wait for the database before claiming stops."""
STOPPED = "the worker stopped"


class Worker:
    """One worker: its identity, what it holds, and its turns.

    `queues` and `kinds` default to all that this process knows. `clock` is seconds of boot time.
    """

    def __init__(
        self,
        *,
        queues: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        concurrency: int = 8,
        using: str = DEFAULT_DB_ALIAS,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.id = start.new_id()
        self.using = using
        self.clock = clock
        self.concurrency = concurrency
        self.kinds = start.known(kinds)
        self.queues = (
            list(queues) if queues else sorted({start.handler_of(kind).queue for kind in self.kinds})
        )
        start.check_leases(self.kinds)
        self.plain = [kind for kind in self.kinds if not start.handler_of(kind).is_async]
        self.coroutine = [kind for kind in self.kinds if start.handler_of(kind).is_async]
        runtime = Job.objects.db_manager(using).runtime
        self.runtime = runtime
        self.stop = Stop()
        self.tally, self.pace, self.holdings = Tally(), Pace(), Holdings()
        self.endings = Endings(runtime, self.holdings, pace=self.pace, tally=self.tally, clock=clock)
        self.slots = Slots(concurrency, pace=self.pace, report=self.endings.report)
        self.coroutines = Coroutines(concurrency, report=self.endings.report)
        self.claims = Claims(
            runtime, self.holdings, worker_id=self.id, queues=self.queues, tally=self.tally, clock=clock
        )
        self.duties = Duties(runtime, worker_id=self.id, clock=clock)
        self.reconciler = Reconciler(
            runtime, worker_id=self.id, queues=self.queues, kinds=self.kinds, clock=clock
        )
        self.beat = Beat(runtime, self.holdings, clock=clock, describe=self.describe, worker_id=self.id)
        self.passed: dict[str, float] = {}
        self.hungry = True
        """Whether a claim may find something: set by every sign of work, cleared by an empty claim."""
        self._left_out: frozenset[str] = frozenset()
        """The kinds that the last claim, which was empty, could not ask for: all their slots were busy."""
        self.findings: Findings | None = None
        self.due_at: float | None = None
        self.stopped = False
        self._barren_until = 0.0

    # -- turns -------------------------------------------------------------------------------------------

    def step(self, *, now: datetime | None = None) -> int:
        """Take one of each turn in this thread; returns how many jobs were claimed."""
        if not self.claims.epoch:
            self.register(now=now)
        self.attend(now=now)
        claimed = self.claim(now=now)
        self.slots.run_here()
        self.coroutines.run_here()
        self.settle(now=now)
        self.beat.turn(now=now)
        return claimed

    def register(self, *, now: datetime | None = None) -> None:
        """Write the worker's row, learn the epoch, and see that this is the database it is taken for."""
        Job.objects.db_manager(self.using).know_timeline(actor=f"worker {self.id}"[:150])
        self.claims.epoch = self.runtime.current_epoch()
        values: dict[str, Any] = {
            "id": self.id,
            "host": socket.gethostname()[:100],
            "pid": os.getpid(),
            "boot_id": start.boot_id(),
            "pid_namespace": start.pid_namespace(),
            "pid_started": start.process_started(os.getpid()),
            "version": (settings.WORKER_VERSION or f"python {platform.python_version()}")[:40],
            "queues": self.queues,
            "kinds": self.kinds,
            "concurrency": self.concurrency,
            "epoch": self.claims.epoch,
        }
        transact(
            lambda session: worker_rows.register(session, **values),
            using=self.using,
            vocabulary=self.runtime.vocabulary,
            now=now,
            durable=False,
            fenced=False,
        )

    def attend(self, *, now: datetime | None = None) -> Findings:
        """Look what there is to do, and do everybody's duties: recovery, promotion, pruning."""
        holding = len(self.holdings)
        found = probe(
            Session(self.using, self.runtime.vocabulary, now),
            worker=self.id,
            queues=self.queues,
            kinds=self.kinds,
        )
        instant = self.clock()
        self.findings = found
        if found.epoch != self.claims.epoch:
            self.learn_epoch(found.epoch)
        if found.fenced:
            self.stop.ask("this worker was fenced", code=ERROR)
        if found.clock_went_back and found.claims_open:
            self.beat.close_claims()
        if found.claims_open and timeline.moved(self.using):
            Job.objects.db_manager(self.using).know_timeline(actor=f"worker {self.id}"[:150])
            log.error("another database than claims were made in: claims are closed")
        if found.cancels > sum(held.cancel_requested for held in self.holdings):
            self.beat.hasten()
        if found.mine > holding:
            self.claims.return_unheld(now=now)
        if not found.expired:
            self.duties.all_alive()
        lapsed = found.expired or found.past_deadline
        if lapsed and self.duties.attempt("recover", self.duties.recover, now):
            self.hungry = True
        self.due_at = None if found.due_in is None else instant + max(0.0, found.due_in)
        if found.due_in is not None and found.due_in <= 0:
            self.due_at = None
            promoted = self.duties.attempt("promote", self.duties.promote, now) or set()
            if promoted & set(self.queues):
                self.hungry = True
        self.duties.attempt("prune", self.duties.prune, now)
        self.let_go()
        if found.ready and instant >= self._barren_until:
            self.hungry = True
        self.passed["attend"] = instant
        return found

    def learn_epoch(self, epoch: int) -> None:
        """Claim under a new epoch from now on; what was claimed under an older one is lost."""
        log.warning("epoch raised", extra={"epoch": epoch, "was": self.claims.epoch})
        self.claims.epoch = epoch
        self.hungry = True
        for held in self.holdings:
            if held.lease.epoch < epoch:
                held.lose("EPOCH")

    def claim(self, *, now: datetime | None = None) -> int:
        """Claim for the slots that are free and hand out what was got; returns how many."""
        if not self.kinds:
            self.hungry = False  # knowing none it can only do duties, and a drain of it must end
        asked, kinds = self.room()
        hungry = self.hungry or not self._left_out.isdisjoint(kinds)
        if not asked or not hungry or self.beat.fails_for(2 * self.beat.every):
            # What is claimed while beats fail would be lost before it ends.
            return 0
        self.hungry = False  # before asking, so that what is announced meanwhile is not forgotten
        try:
            got = self.claims.turn(kinds, asked, now=now)
        except BaseException:
            self.hungry = True
            raise
        self.passed["claim"] = self.clock()
        self._left_out = frozenset()
        if got:
            self.hungry = True
        elif len(kinds) < len(self.kinds):
            # What is ready may be of the kinds that there was no room for: they are asked for once there is.
            self._left_out = frozenset(self.kinds).difference(kinds)
        elif self.findings is not None and self.findings.ready:
            # Something is ready, and not for us: its queue is paused, or others hold it.
            self._barren_until = self.clock() + BARREN_SECONDS
        if self.stop.asked.is_set():
            self.give_back(got, STOPPED)  # this claim was under way when we were told to stop
            return len(got)
        plain = [held for held in got if not held.handler.is_async]
        coroutine = [held for held in got if held.handler.is_async]
        if plain:
            self.hand(plain)
        if coroutine:
            self.hand_coroutines(coroutine)
        return len(got)

    def hand(self, helds: Sequence[Held]) -> None:
        """Queue plain jobs; the step machine runs them itself."""
        self.slots.todo.extend(helds)

    def hand_coroutines(self, helds: Sequence[Held]) -> None:
        """Queue async jobs."""
        self.coroutines.todo.extend(helds)

    def settle(self, *, now: datetime | None = None) -> int:
        """Send every ending that waits; returns how many were answered."""
        answered = 0
        while sent := self.endings.turn(now=now):
            answered += sent
        self.passed["settle"] = self.clock()
        return answered

    # -- bounds ------------------------------------------------------------------------------------------

    def room(self) -> tuple[int, list[str]]:
        """Return how many jobs to ask for, and of which kinds; 0 while a bigger claim is worth a wait."""
        if len(self.endings) > UNSENT:
            return 0, []
        rooms, kinds = [], []
        for pool, known in ((self.slots, self.plain), (self.coroutines, self.coroutine)):
            ahead = self.pace.ahead(pool.limit)
            free = pool.limit + ahead - pool.occupied
            if known and free >= max(1, min(ahead, MOST) // 2):
                rooms.append(free)
                kinds += known
        return (min(rooms), kinds) if rooms else (0, [])

    def watch_limits(self) -> None:
        """End attempts that outlived their kind's time limit; their code may go on, and keeps its slot."""
        now = self.clock()
        for held in [*self.slots.running(), *self.coroutines.running()]:
            if held.handler.timeout is not None and held.is_late(now) and held.close():
                log.warning(
                    "time limit passed, code still running",
                    extra={"job_id": held.lease.job_id, "kind": held.lease.kind},
                )
                self.endings.add(timed_out(held))
                self.coroutines.interrupt(held)

    def give_back(self, helds: Sequence[Held], message: str) -> None:
        """Give jobs up unharmed; their handlers, if they run, hear of it at the next checkpoint."""
        for held in helds:
            if held.close():
                held.released = True
                self.endings.add(released(held, message))

    def let_go(self) -> None:
        """Give back what was claimed ahead of jobs that turned out to be slow, for other workers to take."""
        waiting = self.slots.todo
        if not waiting or len(self.slots.running()) < self.slots.limit:
            return
        try:
            overdue = self.clock() - waiting[0].claimed >= HOSTAGE_SECONDS
        except IndexError:  # a slot has just become free
            return
        if overdue:
            log.info("jobs claimed ahead are given back", extra={"jobs": len(waiting)})
            self.give_back(self.slots.take_back(), "all slots stayed busy")

    def describe(self) -> dict[str, Any]:
        """Return what the worker's row says of now."""
        now = self.clock()
        return {
            "running": len(self.slots.running()) + len(self.coroutines.running()),
            "epoch": self.claims.epoch,
            "stopping": self.stop.asked.is_set(),
            "stopped": self.stopped,
            "passes": {
                name: iso(now - at)
                for name, at in (self.passed | self.duties.passed | self.reconciler.passed).items()
            },
        }
