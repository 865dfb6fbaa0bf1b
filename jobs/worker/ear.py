"""Hearing of new jobs without asking: LISTEN on PostgreSQL, the log file's size on SQLite (architecture 13).

What is heard is a hint. The slow poll finds what was missed, so nothing depends on this.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from jobs.wake import CHANNEL

log = logging.getLogger("interlock.worker")

FIRST, LONGEST = 0.2, 15.0
QUIET_SECONDS = 1.0


class Listener:
    """A thread with a connection of its own that waits for notifications.

    `heard` is called with a queue's name, or with an empty one for "anything may have changed": after each
    LISTEN too, because what was committed before it was announced to nobody. `listening` tells whether the
    poll may be slow.
    """

    def __init__(self, using: str, heard: Callable[[str], None]) -> None:
        self.using = using
        self.heard = heard
        self.listening = False
        self.server_process = 0
        self._stop = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="listener", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        import psycopg

        failures = 0
        while not self._stop.is_set():
            try:
                with psycopg.connect(**self._parameters()) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    failures, self.server_process, self.listening = 0, connection.info.backend_pid, True
                    self.heard("")
                    while not self._stop.is_set():
                        for notification in connection.notifies(timeout=QUIET_SECONDS):
                            self.heard(notification.payload)
            except Exception as error:  # noqa: BLE001  (whatever it was: connect anew, the poll goes on)
                self.listening = False
                failures += 1
                if failures == 1:
                    log.warning("not listening, polling instead", extra={"cause": str(error)[:200]})
                self._stop.wait(min(LONGEST, FIRST * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0))
        self.listening = False

    def _parameters(self) -> dict[str, Any]:
        """Return how to reach the server itself: a transaction pooler forgets who listened."""
        found = dict(connections[self.using].get_connection_params())
        if settings.DATABASE_DIRECT_URL:
            from config.env import parse_database

            direct = parse_database("DATABASE_DIRECT_URL", settings.DATABASE_DIRECT_URL)
            for name, field in (("dbname", "NAME"), ("user", "USER"), ("password", "PASSWORD")):
                found[name] = direct[field]
            found |= {"host": direct["HOST"], "port": direct["PORT"]} | direct["OPTIONS"]
        drop = ("cursor_factory", "context", "prepare_threshold", "isolation_level")
        return {name: value for name, value in found.items() if name not in drop and value != ""} | {
            "autocommit": True
        }


class LogFile:
    """The write-ahead log of an SQLite database: any commit changes its size or time."""

    def __init__(self, using: str) -> None:
        self.path = Path(f"{connections[using].settings_dict['NAME']}-wal")
        self._seen = self._state()

    def changed(self) -> bool:
        """Whether somebody has committed since the last call. Costs no query."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        return True

    def _state(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return (found.st_size, found.st_mtime_ns)
