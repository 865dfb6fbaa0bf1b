"""How much one caller may ask of one server process: a budget of its own for each sort of request.

Kept in the memory of the process: with several, each lets through as much. A bucket holds what ten
seconds bring, so that a burst after a pause is no offence.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from jobs.api.auth import Caller
from jobs.api.problems import is_safe

BURST_SECONDS = 10
MOST_CALLERS = 10_000
"""Buckets kept; whose bucket is dropped begins with a full one."""
BUDGETS = {"jobs:enqueue": "ENQUEUE", "worker": "WORKER"}
"""By scope; what else changes something is OPERATE, and what only looks is READ."""


class Buckets:
    """How much is left to each caller of each budget."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[tuple[str, str], tuple[float, float]] = {}

    def take(self, key: tuple[str, str], rate: int, now: float) -> float:
        """Take one request at `rate` a second; returns 0, or the seconds until there is one to take."""
        with self._lock:
            if len(self._left) >= MOST_CALLERS and key not in self._left:
                self._left.clear()
            left, at = self._left.get(key, (float(rate * BURST_SECONDS), now))
            left = min(rate * BURST_SECONDS, left + (now - at) * rate)
            if left < 1:
                self._left[key] = left, now
                return (1 - left) / rate
            self._left[key] = left - 1, now
            return 0.0


buckets = Buckets()


class Budgets(BaseThrottle):
    """Answers 429 with Retry-After to whoever has used a budget up."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        budget = budget_of(str(request.method), view)
        rate = settings.INTERLOCK[f"RATE_{budget}"]
        if not rate:
            return True
        self._seconds = buckets.take((Caller.of(request).namespace, budget), rate, time.monotonic())
        return not self._seconds

    def wait(self) -> float:
        return self._seconds


def budget_of(method: str, view: Any) -> str:
    """Return the budget that a request counts against."""
    scope = getattr(view, "scopes", {}).get(method, "")
    if scope == "worker" or not is_safe(method):
        return BUDGETS.get(scope, "OPERATE")
    return "READ"
