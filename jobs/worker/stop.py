"""Stopping: asked once it is orderly, asked twice it is now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType

CLEAN = 0
ERROR = 1
LEFT_RUNNING = 75
"""Exit codes: all done · a loop ended or the worker was fenced · jobs given back while their code ran."""
RELOAD = 3


class Stop:
    """What was asked for, by whatever thread."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.hurried = threading.Event()
        self.code = CLEAN
        self.why = ""
        self._bells: list[Callable[[], None]] = []

    def ring(self, bell: Callable[[], None]) -> None:
        """Have `bell` called when a stop is asked for."""
        self._bells.append(bell)

    def ask(self, why: str = "", *, code: int = CLEAN) -> None:
        """Stop claiming and finish; a second call means at once."""
        if self.asked.is_set():
            self.hurried.set()
        else:
            self.why, self.code = why, code
            self.asked.set()
        for bell in self._bells:
            bell()

    def listen(self) -> None:
        """Hear SIGTERM, SIGINT and SIGHUP; only the main thread may call this.

        As process 1 of a container nothing has a default: without a handler SIGTERM would be ignored.
        A handler runs in the middle of whatever the main thread is doing. If that was a wait for `asked`, it
        has the event's lock, and setting the event there would wait for itself for ever. So the handler only
        hands the number to a thread, by a queue that may be entered twice.
        """
        heard: SimpleQueue[int] = SimpleQueue()

        def note(number: int, _frame: FrameType | None) -> None:
            heard.put(number)

        def obey() -> None:
            while True:
                self.ask(signal.Signals(heard.get()).name)

        threading.Thread(target=obey, name="signals", daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, note)
