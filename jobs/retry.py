"""Back-off: how long a failed attempt waits before the next one (contract §7)."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delay with full jitter, capped. Seconds.

    A nonsense value is refused when the kind is registered, because at run time it would be a hot
    loop or a job that never comes back.
    """

    base: float = 2.0
    factor: float = 2.0
    cap: float = 3600.0
    floor: float = 1.0

    def __post_init__(self) -> None:
        for name in ("base", "factor", "cap", "floor"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"back-off {name} must be a finite number of seconds, not {value!r}")
        if self.factor < 1:
            raise ValueError(f"back-off factor must be at least 1, not {self.factor}")
        if self.floor < 0 or self.base < self.floor:
            raise ValueError(f"back-off base must be at least its floor ({self.floor} s), not {self.base}")
        if not self.base <= self.cap <= 30 * 86400:
            raise ValueError(
                f"back-off cap must lie between its base ({self.base} s) and 30 days, not {self.cap}"
            )

    def ceiling(self, failures: int) -> float:
        """Return the longest delay after `failures` failed attempts, in seconds.

        The cap is compared in the exponent, before any power is taken: base * factor ** 2000
        overflows, and an overflow must not eat the job.
        """
        if self.factor == 1:
            return min(self.base, self.cap)
        steps = max(0, failures - 1)
        if steps >= math.log(self.cap / self.base, self.factor):
            return self.cap
        return min(self.cap, self.base * self.factor**steps)

    def delay(self, failures: int, *, rng: random.Random | None = None) -> float:
        """Return a delay drawn evenly between the floor and the ceiling, in seconds."""
        draw = (rng or random).uniform(self.floor, self.ceiling(failures))
        return round(draw, 3)
