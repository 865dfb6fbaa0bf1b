"""What this worker has done since it started: the numbers of its status line."""

from __future__ import annotations

from collections import Counter


class Tally:
    """Counts in memory, for one process; what everybody may read is in `Minute` rows."""

    def __init__(self) -> None:
        self.claimed = 0
        self.committed = 0
        self.lost = 0
        self.endings: Counter[str] = Counter()

    def ended(self, verb: str) -> None:
        self.endings[verb] += 1
