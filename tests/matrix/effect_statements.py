"""The statements on effect slots: each predicate falsified alone, with its boundaries."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction

from jobs.ledger import reports, slots
from jobs.ledger.session import Session, transact
from jobs.status import EffectStatus, JobStatus
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.vocabulary import JOB
from tests import build
from tests.build import TICK, at
from tests.matrix.rows import edit_row
from tests.matrix.trial import UNCHANGED, Case, Change, Statement, Trial, edited, given

OTHER = uuid.UUID(int=1)


def _effects() -> EffectRuntime:
    return EffectRuntime(JOB, hooks=HOOKS)


def _slot(**columns: Any) -> Change:
    return edit_row("effect", **columns)


def _with(status: str, *, job: JobStatus = JobStatus.RUNNING, **columns: Any) -> Trial:
    trial = Trial(build.running(), at(30))
    trial.given["effect"] = build.effect(trial.lease, status=status, **columns)
    build.end(trial.lease, job)
    trial.given["slot"] = _effects().read(trial.given["effect"], now=at(20))
    return trial


def _executing() -> Trial:
    trial = _with("executing")
    trial.given |= {"attempt": trial.lease.attempt_id, "grant": trial.given["slot"].grant_id}
    return trial


def _report(trial: Trial) -> str:
    done = _effects().report(
        trial.given["effect"],
        attempt_id=trial.given["attempt"],
        grant_id=trial.given["grant"],
        status=EffectStatus.COMMITTED,
        response="1",
        now=trial.now,
    )
    return "" if done else "LATE"


def _unknown() -> Trial:
    trial = _with("unknown", job=JobStatus.UNCERTAIN, replay="queryable", inquirable=True)
    trial.given["asked"] = at(25)
    return trial


def _settled() -> Trial:
    ended = {"settle_seconds": 10, "sender_ended_at": at(5)}
    trial = _with("unknown", job=JobStatus.UNCERTAIN, replay="queryable", inquirable=True, **ended)
    trial.given["asked"] = at(25)
    return trial


def _resolve(trial: Trial, *, found: bool) -> str:
    done = _effects().resolve(trial.given["slot"], found=found, asked=trial.given["asked"], now=trial.now)
    return "" if done else "EVIDENCE"


def _grant(trial: Trial) -> str:
    def work(session: Session) -> bool:
        session.lock([trial.lease.job_id])
        try:
            with transaction.atomic():
                return slots.grant(
                    session, trial.lease.token(), trial.given["slot"], grant_id=OTHER, needs_approval=False
                )
        except slots.NotGranted:
            return False

    return "" if transact(work, using="default", vocabulary=JOB, now=trial.now) else "NOT_GRANTED"


def _closed() -> Trial:
    """An uncertain job whose only open matter has just been closed."""
    trial = _with("unknown", job=JobStatus.UNCERTAIN)
    _slot(status="absent")(trial)
    build.edit(trial.lease, open_effects=0)
    return trial


def _move_on(trial: Trial) -> str:
    def work(session: Session) -> Any:
        session.lock([trial.lease.job_id])
        return reports.resolve_job(session, trial.lease.job_id)

    return "" if transact(work, using="default", vocabulary=JOB, now=trial.now) else "NOT_YET"


MOVED = (
    Case("version", "another one by now", _slot(version=9), "EVIDENCE"),
    Case("status", "settled meanwhile", _slot(status="absent"), "EVIDENCE"),
)

EFFECTS = (
    Statement(
        "report",
        _executing,
        _report,
        (
            UNCHANGED,
            Case("status", "open still, its attempt over", _slot(status="unknown")),
            Case("status", "closed meanwhile", _slot(status="absent"), "LATE"),
            Case("attempt", "another attempt's", given(attempt=OTHER.hex), "LATE"),
            Case("grant", "an earlier grant's", given(grant=OTHER.hex), "LATE"),
        ),
    ),
    Statement("found", _unknown, lambda t: _resolve(t, found=True), (UNCHANGED, *MOVED)),
    Statement(
        "missed",
        _settled,
        lambda t: _resolve(t, found=False),
        (
            UNCHANGED,
            *MOVED,
            Case("settled", "asked when it has just settled", given(asked=at(15))),
            Case("settled", "asked a tick too early", given(asked=at(15) - TICK), "EVIDENCE"),
            Case("settled", "a provider that never settles", _slot(settle_seconds=None), "EVIDENCE"),
            Case("settled", "a sender that may still send", _slot(sender_ended_at=None), "EVIDENCE"),
        ),
    ),
    Statement(
        "grant of a slot",
        lambda: _with("prepared", grants=0),
        _grant,
        (
            UNCHANGED,
            Case("version", "another one by now", _slot(version=9), "NOT_GRANTED"),
            Case("conflict", "another payload was brought", _slot(in_conflict=True), "NOT_GRANTED"),
            Case("status", "known not to have happened", _slot(status="absent")),
            Case("status", "sent, and nobody knows", _slot(status="unknown"), "NOT_GRANTED"),
            Case(
                "status",
                "the same where the key is honoured",
                _slot(status="unknown", replay="idempotent"),
            ),
            Case("status", "closed", _slot(status="abandoned"), "NOT_GRANTED"),
            Case("key", "valid for a tick", _slot(key_valid_until=at(30) + TICK)),
            Case("key", "runs out now", _slot(key_valid_until=at(30)), "NOT_GRANTED"),
        ),
    ),
    Statement(
        "resolve",
        _closed,
        _move_on,
        (
            UNCHANGED,
            Case("open_effects", "another one open", edited(open_effects=1), "NOT_YET"),
            Case("conflict", "two payloads for one key", _slot(in_conflict=True), "NOT_YET"),
            Case(
                "status",
                "not uncertain",
                edited(status="blocked", unmet_edges=1),
                "NOT_YET",
                ("job_claimable_has_attempts_left",),
            ),
        ),
    ),
)
