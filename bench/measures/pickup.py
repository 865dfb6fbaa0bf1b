"""How long an idle worker takes to begin a job: from the enqueue call's return to the job body's start."""

import math
import time
from pathlib import Path
from typing import Any

from bench import marks
from bench.failed import BenchFailed
from bench.ground import Ground
from bench.procs import Workers
from bench.sides import Side

WARM_UP = 3
SETTLE_SECONDS = 2.0
PATIENCE = 20.0


def pickup(ground: Ground, side: Side, count: int, folder: Path) -> dict[str, Any]:
    """Enqueue `count` jobs, about one in 100 ms, while one worker has nothing else to do."""
    url = ground.fresh(side)
    rate = ground.commits_per_s()
    with side.workers(url, 1, folder) as running:
        warm_up(side, url, running, folder)
        returned = dict(side.ask(url, "pickup", count))
        wait_for(running, folder, WARM_UP + count)
    starts = marks.read_starts(folder)
    delays = sorted((starts[number] - at) * 1000 for number, at in returned.items())
    return {
        "n": count,
        "p50_ms": round(quantile(delays, 0.5), 2),
        "p95_ms": round(quantile(delays, 0.95), 2),
        "max_ms": round(delays[-1], 2),
        "commit_per_s": rate,
    }


def warm_up(side: Side, url: str, running: Workers, folder: Path) -> None:
    """Return when the worker has run its first jobs and then had nothing to do for a while."""
    side.ask(url, "pickup", WARM_UP)
    wait_for(running, folder, WARM_UP)
    time.sleep(SETTLE_SECONDS)


def wait_for(running: Workers, folder: Path, runs: int) -> None:
    """Return when `runs` job bodies have begun."""
    end = time.monotonic() + PATIENCE
    while marks.read_hits(folder)[1] < runs:
        running.check()
        if time.monotonic() > end:
            raise BenchFailed(f"not all of {runs} jobs ran: {running.last_words()}")
        time.sleep(0.01)


def quantile(ordered: list[float], part: float) -> float:
    """Return the smallest value that at least `part` of all do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]
