"""claim.v1 over HTTP: the lease and its verbs. Each may be sent again, and answers as it did."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock_client.transport import Transport

LOG_LINES = 1_000
LOG_CHARACTERS = 60_000
"""The newest of a log are sent; with an error and its traceback, escaped, they fit into one body."""

# Counts on while the machine is suspended: a machine that slept must know that its leases are gone.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds on the clock by which a worker fences itself."""
    return time.clock_gettime(_BOOT)


@dataclass(eq=False)
class Claimed:
    """One claimed job in this process's hands."""

    lease: dict[str, Any]
    """As the claim gave it: what every verb presents."""
    kind: str
    input: dict[str, Any]
    ttl: float
    attempt: int
    max_attempts: int
    timeout: float | None
    ruled: dict[str, Any] | None
    surely_ends: float
    """Boot time, counted from before the claim or renewal was sent; nothing is sent from then on."""
    cancel_generation: int | None = None
    """The newest cancel number: what a renewal presents."""
    traceparent: str = ""
    """The trace in which the job was enqueued; may be empty."""
    lost: str = ""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))

    @property
    def attempt_id(self) -> str:
        return str(self.lease["attempt_id"])

    @property
    def is_over(self) -> bool:
        """Whether the lease is gone, or surely will be by the time that anything arrives."""
        return bool(self.lost) or boottime() >= self.surely_ends

    @property
    def renewal(self) -> dict[str, Any]:
        if self.cancel_generation is None:
            return self.lease
        return self.lease | {"cancel_generation": self.cancel_generation}

    @property
    def trace(self) -> dict[str, str]:
        """The header that says in which trace a request about it is made."""
        return {"traceparent": self.traceparent} if self.traceparent else {}

    @property
    def log(self) -> dict[str, str]:
        return {"log": "\n".join(self.lines)[-LOG_CHARACTERS:]} if self.lines else {}


class Leases:
    """The verbs of one worker."""

    def __init__(self, transport: Transport, worker: dict[str, Any]) -> None:
        self.transport = transport
        self.worker = worker

    def claim(
        self,
        *,
        queues: Sequence[str],
        kinds: Sequence[str],
        limit: int,
        wait: float,
        holding: Sequence[str],
    ) -> tuple[list[Claimed], float]:
        """Return what was claimed, and after how many seconds to ask again.

        `holding` are the attempts in hand: any other that the server takes for ours is given back, because
        its claim's answer never came. So a claim may be sent again, by one thread at a time.
        """
        sent = boottime()
        body = {
            "worker": self.worker,
            "queues": list(queues),
            "kinds": list(kinds),
            "limit": limit,
            "wait": wait,
            "holding": list(holding),
        }
        # Not again by itself: the time of sending must be that of the answer.
        answer = self.transport.send("POST", "claims", body, repeatable=False, wait=wait, patience=0)
        told = answer.json()
        claimed = [
            Claimed(
                lease=one["lease"],
                kind=one["kind"],
                input=one["input"],
                ttl=one["ttl_seconds"],
                attempt=one["attempt"],
                max_attempts=one["max_attempts"],
                timeout=one["timeout"],
                ruled=one["ruled"],
                traceparent=one["traceparent"],
                # `waited`: what the server counted from our request to its claim; the lease began no sooner.
                surely_ends=sent + told["waited"] + one["ttl_seconds"],
            )
            for one in told["leases"]
        ]
        return claimed, float(told["retry_after"] or 0.0)

    def renew(self, held: Sequence[Claimed], *, stopping: bool = False, stopped: bool = False) -> None:
        """Renew leases and tell each what became of it."""
        sent = boottime()
        worker = {**self.worker, "running": len(held), "stopping": stopping, "stopped": stopped}
        body = {"worker": worker, "leases": [one.renewal for one in held]}
        answer = self.transport.send("POST", "leases/renew", body, repeatable=True, patience=0)
        for one, result in zip(held, answer.json()["results"], strict=True):
            match result["code"]:
                case "RENEWED":
                    # From before it was first sent: earlier than the truth is safe.
                    one.surely_ends = max(one.surely_ends, sent + one.ttl)
                case "CANCELLED":
                    one.cancel_generation = result["cancel_generation"]
                case "BUSY":
                    pass
                case _:
                    one.lost = result.get("reason") or "STATUS"

    def commit(self, results: Sequence[tuple[Claimed, Any]]) -> list[dict[str, Any]]:
        """Commit many results; returns what was said of each, in order."""
        body = {"commits": [{"lease": one.lease, "result": value, **one.log} for one, value in results]}
        answer = self.transport.send("POST", "leases/commit", body, repeatable=True)
        return list(answer.json()["results"])

    def end(self, one: Claimed, verb: str, **said: Any) -> str:
        """End an attempt otherwise; returns what the job is now. Raises Fenced and its like."""
        body = {"lease": one.lease, **one.log, **said}
        return str(self.post(one, f"leases/{one.attempt_id}/{verb}", body)["status"])

    def post(self, one: Claimed, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a verb that replays, about one claimed job."""
        return dict(self.transport.send("POST", path, body, repeatable=True, headers=one.trace).json())

    def upload(self, one: Claimed, path: Path, name: str) -> str:
        """Store a file with an attempt; returns its key. Raises Fenced where the lease is gone."""
        answer = self.transport.upload(f"leases/{one.attempt_id}/artefacts", path, {"name": name}, one.trace)
        return str(answer["key"])
