"""What can go wrong with a request, as exceptions."""

from __future__ import annotations

from typing import Any

PASSING = frozenset({429, 502, 503, 504})
"""What a proxy answers while the server behind it is away or busy: the same request may succeed later."""


class NoAnswer(Exception):
    """No answer came. `outcome` is `not_started` where nothing was sent, else `unknown`."""

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class Problem(Exception):
    """The server's answer was a problem (RFC 9457)."""

    def __init__(self, status: int, body: dict[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))
        self.detail = str(body.get("detail", ""))
        self.retryable = body.get("retryable") is True
        self.outcome = str(body.get("outcome", "unknown"))
        self.errors: list[dict[str, str]] = body.get("errors") or []
        self.retry_after = retry_after
        super().__init__(f"{status} {self.code}: {self.detail}")


class Fenced(Problem):
    """The lease is not ours any more: stop, and send nothing more."""

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))


class CancelRequested(Problem):
    """Somebody wants the job cancelled: acknowledge it."""


class StaleInput(Problem):
    """The input was revised: release the job."""


class KeyConflict(Problem):
    """The key belongs to a job with another input."""


class WorkerEnded(Problem):
    """This worker was fenced or has stopped: it claims nothing under this id."""


_KNOWN: dict[str, type[Problem]] = {
    "fenced": Fenced,
    "cancelled": CancelRequested,
    "stale-input": StaleInput,
    "key-conflict": KeyConflict,
    "worker-ended": WorkerEnded,
}


def problem_of(status: int, body: Any, retry_after: float | None = None) -> Problem:
    """Return the exception of an answer; one that is no problem of ours is of unknown outcome."""
    known = body if isinstance(body, dict) and "code" in body else None
    if known is None:
        known = {"detail": "an answer that is no problem", "retryable": status in PASSING}
    return _KNOWN.get(str(known.get("code")), Problem)(status, known, retry_after)
