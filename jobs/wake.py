"""Waking idle workers: a hint after commit, never a promise (contract §5, architecture: Notify on commit).

NOTIFY serialises commits, so each process sends at most one per queue in ten milliseconds, with a
trailing one so that nothing enqueued in between is left to the slow poll. On SQLite the worker watches
the write-ahead log's file instead.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Iterable

from django.db import Error, connections, transaction

from jobs.ledger.notify import notify

CHANNEL = "interlock_ready"
INQUIRE = "?"
"""Said instead of a queue's name, which it can be none of: a person wants a provider asked."""
WINDOW = 0.010
QUIET_SECONDS = 5.0
"""How long the trailing thread keeps its connection after the last one it sent."""
PATIENCE = 2.0
"""Seconds that a process's end may wait for a database that does not answer."""

log = logging.getLogger("interlock.wake")


def after_commit(using: str, queues: Iterable[str]) -> None:
    """Wake workers of `queues` once the caller's transaction has committed; nothing if it rolls back."""
    if connections[using].vendor != "postgresql":
        return
    names = sorted(set(queues))

    def send() -> None:
        for name in names:
            if not _trailing.takes(using, name):
                _notify(using, name)

    transaction.on_commit(send, using=using, robust=True)


class Trailing:
    """The announcements that came within the window of another: sent when it is over, by a thread of their
    own.

    The thread starts with the first and keeps one connection until none has come for a while.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last: dict[tuple[str, str], float] = {}
        self._due: dict[tuple[str, str], float] = {}
        self._thread: threading.Thread | None = None
        self._ending = False

    def takes(self, using: str, queue: str) -> bool:
        """Whether this one is sent later, because one of the same queue has just been; else it is the
        caller's."""
        key = (using, queue)
        with self._changed:
            if self._ending:
                return False
            if key in self._due:
                return True
            now = time.monotonic()
            due = self._last.get(key, 0.0) + WINDOW
            if due <= now:
                self._last[key] = now
                return False
            self._due[key] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wake", daemon=True)
                self._thread.start()
            self._changed.notify()
            return True

    def flush(self) -> None:
        """Send at once what is due later, and return when it is sent: the process ends."""
        with self._changed:
            self._ending = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(PATIENCE)

    def _run(self) -> None:
        while key := self._next():
            _notify(*key)
        connections.close_all()  # this thread's own

    def _next(self) -> tuple[str, str] | None:
        """Return the next one when its time has come, None to end."""
        with self._changed:
            quiet = time.monotonic() + QUIET_SECONDS
            while True:
                now = time.monotonic()
                key = min(self._due, key=self._due.__getitem__, default=None)
                until = quiet if key is None else self._due[key]
                if until > now and not self._ending:
                    self._changed.wait(until - now)
                elif key is None:
                    self._thread = None
                    return None
                else:
                    del self._due[key]
                    self._last[key] = now
                    return key


def _notify(using: str, queue: str) -> None:
    try:
        notify(using, CHANNEL, queue)
    except Error as error:  # the job is committed; the poll finds it
        log.warning("wake-up not sent", extra={"queue": queue, "cause": str(error)[:200]})
        connections[using].close_if_unusable_or_obsolete()


def _anew() -> None:
    """In a forked child: the thread, and what it was to send, stayed with the parent."""
    global _trailing
    _trailing = Trailing()


_trailing = Trailing()
os.register_at_fork(after_in_child=_anew)
atexit.register(lambda: _trailing.flush())
