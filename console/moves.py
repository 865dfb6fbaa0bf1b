"""Where a job can go from where it is: the transition table, said in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.status import (
    REQUESTABLE,
    RETRYABLE,
    REVISABLE,
    TERMINAL,
    TRANSITIONS,
    HoldReason,
    JobStatus,
    verbs,
)

_ORDER = list(JobStatus)


@dataclass(frozen=True)
class Move:
    """One status that can be reached, and by what."""

    target: str
    ways: list[str]


def said(verb: str) -> str:
    """Return what brings a verb about."""
    return {
        "enqueue": _("it is enqueued"),
        "predecessor": _("its last predecessor commits"),
        "claim": _("a worker claims it"),
        "commit": _("its attempt commits a result"),
        "fail": _("its attempt fails"),
        "release": _("its worker gives it back"),
        "wait": _("its attempt waits for something"),
        "skip": _("its attempt finds nothing to do"),
        "uncertain": _("its attempt does not know what it did outside"),
        "acknowledge_cancel": _("its attempt stops on request"),
        "recover": _("its lease runs out or its deadline passes"),
        "doubt": _("late evidence says that an effect took place after all"),
        "cancel": _("a person cancels it"),
        "resolve": _("its last open effect is settled"),
        "force_cancel": _("a person force-cancels it"),
        "retry": _("a person retries it"),
        "revise": _("a person revises its input"),
    }.get(verb, verb)


def of(job: Job) -> list[Move]:
    """Return the statuses that the job can move to, with the ways there; staying where it is is no move."""
    ways: dict[str, list[str]] = {}
    for move in TRANSITIONS:
        if move.source == job.status and move.target != job.status and not _closed(job, move.verb):
            ways.setdefault(move.target, []).append(said(move.verb))
    if job.status == JobStatus.RUNNING:
        # Every ending leads there, so the table names them all; what they share is the reason.
        ways |= {JobStatus.UNCERTAIN: [_("its attempt ends while an outside effect is open")]}
        ways |= {
            JobStatus.CANCELLED: [_("its attempt ends after a cancel was asked for"), said("force_cancel")]
        }
        ways |= {JobStatus.FAILED: [_("its attempt fails for good, or the deadline passes")]}
    return [Move(target, list(dict.fromkeys(ways[target]))) for target in sorted(ways, key=_ORDER.index)]  # type: ignore[arg-type]


def by_people(job: Job) -> list[str]:
    """Return the verbs of people that would be accepted on the job as it is, gentlest first.

    A force cancel is offered only where a plain one waits for somebody; a second request changes nothing.
    """
    status = JobStatus(job.status)
    ended = status in TERMINAL
    possible = {
        "unhold": not ended and bool(job.hold_reason),
        "hold": not ended and not job.hold_reason,
        "retry": status in RETRYABLE and job.hold_reason != HoldReason.CONTRADICTION,
        "revise": status in REVISABLE and not job.open_effects,
        "cancel": "cancel" in verbs(status) and job.cancel_requested_at is None,
        "force_cancel": "force_cancel" in verbs(status) and status in REQUESTABLE,
    }
    return [verb for verb, yes in possible.items() if yes]


def _closed(job: Job, verb: str) -> bool:
    """Return whether this job's own row rules the verb out."""
    if verb == "acknowledge_cancel":
        return job.cancel_requested_at is None
    if verb == "claim":
        return bool(job.hold_reason)
    return False
