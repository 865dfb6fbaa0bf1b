"""Several worker processes under one parent that replaces those that die.

The parent opens no database connection and starts fresh interpreters, so nothing is shared by accident. A
child stops in an orderly way when its parent is gone, however that went.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.worker.stop import CLEAN, ERROR, LEFT_RUNNING, RELOAD, Stop

log = logging.getLogger("interlock.worker")

TICK = 0.1
QUICK_SECONDS = 5.0
"""A child that dies sooner than this after its start died of starting."""
QUICK_DEATHS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
KILL_AFTER = 15.0
"""Beyond the children's own grace: then they hang."""
PR_SET_PDEATHSIG = 1
SHORTAGES = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""What the machine has none of just now: processes, memory, descriptors."""


@dataclass
class Place:
    """One of the processes there should be, and how its present or last incarnation fares."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    again_at: float = 0.0
    quick_deaths: int = 0
    done: bool = False


class Supervisor:
    """Keeps `count` children of `command` running until it is told to stop.

    `finite`: children end by themselves when nothing is left to do, and the parent with the last of them.
    """

    def __init__(self, command: Sequence[str], count: int, *, grace: float, finite: bool) -> None:
        self.command = [*command, "--child-of", str(os.getpid())]
        self.places = [Place(number) for number in range(1, count + 1)]
        self.grace = grace
        self.finite = finite
        self.stop = Stop()
        self._codes: list[int] = []

    def run(self) -> int:
        """Start the children, replace those that die, stop them all at the end; returns the exit code."""
        while not self.stop.asked.is_set() and not all(place.done for place in self.places):
            for place in self.places:
                self._look_after(place)
            self.stop.asked.wait(TICK)
        return self._wind_down()

    def _look_after(self, place: Place) -> None:
        if place.process is not None:
            code = place.process.poll()
            if code is not None:
                self._bury(place, code)
        elif not place.done and time.monotonic() >= place.again_at:
            place.started = time.monotonic()
            self._start(place)

    def _start(self, place: Place) -> None:
        try:
            # A process group of its own: Ctrl-C is for us, and each of us must hear it once.
            place.process = subprocess.Popen(self.command, process_group=0)
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            # The other children work on, and it passes.
            place.quick_deaths += 1
            self._put_off(place)
            log.error("child not started", extra={"place": place.number, "cause": str(error)})
        else:
            log.info("child started", extra={"place": place.number, "pid": place.process.pid})

    def _bury(self, place: Place, code: int) -> None:
        place.process = None
        if code == CLEAN and self.finite:
            self._codes.append(code)
            place.done = True
            return
        lived = time.monotonic() - place.started
        # A handler may end its process with any code, 0 too: whoever is not finite has died.
        place.quick_deaths = place.quick_deaths + 1 if lived < QUICK_SECONDS and code != RELOAD else 0
        self._put_off(place)
        log.warning(
            "child ended", extra={"place": place.number, "code": code, "lived_seconds": round(lived, 1)}
        )
        # What cannot start says so by its exit code. A signal (no memory, a broken library) is a job's
        # doing: it ends when its attempts are used, and until then the others must not wait for a person.
        if place.quick_deaths >= QUICK_DEATHS and code > 0:
            log.critical("children die as soon as they start", extra={"place": place.number, "code": code})
            self.stop.ask("children die as soon as they start", code=ERROR)

    @staticmethod
    def _put_off(place: Place) -> None:
        pause = FIRST_PAUSE * 2 ** min(place.quick_deaths - 1, 10) if place.quick_deaths else 0.0
        place.again_at = time.monotonic() + min(pause, LONGEST_PAUSE)

    def _wind_down(self) -> int:
        running = [place.process for place in self.places if place.process is not None]
        _signal(running, signal.SIGTERM)
        end = time.monotonic() + self.grace + KILL_AFTER
        while any(process.poll() is None for process in running):
            time.sleep(TICK)
            if self.stop.hurried.is_set():
                # Again and again: two signals that arrive at once are one to the receiver.
                _signal(running, signal.SIGTERM)
                end = min(end, time.monotonic() + KILL_AFTER)
            if time.monotonic() > end:
                _signal(running, signal.SIGKILL)
        codes = [*self._codes, *(process.returncode for process in running)]
        if self.stop.code != CLEAN:
            return self.stop.code
        # Killed by our own signal: it was still starting, so it had not learnt to hear it, and held nothing.
        if any(code not in (CLEAN, LEFT_RUNNING, RELOAD, -signal.SIGTERM) for code in codes):
            return ERROR
        return LEFT_RUNNING if LEFT_RUNNING in codes else CLEAN


def _signal(processes: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)


def tie_to(parent: int) -> bool:
    """Have the kernel ask this process to stop when its parent ends; False when that has happened already."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    except (OSError, AttributeError):
        log.info("this system cannot tie a process to its parent")
    return os.getppid() == parent
