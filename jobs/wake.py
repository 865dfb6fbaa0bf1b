"""Waking idle workers: a hint after commit, never a promise (contract §5, architecture: Notify on commit).

NOTIFY serialises commits, so each process sends at most one per queue in ten milliseconds, with a
trailing one so that nothing enqueued in between is left to the slow poll. On SQLite the worker watches
the write-ahead log's file instead.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable

from django.db import DatabaseError, connections, transaction

from jobs.ledger.notify import notify

CHANNEL = "interlock_ready"
WINDOW = 0.010

log = logging.getLogger("interlock.wake")
_lock = threading.Lock()
_last: dict[tuple[str, str], float] = {}
_trailing: set[tuple[str, str]] = set()
# The timers stay in the parent: a child that waited for one would never announce that queue again.
os.register_at_fork(after_in_child=_trailing.clear)


def after_commit(using: str, queues: Iterable[str]) -> None:
    """Wake workers of `queues` once the caller's transaction has committed; nothing if it rolls back."""
    if connections[using].vendor != "postgresql":
        return
    names = sorted(set(queues))

    def send() -> None:
        for name in names:
            _soon(using, name)

    transaction.on_commit(send, using=using, robust=True)


def _soon(using: str, queue: str) -> None:
    key = (using, queue)
    with _lock:
        wait = _last.get(key, 0.0) + WINDOW - time.monotonic()
        if wait > 0:
            if key not in _trailing:
                _trailing.add(key)
                # No daemon: a process that ends now waits these milliseconds and says it still.
                threading.Timer(wait, _trail, (using, queue)).start()
            return
        _last[key] = time.monotonic()
    _notify(using, queue)


def _trail(using: str, queue: str) -> None:
    with _lock:
        _trailing.discard((using, queue))
        _last[using, queue] = time.monotonic()
    try:
        _notify(using, queue)
    finally:
        connections[using].close()  # the timer's thread had one of its own


def _notify(using: str, queue: str) -> None:
    try:
        notify(using, CHANNEL, queue)
    except DatabaseError as error:  # the job is committed; the poll finds it
        log.warning("wake-up not sent", extra={"queue": queue, "cause": str(error)[:200]})
