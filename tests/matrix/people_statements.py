"""Recovery and a person's statements: each predicate falsified alone, with its boundaries.

The ending statement is run as it is, because what was seen before the lock may have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.ledger import cancel as people
from jobs.ledger import settle
from jobs.ledger.session import Session
from jobs.models import Job
from jobs.status import JobStatus
from tests import build
from tests.build import TICK, at
from tests.matrix.claim_statements import EXPIRED
from tests.matrix.trial import (
    NOTHING,
    UNCHANGED,
    Case,
    Change,
    Statement,
    Trial,
    another,
    edited,
    given,
    instant,
    of,
)

V = Job.objects
BY: dict[str, Any] = {"actor": "someone", "reason": "because"}


def _ledger(work: Callable[[Session, Trial, int], Any]) -> Callable[[Trial], str]:
    def run(trial: Trial) -> str:
        version = trial.given.get("state_version", build.row(trial.lease)["state_version"])
        return "" if build.ledger(lambda s: work(s, trial, version), now=trial.now) else NOTHING

    return run


def _end(fenced_by: str, **asked: Any) -> Callable[[Trial], str]:
    def work(session: Session, trial: Trial, version: int) -> Any:
        row = {
            "id": trial.lease.job_id,
            "attempt_id": trial.lease.attempt_id,
            "generation": trial.lease.generation,
            "state_version": version,
            "wish": "cancelled",
            "retry": 0,
            "excused": 0,
            "bump": 0,
            "forced": 0,
            "delay": None,
            "at_once": 0,
            "wait_reason": "",
            "error_code": "X",
            "error_message": "",
            "spent_code": "",
            **BY,
        }
        return settle.end(session, [row | asked | trial.given], fenced_by=fenced_by)

    return _ledger(work)


def _other_version(trial: Trial) -> None:
    trial.given["state_version"] = build.row(trial.lease)["state_version"] + 1


def _effect(status: str, **columns: Any) -> Change:
    return lambda trial: build.effect(trial.lease, status=status, **columns)


def _expired() -> Trial:
    return Trial(build.running(), at(60))


UNCERTAIN = edited(status="uncertain", wait_reason="")
ENDED = edited(status="failed", open_effects=0, finished_at=at(2))
VERSION = Case("state_version", "another", _other_version, NOTHING)

PEOPLE = (
    Statement(
        "recover",
        _expired,
        _end("expired", wish="pending", retry=1, bump=1, delay=0.0, at_once=1),
        (
            UNCHANGED,
            *EXPIRED,
            Case("generation", "another claim meanwhile", given(generation=2), NOTHING),
            Case("quarantine", "set apart", edited(hold_reason="quarantine"), NOTHING),
            Case("quarantine", "held by a person", edited(hold_reason="operator")),
        ),
    ),
    Statement(
        "cancel of an idle job",
        of(JobStatus.WAITING),
        _end("idle", forced=1),
        (UNCHANGED, Case("status", "not idle", UNCERTAIN, NOTHING)),
    ),
    Statement(
        "deadline of an idle job",
        lambda: Trial(build.job(JobStatus.WAITING, deadline=40), at(40)),
        _end("past_deadline", wish="failed"),
        (
            UNCHANGED,
            Case("deadline", "one tick left", instant(at(40) - TICK), NOTHING),
            Case("deadline", "a tick ago", instant(at(40) + TICK)),
            Case("status", "not idle", UNCERTAIN, NOTHING),
        ),
    ),
    Statement(
        "force_cancel",
        of(JobStatus.UNCERTAIN),
        _end("unfinished", forced=1, bump=1),
        (UNCHANGED, VERSION, Case("status", "ended", ENDED, NOTHING)),
    ),
    Statement(
        "retry",
        of(JobStatus.FAILED, deadline=40),
        _ledger(lambda s, t, version: people.retry(s, build.id_of(t.lease), state_version=version)),
        (
            UNCHANGED,
            VERSION,
            Case("status", "not ended", another(JobStatus.PENDING), NOTHING),
            Case("status", "succeeded", another(JobStatus.SUCCEEDED), NOTHING),
            Case("deadline", "one tick left", instant(at(40) - TICK)),
            Case("deadline", "is now", instant(at(40)), NOTHING),
            Case("abandoned", "an effect that may have been sent", _effect("abandoned"), NOTHING),
            Case(
                "abandoned", "an effect that took place", lambda t: build.effect(t.lease, status="committed")
            ),
            Case("abandoned", "an effect never sent", _effect("abandoned", grants=0)),
            Case("abandoned", "an effect of an earlier revision", _effect("abandoned", revision=0)),
        ),
    ),
    Statement(
        "revise",
        of(JobStatus.WAITING),
        _ledger(
            lambda s, t, version: people.revise(
                s, build.id_of(t.lease), text="{}", digest="0" * 64, state_version=version
            )
        ),
        (
            UNCHANGED,
            VERSION,
            Case("status", "succeeded", another(JobStatus.SUCCEEDED), NOTHING),
            Case("status", "uncertain", UNCERTAIN, NOTHING),
            Case("open_effects", "one", _effect("unknown"), NOTHING),
        ),
    ),
    Statement(
        "cancel request",
        of(JobStatus.RUNNING),
        _ledger(lambda s, t, version: people.request(s, [t.lease.job_id], **BY)),
        (
            UNCHANGED,
            Case("status", "uncertain", another(JobStatus.UNCERTAIN)),
            Case("status", "ended", another(JobStatus.FAILED), NOTHING),
            Case("first", "asked before", lambda t: V.cancel(build.id_of(t.lease), **BY, now=at(5)), NOTHING),
        ),
    ),
    Statement(
        "hold",
        of(JobStatus.WAITING),
        _ledger(lambda s, t, version: people.hold(s, build.id_of(t.lease), "operator", seen=version)),
        (
            UNCHANGED,
            VERSION,
            Case("hold", "held so", lambda t: build.hold(t.lease), NOTHING),
            Case("hold", "held otherwise", edited(hold_reason="quarantine")),
            Case("status", "ended", another(JobStatus.FAILED), NOTHING),
        ),
    ),
)
