"""What a worker costs that has nothing to do: queries, CPU, memory."""

import time
from pathlib import Path
from typing import Any

from bench.ground import Ground
from bench.measures.pickup import warm_up
from bench.sides import Side

SECONDS = 10.0
QUIET_SECONDS = 2.0


def idle(ground: Ground, side: Side, folder: Path) -> dict[str, Any]:
    """Watch one worker for ten seconds, two after it has run its first jobs."""
    url = ground.fresh(side)
    with side.workers(url, 1, folder) as running:
        warm_up(side, url, running, folder)
        time.sleep(QUIET_SECONDS)
        before, cpu, began = ground.asked(), running.cpu_seconds(), time.monotonic()
        time.sleep(SECONDS)
        after, used, seconds = ground.asked(), running.cpu_seconds() - cpu, time.monotonic() - began
        running.check()
        figures: dict[str, Any] = {
            "seconds": round(seconds, 2),
            "rss_mib": round(running.resident_mib(), 1),
            "cpu_percent": round(used / seconds * 100, 2),
        }
    for name, first, last in zip(("statements", "transactions"), before, after, strict=True):
        if first is not None and last is not None:
            figures[f"{name}_per_s"] = round((last - first) / seconds, 2)
    return figures
