"""How fast a backlog is worked off: from the first job body that starts to nothing left in the database.

The jobs are there before the workers start, and the workers' own start is not counted.
"""

import time
from pathlib import Path
from typing import Any

from bench import marks
from bench.failed import BenchFailed
from bench.ground import Ground
from bench.procs import Workers
from bench.sides import Side

START_SECONDS = 60.0
PATIENCE = 180.0
GLANCE = 0.002
ASK = 0.02


def drain(ground: Ground, side: Side, count: int, workers: int, folder: Path) -> dict[str, Any]:
    """Drain `count` no-op jobs with `workers` processes. Raises BenchFailed if one was lost or doubled."""
    url = ground.fresh(side)
    side.ask(url, "bulk", count)
    rate = ground.commits_per_s()
    with side.workers(url, workers, folder) as running:
        asked = time.monotonic()
        began = _first_run(running, folder)
        cpu, server = running.cpu_seconds(), ground.usage()
        seconds = _until_nothing_left(ground, side, running, count, folder) - began
        cpu, after = running.cpu_seconds() - cpu, ground.usage()
        memory = running.resident_mib()
    runs, proofs = marks.read_hits(folder)[1], ground.count(side.finished)
    if (runs, proofs) != (count, count):
        raise BenchFailed(f"{side.name}: of {count} jobs {runs} ran and {proofs} left a proof of success")
    figures = {
        "n": count,
        "workers": workers,
        "seconds": round(seconds, 3),
        "per_s": round(count / seconds),
        "start_s": round(began - asked, 2),
        "commit_per_s": rate,
        "worker_us_per_job": round(cpu / count * 1e6, 1),
        "rss_mib": round(memory, 1),
    }
    if after.cpu_seconds is not None and server.cpu_seconds is not None:
        figures["server_us_per_job"] = round((after.cpu_seconds - server.cpu_seconds) / count * 1e6, 1)
    if after.wal_bytes is not None and server.wal_bytes is not None:
        figures["wal_bytes_per_job"] = round((after.wal_bytes - server.wal_bytes) / count)
    return figures


def _first_run(running: Workers, folder: Path) -> float:
    end = time.monotonic() + START_SECONDS
    while (first := marks.read_hits(folder)[0]) is None:
        running.check()
        if time.monotonic() > end:
            raise BenchFailed(f"no job began within {START_SECONDS:.0f} s: {running.last_words()}")
        time.sleep(GLANCE)
    return first


def _until_nothing_left(ground: Ground, side: Side, running: Workers, count: int, folder: Path) -> float:
    """Return the instant at which the database held nothing unfinished any more.

    Asking costs the database work that the jobs need, so it is asked only once every body has run, of which
    the marks tell for nothing.
    """
    end = time.monotonic() + PATIENCE
    while (asked := time.monotonic()) < end:
        running.check()
        if marks.read_hits(folder)[1] >= count and ground.count(side.unfinished) == 0:
            return asked  # the answer speaks of the moment at which it was asked for
        time.sleep(ASK)
    raise BenchFailed(f"{side.name}: after {PATIENCE:.0f} s jobs were left: {running.last_words()}")
