"""What a handler is given, and what it may answer."""

from __future__ import annotations

import os
import re
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock_client.leases import LOG_CHARACTERS, Claimed

if TYPE_CHECKING:
    from interlock_client.worker import Worker

_UNSENDABLE = re.compile(r"[\0\ud800-\udfff]")


class Fail(Exception):
    """This attempt has failed; without `retry_after` the code's entry on the server says what follows."""

    def __init__(self, code: str, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message
        self.retry_after = retry_after


class Skip(Exception):
    """There is nothing to do."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Wait:
    """Returned by a handler that gives its lease up for `seconds` and is then run from the top again."""

    seconds: float
    reason: str = "timer"


class Stopped(BaseException):
    """The handler has to stop. No Exception, so that a broad `except` in a loop does not swallow it."""


class Cancelled(Stopped):
    """A cancel was requested."""


class LeaseLost(Stopped):
    """The job is not ours any more: nothing that this attempt does from now on is accepted."""


class TimedOut(Stopped):
    """The attempt has run longer than its kind may."""


class Ending(Stopped):
    """The attempt ends here, as an effect demands: by `verb`, with what it says."""

    def __init__(self, verb: str, **said: Any) -> None:
        super().__init__(verb)
        self.verb = verb
        self.said = said


class Context:
    """The handler's side of one attempt."""

    def __init__(self, worker: Worker, claimed: Claimed) -> None:
        self._worker = worker
        self.claimed = claimed
        self._late = None if claimed.timeout is None else time.monotonic() + claimed.timeout

    @property
    def traceparent(self) -> str:
        """The trace in which the job was enqueued, for calls to others and for children; may be empty."""
        return self.claimed.traceparent

    def checkpoint(self) -> None:
        """Return if the attempt may go on; raises LeaseLost, TimedOut or Cancelled."""
        if self.claimed.is_over:
            raise LeaseLost(self.claimed.lost or "LEASE_EXPIRED")
        if self._late is not None and time.monotonic() >= self._late:
            raise TimedOut
        if self.claimed.cancel_generation is not None:
            raise Cancelled

    def log(self, line: object) -> None:
        """Keep a line for the people who look at this attempt; the newest are kept."""
        self.claimed.lines.append(plain(line)[-LOG_CHARACTERS:])

    def effect(self, kind: str, slot: str, payload: Any, *, node_id: str = "", etag: str = "") -> Any:
        """Act on the outside world at most once, and return the provider's answer (docs/effects.md).

        `kind` is one of the worker's effects, `slot` names this action within the job. Raises EffectDeclined,
        EffectNotSent or EffectAbandoned, which a handler may catch; where nobody knows whether it was sent
        the run stops here and comes back to this line when that is settled.
        """
        from interlock_client.effects import Passage

        return Passage(self, self._worker.effects[kind], slot, payload, node_id, etag).perform()

    def upload(self, path: Path, name: str = "") -> str:
        """Store a file with this attempt and return its key, for the result to name."""
        self.checkpoint()
        return self._worker.leases.upload(self.claimed, path, name or path.name)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Say something about this attempt to the server, in its job's trace; returns the answer."""
        return self._worker.leases.post(self.claimed, path, body)


def plain(text: object) -> str:
    """Return text that can be sent and kept, whatever an exception or a file's name has in it."""
    try:
        shown = str(text)
    except Exception:  # noqa: BLE001  (an exception whose __str__ raises must not hide the failure)
        shown = f"<{type(text).__name__} that cannot be shown as text>"
    return _UNSENDABLE.sub("\N{REPLACEMENT CHARACTER}", shown)


def identity() -> str:
    """Return an id that no other start has had or will have."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:80]
    return f"{host}:{os.getpid()}:{uuid.uuid4().hex}"
