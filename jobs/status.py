"""Statuses and the one transition table.

Guards, constraints, console buttons, tests and the diagram in docs/lifecycle.md all read this
file, so a legal move is written down once (contract §3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobStatus(StrEnum):
    """Where a job is. Beside each: what it means, who moves it on, what a crash leaves."""

    PENDING = "pending"
    """May be claimed once `next_attempt_at` has come. A claim moves it; a crash changes nothing."""
    BLOCKED = "blocked"
    """Waits for predecessors' commits. Their endings move it; a crash changes nothing."""
    RUNNING = "running"
    """One attempt holds the lease. That attempt moves it; after a crash the lease runs out."""
    WAITING = "waiting"
    """Gave up its lease on purpose. Due time, signal or approval moves it; a crash changes nothing."""
    UNCERTAIN = "uncertain"
    """An outside outcome is open. A resolution moves it; a crash changes nothing."""
    SUCCEEDED = "succeeded"
    """Has its one canonical result. Nothing moves it."""
    FAILED = "failed"
    """Ended without a result: the dead-letter list. Only an operator's retry moves it."""
    CANCELLED = "cancelled"
    """A cancel request was honoured. Only an operator's retry moves it."""
    SKIPPED = "skipped"
    """The handler said that there is nothing to do. Only an operator's retry moves it."""


class WaitReason(StrEnum):
    """What a waiting job waits for; approval alone has no due time."""

    PROVIDER = "provider"
    TIMER = "timer"
    SIGNAL = "signal"
    APPROVAL = "approval"


class HoldReason(StrEnum):
    """Why a job may not be claimed until a person lifts the hold."""

    QUARANTINE = "quarantine"
    CONTRADICTION = "contradiction"
    PREDECESSOR = "predecessor"
    OPERATOR = "operator"


class AttemptStatus(StrEnum):
    """How one physical execution ended; a running one has not."""

    RUNNING = "running"
    COMMITTED = "committed"
    FAILED = "failed"
    LOST = "lost"
    RELEASED = "released"
    WAITING = "waiting"
    UNCERTAIN = "uncertain"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class EffectStatus(StrEnum):
    """What is known of one action on the outside world (contract §3)."""

    PREPARED = "prepared"
    EXECUTING = "executing"
    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABSENT = "absent"
    ABANDONED = "abandoned"


TERMINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.SKIPPED})
UNFINISHED = frozenset(JobStatus) - TERMINAL
OPEN_EFFECT = frozenset({EffectStatus.EXECUTING, EffectStatus.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move of a job. `source` None is the enqueue; `guard` is said in the contract's words."""

    source: JobStatus | None
    target: JobStatus
    verb: str
    guard: str


def _moves(sources: str, targets: str, verb: str, guard: str) -> list[Transition]:
    return [
        Transition(None if source == "-" else JobStatus(source), JobStatus(target), verb, guard)
        for source in sources.split()
        for target in targets.split()
    ]


_FENCED = "the holder's fence, then Endings"
_EXPIRED = "the lease expired or an older epoch, then Endings"

TRANSITIONS: tuple[Transition, ...] = (
    *_moves("-", "pending blocked", "enqueue", "unique key free, parent not cancelled"),
    *_moves("blocked", "pending", "predecessor", "unmet_edges reaches 0"),
    *_moves("pending waiting", "running", "claim", "due, open, current epoch, no cancel, no hold"),
    *_moves("running", "running", "claim", "expired and Endings would give pending: direct takeover"),
    *_moves("running", "succeeded", "commit", "full fence, no open effect, result staged or sent"),
    *_moves("running", "pending failed cancelled uncertain", "fail", _FENCED),
    *_moves("running", "pending cancelled uncertain", "release", _FENCED),
    *_moves("running", "waiting failed cancelled uncertain", "wait", _FENCED),
    *_moves("running", "skipped cancelled uncertain", "skip", _FENCED),
    *_moves("running", "cancelled uncertain", "uncertain", _FENCED),
    *_moves("running", "cancelled uncertain", "acknowledge_cancel", "identity and a cancel request"),
    *_moves("running", "pending failed cancelled uncertain", "recover", _EXPIRED),
    *_moves("pending blocked waiting", "cancelled uncertain", "cancel", "an open effect keeps it uncertain"),
    *_moves("running", "running", "cancel", "the request is recorded, the holder acknowledges"),
    *_moves("uncertain", "uncertain", "cancel", "the request is recorded"),
    *_moves("pending blocked waiting", "failed uncertain", "recover", "deadline passed"),
    *_moves("pending blocked waiting", "uncertain", "doubt", "late evidence that an absent effect happened"),
    *_moves("uncertain", "cancelled failed pending", "resolve", "its last open matter is closed"),
    *_moves(
        "pending blocked waiting running uncertain",
        "cancelled uncertain",
        "force_cancel",
        "reason and state_version; an open effect keeps it uncertain",
    ),
    *_moves("failed cancelled skipped", "pending blocked", "retry", "key free, parent alive, deadline ahead"),
    *_moves("pending", "pending", "revise", "no open effect"),
    *_moves("blocked", "blocked", "revise", "no open effect"),
    *_moves("running", "running", "revise", "no open effect; the holder gets STALE_INPUT"),
    *_moves("waiting", "waiting", "revise", "no open effect; an approval is asked anew"),
    *_moves("uncertain", "uncertain", "revise", "only by a ruling on a conflict"),
    *_moves("failed", "failed", "revise", "no open effect"),
    *_moves("cancelled", "cancelled", "revise", "no open effect"),
    *_moves("skipped", "skipped", "revise", "no open effect"),
)


def sources(verb: str, target: JobStatus | None = None) -> frozenset[JobStatus]:
    """Return the statuses that `verb` may start from, to `target` or to any."""
    return frozenset(
        t.source
        for t in TRANSITIONS
        if t.verb == verb and t.source is not None and target in (None, t.target)
    )


def targets(source: JobStatus | None, verb: str) -> frozenset[JobStatus]:
    """Return where `verb` may take a job that is in `source`; empty means the verb is refused there."""
    return frozenset(t.target for t in TRANSITIONS if t.source == source and t.verb == verb)


def verbs(source: JobStatus) -> frozenset[str]:
    """Return the verbs that are legal from `source`, for buttons and help texts."""
    return frozenset(t.verb for t in TRANSITIONS if t.source == source)


# The sets that the ledger's statements name, read off the table.
CLAIMABLE = sources("claim") - {JobStatus.RUNNING}
IDLE = sources("cancel", JobStatus.CANCELLED)
"""Nobody runs it: a cancel or a passed deadline ends it at once."""
REQUESTABLE = sources("cancel") - IDLE
"""A cancel is only requested: somebody runs it, or an effect is open."""
RETRYABLE = sources("retry")
REVISABLE = sources("revise") - {JobStatus.UNCERTAIN}
"""An uncertain job is revised by a ruling only."""
