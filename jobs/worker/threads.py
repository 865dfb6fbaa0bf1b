"""The threaded worker: the turns of loop.py in threads of their own, from start to exit code.

Claiming, settling and beating have a connection each; on SQLite the first two take turns, because its one
write lock is waited for in naps. No exception ends a loop; should one end all the same, so does the process.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.db import connections

from jobs.wake import INQUIRE
from jobs.worker.ear import Listener, LogFile
from jobs.worker.held import Held
from jobs.worker.loop import PROBE_SECONDS, STOPPED, Worker
from jobs.worker.outage import Outage
from jobs.worker.reconciler import EMBEDDED_SECONDS, EVERY_SECONDS
from jobs.worker.status_line import StatusLine
from jobs.worker.stop import CLEAN, ERROR, LEFT_RUNNING

log = logging.getLogger("interlock.worker")

TICK = 0.25
DRAINED_SECONDS = 0.05
NUDGE = 0.02
GLANCE, GLANCE_LATER, GLANCE_LATER_AFTER = 0.003, 0.02, 5.0
FLUSH_SECONDS = 5.0


class ThreadedWorker(Worker):
    """A worker that runs until it is told to stop, or until there is nothing more to do.

    `once`: one claim, then stop. `drain`: stop when nothing is ready or running in its queues. `grace`:
    seconds that running jobs get after a stop was asked for. `live`: a status line, on a terminal.
    """

    def __init__(
        self,
        *,
        grace: float = 30.0,
        once: bool = False,
        drain: bool = False,
        live: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.grace = grace
        self.once = once
        self.drain = drain
        self.bell = threading.Event()
        """Rung when the claim loop has a reason to look: a notification, free room, a stop."""
        self._asked = threading.Event()
        """Rung when the reconciler has a reason to look: a person wants a provider asked, or the end."""
        self._ended = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._turns: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        self._listener: Listener | None = None
        self._file: LogFile | None = None
        self._idle_since = 0.0
        self._has_claimed = False
        self._claiming = False
        self._line = StatusLine(self)
        self._line.shown &= live

    def run(self) -> int:
        """Work until a stop; returns the exit code (see stop.py)."""
        say(f"worker {self.id}: queues {', '.join(self.queues) or 'none'}; {len(self.kinds)} kinds")
        self.stop.ring(self.bell.set)
        self.stop.ring(self.endings.bell.set)
        if not self._first_pass():
            return self.stop.code
        self._start()
        while not self.stop.asked.wait(TICK):
            self.watch_limits()
            self._check_loops()
            self._line.draw()
        return self._wind_down()

    @property
    def is_idle(self) -> bool:
        """Whether no code of a handler is running any more."""
        return not self._busy()

    # -- start -------------------------------------------------------------------------------------------

    def _first_pass(self) -> bool:
        """Register and take one recovery pass before the first claim (L2); False when told to stop."""
        outage = Outage("start", self.using)
        while not self.stop.asked.is_set():
            try:
                if not self.claims.epoch:
                    self.register()
                self.duties.recover()
            except Exception as error:  # noqa: BLE001  (whatever it was is told, and tried again)
                self.stop.asked.wait(outage.note(error))
            else:
                outage.over()
                return True
        return False

    def _start(self) -> None:
        if connections[self.using].vendor == "postgresql":
            self._listener = Listener(self.using, self.heard)
            self._listener.start()
        else:
            self._file = LogFile(self.using)
            self._turns = threading.Lock()
        for name, loop in (
            ("claim", self._claim_loop),
            ("settle", self._settle_loop),
            ("beat", self._beat_loop),
            *((("reconcile", self._reconcile_loop),) if self.reconciler.is_needed else ()),
        ):
            self._threads[name] = threading.Thread(target=loop, name=name, daemon=True)
            self._threads[name].start()
        connections[self.using].close()  # the main thread needs none from here on

    def heard(self, queue: str) -> None:
        """A notification came: look for work if it concerns us."""
        if queue in ("", INQUIRE):
            self._asked.set()
        if not queue or queue in self.queues:
            self.hungry = True
            self.bell.set()

    def hand(self, helds: Sequence[Held]) -> None:
        self.slots.give(helds)

    def hand_coroutines(self, helds: Sequence[Held]) -> None:
        self.coroutines.give(helds)

    # -- loops -------------------------------------------------------------------------------------------

    def _loop(self, name: str, turn: Callable[[], None], rest: Callable[[float], object]) -> None:
        """Take turns until the end; an exception costs a pause and a new connection, never the loop."""
        outage = Outage(name, self.using)
        while not self._ended.is_set():
            try:
                turn()
                outage.over()
            except Exception as error:  # noqa: BLE001  (a loop that died would leave a process that does nothing)
                rest(outage.note(error))
        connections.close_all()

    def _claim_loop(self) -> None:
        self._loop("claim", self._claim_turn, self._ended.wait)

    def _claim_turn(self) -> None:
        if self.clock() >= self._look_at():
            with self._turns:
                self.attend()
            if self.drain and self._is_drained():
                self.stop.ask("drained")
        if self._has_claimed and not self.holdings:
            self.stop.ask("one claim was made")
        if self._claim_once():
            return
        self._rest()

    def _claim_once(self) -> int:
        """Claim, unless told to stop; whoever winds down can see that a claim is under way."""
        self._claiming = True
        try:
            if self.stop.asked.is_set() or self._has_claimed:
                return 0
            with self._turns:
                claimed = self.claim()
            self._has_claimed = self.once and bool(claimed or not self.hungry)
            return claimed
        finally:
            self._claiming = False

    def _look_at(self) -> float:
        """Return when to probe next."""
        every = PROBE_SECONDS
        if self.drain and not self.hungry and not self.holdings:
            every = DRAINED_SECONDS  # somebody waits for us to end
        return min(self.passed.get("attend", float("-inf")) + every, self.due_at or float("inf"))

    def _is_drained(self) -> bool:
        found = self.findings
        return (
            found is not None
            and not found.ready
            and not found.running
            and not self.hungry
            and not self.holdings
        )

    def _rest(self) -> None:
        """Wait for a reason to look again, at the latest until the next probe or due time."""
        until = self._look_at()
        started = self.clock()
        while (left := until - self.clock()) > 0:
            self.slots.nudge()
            pause = NUDGE if self.slots.todo else left
            if self._file is not None:
                pause = min(pause, GLANCE if self._lately_busy(started) else GLANCE_LATER)
            if self.bell.wait(min(pause, left)):
                self.bell.clear()
                return
            if self._file is not None and self._file.changed():
                self.hungry = True
                return

    def _lately_busy(self, started: float) -> bool:
        if self.holdings:
            self._idle_since = started
        return self.clock() - self._idle_since < GLANCE_LATER_AFTER

    def _settle_loop(self) -> None:
        self._loop("settle", self._settle_turn, self._ended.wait)

    def _settle_turn(self) -> None:
        self.endings.bell.wait(TICK)
        self.endings.bell.clear()
        while self.endings:
            self.bell.set()  # a slot is free
            with self._turns:
                self.endings.turn()
            self.passed["settle"] = self.clock()

    def _beat_loop(self) -> None:
        self._loop("beat", self._beat_turn, self._ended.wait)

    def _beat_turn(self) -> None:
        try:
            self.beat.turn()
            self.passed["beat"] = self.clock()
        except LookupError:
            self.register()  # our row was pruned while this machine slept
        if self.beat.fenced:
            self.stop.ask("this worker was fenced", code=ERROR)
        self._ended.wait(TICK)

    def _reconcile_loop(self) -> None:
        self._loop("reconcile", self._reconcile_turn, self._ended.wait)

    def _reconcile_turn(self) -> None:
        self._asked.clear()
        self.reconciler.turn()
        self._asked.wait(EVERY_SECONDS if self._file is None else EMBEDDED_SECONDS)

    def _check_loops(self) -> None:
        for name, thread in self._threads.items():
            if not thread.is_alive():
                log.critical("loop ended", extra={"loop": name})
                self.stop.ask(f"the {name} loop ended", code=ERROR)
        attended = self.clock() - self.passed.get("attend", float("-inf")) < 2 * PROBE_SECONDS
        if attended and self.beat.fails_for(2 * settings.INTERLOCK["LEASE_SECONDS"]):
            # The database answers, but not to the heartbeat: a new process may fare better.
            self.stop.ask("beats fail while the database answers", code=ERROR)

    # -- stop --------------------------------------------------------------------------------------------

    def _wind_down(self) -> int:
        """Finish within the grace, give the rest back, say goodbye; returns the exit code."""
        log.info("stopping", extra={"why": self.stop.why, "grace": self.grace})
        # What a claim that is under way brings is ours to give back.
        self._wait(lambda: not self._claiming, FLUSH_SECONDS)
        self._wait(lambda: not self._busy() and not self.holdings, self.grace)
        left = self._busy()
        if left:
            self.give_back(left, "the worker stopped before the job ended")
        self._wait(lambda: not self.holdings, FLUSH_SECONDS, hasty=False)
        self.stopped = True
        self._ended.set()
        self._asked.set()
        self.endings.bell.set()
        self.bell.set()
        if self._listener is not None:
            self._listener.close()
        self._goodbye()
        self._line.clear()
        still = self._busy()
        if still or self.holdings:
            log.warning("stopped with code still running", extra={"jobs": [h.lease.job_id for h in still]})
            return self.stop.code or LEFT_RUNNING
        self.slots.close()
        self.coroutines.close()
        return self.stop.code or CLEAN

    def _busy(self) -> list[Held]:
        return [*self.slots.running(), *self.coroutines.running()]

    def _wait(self, done: Callable[[], bool], seconds: float, *, hasty: bool = True) -> None:
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end and not (hasty and self.stop.hurried.is_set()):
            # Again each time: a claim that was under way may hand out a little later.
            self.give_back([*self.slots.take_back(), *self.coroutines.take_back()], STOPPED)
            self.watch_limits()
            self._line.draw()
            time.sleep(0.02)

    def _goodbye(self) -> None:
        """Write the last beat, on a thread that nobody waits for long: the database may be away."""

        def last() -> None:
            try:
                self.beat.write_row()
            except Exception as error:  # noqa: BLE001  (the row will look stale, which is true)
                log.warning("last beat not written", extra={"cause": str(error)[:200]})
            finally:
                connections.close_all()

        thread = threading.Thread(target=last, name="goodbye", daemon=True)
        thread.start()
        thread.join(2.0)
        for other in self._threads.values():
            other.join(1.0)


def say(text: str) -> None:
    """Write one line to stderr, if there still is one."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
