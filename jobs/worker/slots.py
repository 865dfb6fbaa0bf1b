"""Handler threads: as many as the worker's concurrency, started when first needed.

What limits a worker on small jobs is not the work but the hand-over between threads. So jobs wait in one
queue that every awake thread takes from, and for kinds that are known to return at once one awake thread is
enough; each thread that starts something longer wakes the next one.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.worker.held import Held
from jobs.worker.pace import Pace
from jobs.worker.running import Finished, run

log = logging.getLogger("interlock.worker")


class Slots:
    """Runs plain handlers. `report` is told every ending; it must return at once.

    A slot is free when its thread is: code that outlived its time limit keeps its slot, and is not counted
    as free until it has really returned.
    """

    def __init__(self, limit: int, *, pace: Pace, report: Callable[[Held, Finished | None], None]) -> None:
        self.limit = limit
        self.pace = pace
        self.report = report
        self.todo: deque[Held] = deque()
        self._current: list[Held | None] = [None] * limit
        self._lock = threading.Lock()
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        self._started = 0
        self._asleep = 0

    # -- asked by the worker -------------------------------------------------------------------------------

    def running(self) -> list[Held]:
        """Return what handlers are busy with now."""
        return [held for held in self._current if held is not None]

    @property
    def occupied(self) -> int:
        """Jobs that hold a slot or wait for one."""
        return len(self.todo) + self.limit - self._current.count(None)

    def give(self, helds: Sequence[Held]) -> None:
        """Queue jobs and wake as many threads as will be of use."""
        self.todo.extend(helds)
        brisk = all(self.pace.is_brisk(kind) for kind in {held.handler.name for held in helds})
        if not brisk:
            self.wake(len(helds))
        elif not any(held and self.pace.is_brisk(held.handler.name) for held in self._current):
            self.wake(1)

    def nudge(self) -> None:
        """Wake threads for jobs that wait although slots are free: a kind was slower than it used to be."""
        if self.todo:
            self.wake(len(self.todo))

    def take_back(self) -> list[Held]:
        """Take the jobs that have not been started."""
        taken = []
        while True:
            try:
                taken.append(self.todo.popleft())
            except IndexError:
                return taken

    # -- in the calling thread -----------------------------------------------------------------------------

    def run_here(self) -> None:
        """Run what is queued in this thread, one after the other: the step machine's way."""
        for held in iter(self._next, None):
            self._current[0] = held
            finished = run(held)
            self._current[0] = None
            self.report(held, finished)

    # -- threads -------------------------------------------------------------------------------------------

    def wake(self, count: int) -> None:
        """Wake up to `count` threads, starting those that do not exist yet."""
        with self._lock:
            for _ in range(count):
                if self._asleep:
                    self._asleep -= 1
                    self._tokens.put(True)
                elif self._started < self.limit:
                    if not self._start(self._started):
                        return
                    self._started += 1
                else:
                    return

    def _start(self, index: int) -> bool:
        try:
            threading.Thread(target=self._work, args=(index,), name=f"handler-{index}", daemon=True).start()
        except RuntimeError as error:
            # No room for another thread: those that there are do the work, and the next nudge tries again.
            log.warning("handler thread not started", extra={"threads": index, "cause": str(error)})
            return False
        return True

    def close(self) -> None:
        """Let threads that sleep end; one that is busy ends with its process."""
        with self._lock:
            self.limit = 0
            for _ in range(self._asleep):
                self._tokens.put(False)
            self._asleep = 0

    def _next(self) -> Held | None:
        try:
            return self.todo.popleft()
        except IndexError:
            return None

    def _sleep(self) -> bool:
        with self._lock:
            if self.todo:
                return True
            if not self.limit:
                return False
            self._asleep += 1
        return self._tokens.get()

    def _work(self, index: int) -> None:
        current, pace = self._current, self.pace
        awake = True
        while awake:
            while (held := self._next()) is not None:
                current[index] = held
                if self.todo and not pace.is_brisk(held.handler.name):
                    self.wake(1)
                finished = run(held)
                tidy_connections()
                current[index] = None
                self.report(held, finished)
            awake = self._sleep()
        connections.close_all()


def tidy_connections() -> None:
    """Leave this thread's connections as the next job must find them: in no transaction, and alive."""
    for connection in connections.all(initialized_only=True):
        try:
            _tidy(connection)
        except Exception:
            # Whatever is the matter with a connection, the job's ending is still to be told.
            log.exception("connection let go", extra={"database": connection.alias})
            _discard(connection)


def _tidy(connection: BaseDatabaseWrapper) -> None:
    if connection.in_atomic_block or _has_begun(connection):
        # The handler left a transaction open: nobody will ever end it, and it holds locks.
        log.warning("handler left a transaction open", extra={"database": connection.alias})
        _discard(connection)
    else:
        connection.close_if_unusable_or_obsolete()


def _has_begun(connection: BaseDatabaseWrapper) -> bool:
    """Whether a transaction may be open that is no block: autocommit was turned off, or SQL has begun one."""
    # Asked of the fields: get_autocommit() would connect anew for a handler that has closed its connection.
    raw = connection.connection
    if raw is None:
        return False
    if not connection.autocommit:
        return True
    if connection.vendor == "sqlite":
        return bool(raw.in_transaction)
    return raw.info.transaction_status.name in ("INTRANS", "INERROR")


def _discard(connection: BaseDatabaseWrapper) -> None:
    del connections[connection.alias]
    raw = connection.connection
    if raw is None:
        return
    with suppress(Exception):  # closing what is broken may break
        if connection.vendor == "sqlite":
            raw.rollback()  # it stays open, and locked, for as long as somebody holds a cursor of it
        raw.close()
