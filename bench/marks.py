"""What job bodies leave behind for the measuring process: files, because they run in other processes.

Standard library only, for a peer's environment holds nothing of ours. Instants are those of CLOCK_MONOTONIC,
which all processes of a machine share and nobody sets.
"""

import json
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import IO

FOLDER = "BENCH_MARKS"
"""The environment variable that names the folder."""
HITS = struct.Struct("<dq")
"""The first instant and the number of runs, of one process."""


class _Process:
    """This process's files, opened at its first run: a worker may fork after it has imported its kinds."""

    def __init__(self, began: float) -> None:
        self.pid = os.getpid()
        self.count = 0
        self.first = began
        self.folder = Path(os.environ[FOLDER])
        path = self.folder / f"{self.pid}.hits"
        path.write_bytes(bytes(HITS.size))
        with path.open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), HITS.size)
        self.starts: IO[str] | None = None


_lock = threading.Lock()
_mine: _Process | None = None


def hit() -> None:
    """Count one run of a job body. Costs about a microsecond."""
    global _mine
    with _lock:
        if _mine is None or _mine.pid != os.getpid():
            _mine = _Process(time.monotonic())
        _mine.count += 1
        HITS.pack_into(_mine.page, 0, _mine.first, _mine.count)


def began(seq: int) -> None:
    """Note that the job body numbered `seq` has begun now."""
    now = time.monotonic()
    hit()
    assert _mine is not None
    with _lock:
        if _mine.starts is None:
            _mine.starts = (_mine.folder / f"{_mine.pid}.starts").open("a", buffering=1)
        _mine.starts.write(json.dumps([seq, now]) + "\n")


def read_hits(folder: Path) -> tuple[float | None, int]:
    """Return the instant of the first run, None before it, and how many there were."""
    found = [
        HITS.unpack(data) for path in folder.glob("*.hits") if len(data := path.read_bytes()) == HITS.size
    ]
    firsts = [first for first, count in found if count]
    return min(firsts, default=None), sum(count for _, count in found)


def read_starts(folder: Path) -> dict[int, float]:
    """Return when each numbered job body began last: the numbers of a warm-up are used again."""
    starts: dict[int, float] = {}
    for path in folder.glob("*.starts"):
        for line in path.read_text("ascii").splitlines():
            seq, now = json.loads(line)
            starts[seq] = max(now, starts.get(seq, now))
    return starts
