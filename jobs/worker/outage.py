"""How a loop outlives whatever its turn raises: bounded back-off, a fresh connection, no flood of logs."""

from __future__ import annotations

import logging
import random
import time

from django.db import Error as DatabaseProblem
from django.db import connections

from jobs import measures

log = logging.getLogger("interlock.worker")

FIRST, LONGEST = 0.1, 5.0
REMIND_SECONDS = 60.0


class Outage:
    """The failures of one loop since its last good turn."""

    def __init__(self, loop: str, using: str) -> None:
        self.loop = loop
        self.using = using
        self.failures = 0
        self._told = 0.0
        self._causes: set[str] = set()

    def over(self) -> None:
        """A turn went well."""
        if self.failures:
            log.warning("loop recovered", extra={"loop": self.loop, "failures": self.failures})
            self.failures = 0
            self._causes.clear()

    def note(self, error: BaseException) -> float:
        """Take a failure in and return how many seconds to wait before the next turn.

        The connection is closed whatever the error was: after a failover the old one may still answer reads
        and refuse every write (SQLSTATE 25006), and a new one costs milliseconds.
        """
        self.failures += 1
        measures.count(f"loop_errors.{self.loop}")
        now, cause = time.monotonic(), _first_line(error)
        # A new cause is told at once: after a switch-over "closed" becomes "read-only", and that is the news.
        if cause not in self._causes or now - self._told >= REMIND_SECONDS:
            self._told = now
            self._causes.add(cause)
            # A database that is away is said in a line; anything else is a bug and needs its traceback.
            trace = None if isinstance(error, DatabaseProblem) else error
            log.error(
                "loop failed, goes on",
                extra={"loop": self.loop, "failures": self.failures, "cause": cause},
                exc_info=trace,
            )
        self._disconnect()
        return float(min(LONGEST, FIRST * 2 ** min(self.failures - 1, 10)) * random.uniform(0.5, 1.0))

    def _disconnect(self) -> None:
        connection = connections[self.using]
        try:
            connection.close()
        except Exception:  # noqa: BLE001  (closing what is broken may break; the next use opens another)
            connection.connection = None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
