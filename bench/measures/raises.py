"""How long a raise of the epoch takes: while many commit, and while one stands still in a fenced transaction.

The writers are threads with a connection each in two processes; each claims a job and commits it, again and
again, so that nearly always somebody is in a fenced transaction.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

from bench.failed import BenchFailed
from bench.ground import Ground
from bench.measures.pickup import quantile
from bench.procs import Workers
from bench.sides import Side

PROCESSES = 2
WRITERS = 32
START_SECONDS = 60.0
GLANCE = 0.02
DONE = "SELECT count(*) FROM jobs_attempt WHERE status = 'committed'"


def raises(ground: Ground, side: Side, count: int, folder: Path) -> dict[str, Any]:
    """Raise `count` times under load, then once with a stopped writer."""
    url = ground.fresh(side)
    rate = ground.commits_per_s()
    with side.others(url, "write", WRITERS // PROCESSES, count=PROCESSES, folder=folder) as writers:
        _until(lambda: ground.count(DONE) >= WRITERS, writers, "the writers' first commits")
        began, before = time.monotonic(), ground.count(DONE)
        waited = [seconds * 1000 for seconds in side.ask(url, "raises", count)]
        commits = (ground.count(DONE) - before) / (time.monotonic() - began)
        writers.check()
    ordered = sorted(waited)
    return {
        "n": count,
        "writers": WRITERS,
        "p50_ms": round(quantile(ordered, 0.5), 2),
        "p99_ms": round(quantile(ordered, 0.99), 2),
        "max_ms": round(ordered[-1], 2),
        "writes_per_s": round(commits),
        "stopped_s": round(_with_one_stopped(ground, side, folder), 2),
        "commit_per_s": rate,
    }


def _with_one_stopped(ground: Ground, side: Side, folder: Path) -> float:
    """Return the seconds until a raise has returned while a writer stands still in a fenced transaction."""
    url = ground.fresh(side)
    with side.others(url, "write", 1, count=1, folder=folder) as writers:
        (pid,) = writers.pids
        _until(lambda: ground.count(DONE) > 0, writers, "the writer's first commit")
        seconds: float = side.ask(url, "raise_beside", pid)
        os.kill(pid, signal.SIGKILL)  # a stopped process does not hear SIGTERM
    return seconds


def _until(happened: Any, writers: Workers, what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not happened():
        writers.check()
        if time.monotonic() > end:
            raise BenchFailed(f"{what} did not come within {START_SECONDS:.0f} s: {writers.last_words()}")
        time.sleep(GLANCE)
