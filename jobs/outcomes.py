"""What the verbs take and answer: leases, endings, outcomes (contract §4, §5).

Outcomes are a closed list and never stored in `error_code`. Losing a race is an answer, not an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from jobs.status import JobStatus, WaitReason


class Code(StrEnum):
    """The words a worker hears."""

    RENEWED = "RENEWED"
    STAGED = "STAGED"
    COMMITTED = "COMMITTED"
    LANDED = "LANDED"
    FENCED = "FENCED"
    CANCELLED = "CANCELLED"
    STALE_INPUT = "STALE_INPUT"
    BUSY = "BUSY"
    """The row was held by somebody else for the moment (renew only): nothing is lost, ask again."""


REASONS = [
    "RESULT_CONFLICT",
    "NOT_FOUND",
    "EPOCH",
    "TIMELINE",
    "GENERATION",
    "ATTEMPT",
    "OWNER",
    "STATUS",
    "CANCELLED",
    "STALE_INPUT",
    "LEASE_EXPIRED",
    "DEADLINE",
    "HELD",
    "EFFECT_UNRESOLVED",
    "NOT_STAGED",
]
"""Why a write is refused, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one verb on one job.

    `landed` is true when the write took place now or, with `replay`, had taken place before.
    `reason` names what refused it; `cancel_generation` is the new number after a cancel request.
    """

    code: Code
    reason: str = ""
    replay: bool = False
    status: JobStatus | None = None
    lease_expires_at: datetime | None = None
    cancel_generation: int | None = None
    result_digest: str = ""

    @property
    def landed(self) -> bool:
        return self.code in (Code.RENEWED, Code.STAGED, Code.COMMITTED, Code.LANDED)


class Lease(NamedTuple):
    """The limited exclusive right to one job: the token that every later write presents."""

    job_id: Any
    attempt_id: Any
    generation: int
    worker_id: str
    epoch: int
    lease_expires_at: datetime | None
    ttl_seconds: int
    cancel_generation: int = 0
    revision: int = 1
    input_digest: str = ""
    input: str = "{}"
    kind: str = ""
    queue: str = ""
    label: str = ""
    priority: int = 0
    deadline_at: datetime | None = None
    attempt_count: int = 1
    attempts_excused: int = 0
    max_attempts: int = 1
    created_at: datetime | None = None
    started_at: datetime | None = None
    due_at: datetime | None = None
    traceparent: str = ""

    def token(self) -> dict[str, Any]:
        """Return what the fence compares, as a row list carries it."""
        return {
            "id": self.job_id,
            "attempt_id": self.attempt_id,
            "generation": self.generation,
            "worker_id": self.worker_id,
            "epoch": self.epoch,
            "cancel_generation": self.cancel_generation,
            "revision": self.revision,
            "input_digest": self.input_digest,
        }

    def told_cancel(self, cancel_generation: int) -> Lease:
        """Return the lease with the newest cancel number, good for renewals only."""
        return self._replace(cancel_generation=cancel_generation)

    @property
    def attempts_used(self) -> int:
        return self.attempt_count - self.attempts_excused


@dataclass(frozen=True, slots=True)
class Ending:
    """How a holder wants to give its job up; *Endings* (contract §3) decides what becomes of it."""

    lease: Lease
    verb: str
    wish: JobStatus
    retry: bool = False
    excused: bool = False
    error_code: str = ""
    error_message: str = ""
    traceback: str = ""
    log: str | None = None
    delay: float | None = 0.0
    """Seconds until the next attempt; None is "no due time" (approval)."""
    wait_reason: str = ""
    wait_total: float = 7 * 86400.0
    spent_code: str = ""
    reference: str = ""
    """What an uncertain effect is known by outside, for whoever looks."""
    effect_id: str = ""
    """The slot that the job stops at: for an approval, or because of another payload."""
    conflict: tuple[str, str] | None = None
    """The other payload, canonical text and digest."""

    @classmethod
    def fail(
        cls,
        lease: Lease,
        error_code: str,
        message: str,
        *,
        retry_after: float | None,
        traceback: str = "",
        log: str | None = None,
    ) -> Ending:
        """The attempt failed. `retry_after` seconds asks for another attempt, None for none."""
        again = retry_after is not None
        return cls(
            lease,
            "fail",
            JobStatus.PENDING if again else JobStatus.FAILED,
            retry=again,
            error_code=error_code,
            error_message=message,
            traceback=traceback,
            log=log,
            delay=retry_after or 0.0,
            spent_code=error_code,
        )

    @classmethod
    def release(
        cls, lease: Lease, *, error_code: str = "", message: str = "", log: str | None = None
    ) -> Ending:
        """Give the job back unharmed: a graceful stop, or stale input. Costs no attempt."""
        return cls(
            lease,
            "release",
            JobStatus.PENDING,
            excused=True,
            error_code=error_code,
            error_message=message,
            log=log,
        )

    @classmethod
    def wait(
        cls,
        lease: Lease,
        reason: WaitReason,
        *,
        seconds: float | None,
        total: float = 7 * 86400.0,
        log: str | None = None,
        effect_id: str = "",
    ) -> Ending:
        """Give the lease up until `seconds` from now; an approval has no due time. Costs no attempt.

        `total` seconds bound all waiting of the job. Raises ValueError for another wait without a due time.
        """
        if seconds is None and reason != WaitReason.APPROVAL:
            raise ValueError("only a wait for an approval has no due time: say how many seconds")
        return cls(
            lease,
            "wait",
            JobStatus.WAITING,
            excused=True,
            # It comes due by a person's word, never by time: not even by mistake.
            delay=None if reason == WaitReason.APPROVAL else seconds,
            wait_reason=reason,
            wait_total=total,
            log=log,
            effect_id=effect_id,
        )

    @classmethod
    def skip(cls, lease: Lease, error_code: str, message: str = "", *, log: str | None = None) -> Ending:
        """There is nothing to do."""
        return cls(lease, "skip", JobStatus.SKIPPED, error_code=error_code, error_message=message, log=log)

    @classmethod
    def uncertain(cls, lease: Lease, note: str, *, reference: str = "", log: str | None = None) -> Ending:
        """Nobody knows whether an outside effect took place; a person has to look."""
        message = f"{note} (reference {reference})" if reference else note
        return cls(
            lease, "uncertain", JobStatus.UNCERTAIN, error_message=message, reference=reference, log=log
        )

    @classmethod
    def payload_conflict(
        cls, lease: Lease, effect_id: str, payload: str, digest: str, *, log: str | None = None
    ) -> Ending:
        """The effect's key is bound to another payload: nothing is sent, and a person says which one
        stands."""
        return cls(
            lease,
            "uncertain",
            JobStatus.UNCERTAIN,
            error_message="another payload was brought for an effect's key",
            log=log,
            effect_id=effect_id,
            conflict=(payload, digest),
        )

    @classmethod
    def acknowledge_cancel(cls, lease: Lease, *, message: str = "", log: str | None = None) -> Ending:
        """Stop because a cancel was requested. Giving up is always safe, so the epoch is not asked."""
        return cls(
            lease,
            "acknowledge_cancel",
            JobStatus.CANCELLED,
            error_code="JOB_CANCELLED",
            error_message=message,
            log=log,
        )


class Refused(Exception):
    """A person's verb was refused: nothing was written.

    `code` is stable and machine-readable, `params` fill the sentence that explain.py makes of it.
    """

    def __init__(self, code: str, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.params = params

    def __str__(self) -> str:
        from jobs.sentences import sentence

        return sentence(self.code, self.params)


class KeyConflict(Refused):
    """The unique key is held by a job with another kind or another input."""

    def __init__(self, key: str, job_id: Any, status: str) -> None:
        super().__init__("KEY_CONFLICT", key=key, job_id=str(job_id), status=status)
        self.key = key
        self.job_id = job_id


class InvalidJob(ValueError):
    """An enqueue is refused at the edge: `field` names the culprit, `problem` says the limit."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Enqueued:
    """An accepted enqueue. `created` is false when the key's job was there already with the same input."""

    job_id: Any
    created: bool
