"""The faults that wait for their requests, and the latest that found theirs."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from demo.provider.fault import Fault, Kind
from demo.provider.message import invalid

FAULTS = 100
REMEMBERED = 1000


class Faults:
    """Safe for many threads; a fault is never used more often than it was asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Fault] = []
        self._struck: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        self._strikes = 0
        self._lifted = threading.Event()

    def add(self, fault: Fault, *, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        if fault.kind is Kind.NOT_FOUND and fault.seconds is not None:
            fault.ends = now + fault.seconds
        with self._changed:
            if len(self._waiting) >= FAULTS:
                raise invalid("kind", f"is one too many: there are {FAULTS} faults already")
            fault.lifted = self._lifted
            self._waiting.append(fault)

    def take(
        self, on: str, facts: Mapping[str, str], *, there: bool = True, now: float | None = None
    ) -> Fault | None:
        """Return the fault that this request is hit by, the eldest, and count it as used.

        Of two requests at once, one is hit. What is not `there` cannot be hidden.
        """
        now = time.monotonic() if now is None else now
        with self._changed:
            for fault in self._waiting:
                if fault.hits(on, facts, now) and (there or fault.kind is not Kind.NOT_FOUND):
                    break
            else:
                return None
            if fault.ends is None:
                fault.times -= 1
                if not fault.times:
                    self._waiting.remove(fault)
            self._strikes += 1
            self._struck.append({"kind": fault.kind, "on": on, **facts})
            self._changed.notify_all()
            return fault

    def clear(self) -> None:
        """Lift all faults; the requests that one holds go on at once."""
        with self._changed:
            self._waiting.clear()
            self._lifted.set()
            self._lifted = threading.Event()

    def shown(self, *, strikes: int = 0, wait: float = 0) -> dict[str, Any]:
        """Return what waits and what has struck, once there were so many strikes or the wait is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._strikes >= strikes, wait)
            return {
                "waiting": [fault.shown() for fault in self._waiting],
                "strikes": self._strikes,
                "struck": list(self._struck),
            }
