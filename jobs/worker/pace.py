"""How long jobs take here, and so how many to claim ahead.

Claiming ahead of free slots keeps a worker busy while the next claim is on its way; claiming slow jobs ahead
keeps them from other workers. So the bound is time: no more than the slots will finish in half a second.
"""

from __future__ import annotations

AHEAD_SECONDS = 0.5
MOST_AHEAD = 1000
BRISK_SECONDS = 0.002
ENOUGH = 3
WEIGHT = 0.05


class Pace:
    """Moving averages of handler durations, by kind and over all."""

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}
        self._seen: dict[str, int] = {}
        self.overall: float | None = None

    def note(self, kind: str, seconds: float) -> None:
        """Take one duration in."""
        mean = self._mean.get(kind)
        self._mean[kind] = seconds if mean is None else mean + (seconds - mean) * WEIGHT
        self._seen[kind] = self._seen.get(kind, 0) + 1
        self.overall = seconds if self.overall is None else self.overall + (seconds - self.overall) * WEIGHT

    def is_brisk(self, kind: str) -> bool:
        """Whether jobs of a kind are known to return at once, so that a thread each would only cost."""
        return self._seen.get(kind, 0) >= ENOUGH and self._mean[kind] < BRISK_SECONDS

    def ahead(self, slots: int) -> int:
        """Return how many jobs to hold beyond the free slots; none before anything was measured."""
        if self.overall is None:
            return 0
        return int(min(MOST_AHEAD, slots * AHEAD_SECONDS / max(self.overall, 1e-6)))
