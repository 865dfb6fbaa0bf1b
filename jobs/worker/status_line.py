"""The live line on a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from jobs.worker.loop import Worker

EVERY = 1.0


class StatusLine:
    """Rewrites one line on stderr, where that is a terminal."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        try:
            self.shown = sys.stderr.isatty()
        except (AttributeError, ValueError):
            self.shown = False
        self._drawn = time.monotonic()
        self._committed = 0

    def draw(self) -> None:
        """Draw the line anew, at most once a second."""
        passed = time.monotonic() - self._drawn
        if not self.shown or passed < EVERY:
            return
        tally = self.worker.tally
        rate = (tally.committed - self._committed) / passed
        self._drawn, self._committed = time.monotonic(), tally.committed
        self._write(self.text(rate))

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            self._write("")

    def text(self, rate: float) -> str:
        """Return the line."""
        worker, tally = self.worker, self.worker.tally
        parts = [
            _("running %(n)s") % {"n": worker.describe()["running"]},
            _("waiting %(n)s") % {"n": len(worker.slots.todo) + len(worker.coroutines.todo)},
            _("committed %(n)s (%(rate).0f/s)") % {"n": f"{tally.committed:,}", "rate": rate},
            _("failed %(n)s") % {"n": tally.endings["fail"]},
            _("lost %(n)s") % {"n": tally.lost},
        ]
        if worker.stop.asked.is_set():
            parts.insert(0, _("stopping"))
        return " · ".join(parts)

    def _write(self, text: str) -> None:
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            sys.stderr.write("\r\x1b[K" + text[: width - 1])
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            self.shown = False
