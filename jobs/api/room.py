"""Who waits for work: a bounded number of requests, none with a database connection (docs/remote.md).

A request that waits holds a thread of the web server, so at most half of them may. Of all that ask for the
same queues and kinds one is called when something may have come; what it cannot carry the next one is called
for. Otherwise each job would wake a hundred waiters, and ninety-nine would ask the database for nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections

from jobs.api.waiting import PLACES, tokens_over
from jobs.worker.ear import Listener, LogFile

Ask = tuple[tuple[str, ...], tuple[str, ...]]
"""Queues and kinds, as asked for."""
GLANCE_SECONDS = 0.05
"""How often the log file of an SQLite database is looked at."""
TICK_SECONDS = 1.0
"""How often one of each group looks for itself: what was announced to nobody is found no later."""

TOKENS_SECONDS = 0.5
"""How often it is asked whether a token of one that waits is over; he is called then, and told so."""

QUIET_SECONDS = 10.0
"""How long the ear is kept after the last one has gone."""


class Seat:
    """One waiting request."""

    def __init__(self, ask: Ask, who: str, token: int | None) -> None:
        self.ask = ask
        self.who = who
        self.token = token
        self._called = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Return True once there may be something, False when `seconds` have passed."""
        called = self._called.wait(max(0.0, seconds))
        self._called.clear()
        return called

    def call(self) -> None:
        self._called.set()


class Room:
    """All claims that wait in this process, each in one of `places`."""

    def __init__(self, places: threading.Semaphore, *, using: str = DEFAULT_DB_ALIAS) -> None:
        self.places = places
        self.using = using
        self.is_closing: Callable[[], bool] = lambda: False
        """Whether the web server is stopping: then nobody is kept waiting."""
        self._changed = threading.Condition()
        self._groups: dict[Ask, deque[Seat]] = {}
        self._seated = 0
        self._caller: threading.Thread | None = None

    @contextmanager
    def seat(self, ask: Ask, who: str = "", token: int | None = None) -> Iterator[Seat | None]:
        """Take a seat for the length of the block; None when all are taken."""
        if self.is_closing() or not self.places.acquire(blocking=False):
            yield None
            return
        seat = Seat(ask, who, token)
        try:
            self._enter(seat)
            yield seat
        finally:
            self._leave(seat)
            self.places.release()

    def call(self, queue: str = "") -> None:
        """Call the first of each group that waits for `queue`; an empty name is for all."""
        with self._changed:
            for (queues, _kinds), seats in self._groups.items():
                if not queue or queue in queues:
                    seats[0].call()

    def call_worker(self, who: str) -> None:
        """Call whoever waits for one worker: it has something to tell itself."""
        for seat in self._all():
            if seat.who == who:
                seat.call()

    def _dismiss(self) -> None:
        """Call everybody: the web server is stopping."""
        for seat in self._all():
            seat.call()

    def _turn_out(self) -> None:
        """Call whose token is over. Between two questions no connection of a server is kept."""
        seats = self._all()
        over = tokens_over(seat.token for seat in seats)
        if connections[self.using].vendor == "postgresql":
            connections[self.using].close()
        for seat in seats:
            if seat.token in over:
                seat.call()

    def _all(self) -> list[Seat]:
        with self._changed:
            return [seat for seats in self._groups.values() for seat in seats]

    def pass_on(self, ask: Ask) -> None:
        """Call the next of a group: the one that was called could not carry all, or did not come."""
        with self._changed:
            if seats := self._groups.get(ask):
                seats[0].call()

    def _enter(self, seat: Seat) -> None:
        with self._changed:
            self._seated += 1
            self._groups.setdefault(seat.ask, deque()).append(seat)
            if self._caller is None:
                self._caller = threading.Thread(target=self._watch, name="waiting", daemon=True)
                self._caller.start()
            self._changed.notify_all()

    def _leave(self, seat: Seat) -> None:
        with self._changed:
            seats = self._groups[seat.ask]
            seats.remove(seat)
            self._seated -= 1
            if not seats:
                del self._groups[seat.ask]

    def _watch(self) -> None:
        """Hear of new jobs for everybody who waits, until nobody has for a while."""
        listener = log_file = None
        if connections[self.using].vendor == "postgresql":
            listener = Listener(self.using, self.call)
            listener.start()
        else:
            log_file = LogFile(self.using)
        pause = TOKENS_SECONDS if log_file is None else GLANCE_SECONDS
        tick = asked = 0.0
        while self._is_wanted():
            if self.is_closing():
                self._dismiss()
            if time.monotonic() >= tick or (log_file is not None and log_file.changed()):
                tick = time.monotonic() + TICK_SECONDS
                self.call()
            if time.monotonic() >= asked:
                asked = time.monotonic() + TOKENS_SECONDS
                self._turn_out()
            time.sleep(pause)
        if listener is not None:
            listener.close()
        connections.close_all()  # this thread's own

    def _is_wanted(self) -> bool:
        with self._changed:
            if self._changed.wait_for(lambda: self._seated > 0, QUIET_SECONDS):
                return True
            self._caller = None
            return False


ROOM = Room(PLACES)
