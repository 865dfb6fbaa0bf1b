"""What a handler is given and what it may answer.

    @job("reports.render", timeout=300)
    def render(ctx, report_id):
        for number, page in enumerate(pages := load(report_id)):
            ctx.checkpoint()                      # a cancel, a lost lease or a time limit stops us here
            ctx.progress(number, len(pages), page.title)
        return {"pages": len(pages)}              # or Wait(seconds=60); or raise Retry, Skip, Fail

Everything here reads memory that the worker's heartbeat keeps fresh; nothing asks the database.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jobs.status import WaitReason

if TYPE_CHECKING:
    from jobs.worker.held import Held


class Retry(Exception):
    """Run me again: after `after` seconds, or after the kind's own back-off. Costs an attempt."""

    def __init__(
        self, after: float | None = None, *, code: str = "RUNTIME_RETRY_REQUESTED", message: str = ""
    ):
        super().__init__(message or code)
        self.after = after
        self.code = code
        self.message = message


class Skip(Exception):
    """There is nothing to do; the job ends `skipped`."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


class Fail(Exception):
    """This attempt has failed; the code's registry entry says whether another one may help (contract §7)."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Wait:
    """Returned by a handler that gives its lease up until later and is then run from the top again.

    `seconds` from now, or `until` an aware instant; an approval alone has neither. Costs no attempt.
    """

    seconds: float | None = None
    until: datetime | None = None
    reason: str = WaitReason.TIMER


class Stopped(BaseException):
    """The handler has to stop. No `Exception`, so that a broad `except` in a loop does not swallow it."""


class Cancelled(Stopped):
    """A cancel was requested. Nothing that was done outside is undone by it."""


class LeaseLost(Stopped):
    """The job is not ours any more: nothing that this attempt does from now on can be committed."""


class TimedOut(Stopped):
    """The attempt has outlived the kind's time limit and was ended as failed."""


@dataclass(frozen=True, slots=True)
class JobView:
    """The job as it was claimed."""

    id: uuid.UUID
    kind: str
    queue: str
    label: str
    priority: int
    revision: int
    max_attempts: int
    created_at: datetime | None
    deadline_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """This execution. `number` counts the attempts that were used, this one included."""

    id: uuid.UUID
    generation: int
    number: int
    worker_id: str


class Context:
    """The handler's side of one attempt, passed as its first parameter where that is called `ctx`."""

    __slots__ = ("_held",)

    def __init__(self, held: Held) -> None:
        self._held = held

    @property
    def job(self) -> JobView:
        lease = self._held.lease
        return JobView(
            id=uuid.UUID(lease.job_id),
            kind=lease.kind,
            queue=lease.queue,
            label=lease.label,
            priority=lease.priority,
            revision=lease.revision,
            max_attempts=lease.max_attempts,
            created_at=lease.created_at,
            deadline_at=lease.deadline_at,
        )

    @property
    def attempt(self) -> AttemptView:
        lease = self._held.lease
        return AttemptView(
            id=uuid.UUID(lease.attempt_id),
            generation=lease.generation,
            number=lease.attempts_used,
            worker_id=lease.worker_id,
        )

    @property
    def deadline(self) -> datetime | None:
        """The instant, by the database's clock, after which nothing of this attempt is accepted."""
        held = self._held
        ends = [held.lease.deadline_at] if held.lease.deadline_at else []
        if held.handler.timeout is not None and held.began is not None and held.lease.started_at:
            waited = max(0.0, held.began - held.claimed)
            ends.append(held.lease.started_at + timedelta(seconds=waited + held.handler.timeout))
        return min(ends, default=None)

    @property
    def traceparent(self) -> str:
        """The trace in which the job was enqueued, for calls to others and for children; may be empty."""
        return self._held.lease.traceparent

    def checkpoint(self) -> None:
        """Return if the attempt may go on; raises LeaseLost, TimedOut or Cancelled."""
        held = self._held
        if held.lost or held.released or held.clock() >= held.surely_ends:
            raise LeaseLost(held.lost or ("WORKER_LEASE_RELEASED" if held.released else "LEASE_EXPIRED"))
        if held.is_late(held.clock()):
            raise TimedOut(f"{held.handler.timeout} s")
        if held.cancel_requested:
            raise Cancelled

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Say how far the work has come; people see it with the next beat."""
        self._held.note_progress(done, total, note)

    def log(self, text: object) -> None:
        """Keep a line for the people who look at this attempt: bounded, and without the input's secrets."""
        self._held.note_line(text)

    def effect(self, kind: str, slot: str, payload: Any, *, node_id: str = "", etag: str = "") -> Any:
        """Act on the outside world at most once, and return the provider's answer; awaited in a coroutine.

        `kind` is a registered effect kind, `slot` names this action within the job, `payload` is JSON without
        attempt, generation or clock. A run after this one gets the recorded answer and sends nothing. Raises
        EffectDeclined, EffectNotSent or EffectAbandoned, which a handler may catch; where nobody knows
        whether it
        was sent the run stops here and comes back to this line when that is settled (docs/effects.md). Raises
        ValueError for an unknown kind, a bad name, or a payload that is no JSON within the limits.
        """
        from jobs import effects

        perform = effects.perform_async if self._held.handler.is_async else effects.perform
        return perform(self._held, kind, slot, payload, node_id=node_id, etag=etag)

    def attempt_path(self, name: str) -> str:
        """Return the storage key of a file of this attempt; another attempt's file never has the same.

        Raises ValueError for a name that would lead out of the attempt's own folder.
        """
        parts = name.split("/")
        if not name or "\0" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{name!r} is no name for a file of an attempt")
        return f"attempts/{self._held.lease.attempt_id}/{name}"


def seconds_of(wait: Wait, held: Held) -> float | None:
    """Return how long a Wait is from now; `until` is measured on the database's clock."""
    if wait.until is None:
        return wait.seconds
    if wait.until.tzinfo is None:
        raise ValueError("Wait(until=…) needs an instant with a time zone")
    return max(0.0, (wait.until - held.database_now()).total_seconds())
