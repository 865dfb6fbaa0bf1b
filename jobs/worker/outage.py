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

    def over(self) -> None:
        """A turn went well."""
        if self.failures:
            log.warning("loop recovered", extra={"loop": self.loop, "failures": self.failures})
            self.failures = 0

    def note(self, error: BaseException) -> float:
        """Take a failure in and return how many seconds to wait before the next turn.

        The connection is closed whatever the error was: after a failover the old one may still answer reads
        and refuse every write (SQLSTATE 25006, bug S81), and a new one costs milliseconds.
        """
        self.failures += 1
        measures.count(f"loop_errors.{self.loop}")
        now = time.monotonic()
        if self.failures == 1 or now - self._told >= REMIND_SECONDS:
            self._told = now
            # A database that is away is said in a line; anything else is a bug and needs its traceback.
            trace = None if isinstance(error, DatabaseProblem) else error
            log.error(
                "loop failed, goes on",
                extra={"loop": self.loop, "failures": self.failures, "cause": _first_line(error)},
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
