"""The statements of a holder: each predicate of the fence falsified alone, with its boundaries."""

from __future__ import annotations

import uuid

from jobs import canon
from jobs.effect_kinds import EffectKind
from jobs.ledger.fence import VERBS
from jobs.models import Job
from jobs.outcomes import Outcome
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Word
from jobs.vocabulary import JOB
from tests import build
from tests.build import TICK, at
from tests.matrix.trial import UNCHANGED, Case, Statement, Trial, deadline, edited, instant, token

V = Job.objects


def _cancel(trial: Trial) -> None:
    V.cancel(build.id_of(trial.lease), actor="someone", reason="stop", now=at(5))


CASES: dict[str, tuple[Case, ...]] = {
    "status": (
        Case(
            "status",
            "not running, all else as it was",
            edited(status="uncertain"),
            "STATUS",
            ("job_running_has_lease",),
        ),
    ),
    "attempt_id": (Case("attempt_id", "another attempt", token(attempt_id=uuid.uuid4().hex), "ATTEMPT"),),
    "generation": (
        Case("generation", "one less", token(generation=0), "GENERATION"),
        Case("generation", "one more", token(generation=2), "GENERATION"),
    ),
    "worker_id": (Case("worker_id", "another worker", token(worker_id=build.RIVAL), "OWNER"),),
    "row_epoch": (Case("row_epoch", "the row's alone", edited(scheduler_epoch=2), "EPOCH"),),
    "epoch": (Case("epoch", "raised", lambda trial: build.raise_epoch(), "EPOCH"),),
    "cancel": (
        Case("cancel", "requested", _cancel, "CANCELLED"),
        Case("cancel", "a number of the future", token(cancel_generation=1), "CANCELLED"),
    ),
    "revision": (
        Case("revision", "one more", token(revision=2), "STALE_INPUT"),
        Case("revision", "one less", token(revision=0), "STALE_INPUT"),
    ),
    "input_digest": (Case("input_digest", "another", token(input_digest="0" * 64), "STALE_INPUT"),),
    "lease": (
        Case("lease", "one tick left", instant(at(60) - TICK)),
        Case("lease", "ends now", instant(at(60)), "LEASE_EXPIRED"),
        Case("lease", "ended a tick ago", instant(at(60) + TICK), "LEASE_EXPIRED"),
    ),
    "deadline": (
        Case("deadline", "one tick left", deadline(1)),
        Case("deadline", "is now", deadline(0), "DEADLINE"),
        Case("deadline", "passed a tick ago", deadline(-1), "DEADLINE"),
    ),
    "hold": (Case("hold", "held", lambda trial: build.hold(trial.lease), "HELD"),),
    "open_effects": (
        Case("open_effects", "one unknown", lambda trial: build.effect(trial.lease), "EFFECT_UNRESOLVED"),
        Case("open_effects", "one committed", lambda trial: build.effect(trial.lease, status="committed")),
    ),
    "cancel_requested": (),
}


def _running() -> Trial:
    return Trial(build.running(), at(30))


def _told(outcome: Outcome) -> str:
    return "" if outcome.landed else outcome.reason


def _of(verb: str, *more: Case) -> tuple[Case, ...]:
    return (UNCHANGED, *(case for guard in VERBS[verb] for case in CASES[guard.name]), *more)


def _fenced(trial: Trial) -> None:
    build.fenced_worker(build.WORKER)


def _staged() -> Trial:
    trial = _running()
    outcome = V.stage(trial.lease, {"ok": 1}, now=at(10))
    trial.given["digest"] = outcome.result_digest
    return trial


def _commit(trial: Trial) -> str:
    return _told(V.commit(trial.lease, {"ok": 1}, now=trial.now))


def _commit_staged(trial: Trial) -> str:
    return _told(V.commit(trial.lease, staged_digest=trial.given["digest"], now=trial.now))


def _other_digest(trial: Trial) -> None:
    trial.given["digest"] = "0" * 64


def _cancelled() -> Trial:
    trial = _running()
    _cancel(trial)
    return trial


def _never_asked(trial: Trial) -> None:
    """The same job and token, but for the request."""
    fresh = _running()
    trial.lease = fresh.lease


def _effects() -> EffectRuntime:
    return EffectRuntime(JOB, hooks=HOOKS)


def _ask(approval: str) -> Ask:
    """What a handler asks for; a kind that is never registered will do."""
    kind = EffectKind("tests.effect", send=lambda request: None, replay="non_replayable", approval=approval)
    return Ask(kind, "send", "null", canon.digest("null"), None)


def _gate(trial: Trial) -> str:
    gate = _effects().gate(trial.lease, _ask("always"), grant_id=uuid.uuid4().hex, now=trial.now)
    assert gate.word in (Word.APPROVAL, Word.REFUSED)
    return _told(gate.outcome) if gate.outcome else ""


def _prepared() -> Trial:
    trial = _running()
    trial.given["slot"] = (
        _effects().gate(trial.lease, _ask("always"), grant_id=uuid.uuid4().hex, now=at(10)).slot
    )
    return trial


def _grant(trial: Trial) -> str:
    kind = _ask("never").kind
    gate = _effects().grant_again(
        trial.lease, trial.given["slot"], kind, grant_id=uuid.uuid4().hex, now=trial.now
    )
    assert gate.word in (Word.GRANTED, Word.REFUSED)
    return _told(gate.outcome) if gate.outcome else ""


HELD = (
    Statement("prepare", _running, _gate, _of("prepare")),
    Statement("grant", _prepared, _grant, _of("grant")),
    Statement(
        "renew",
        _running,
        lambda t: _told(V.renew(t.lease, now=t.now)),
        _of(
            "renew",
            Case("worker", "fenced", _fenced, "LEASE_EXPIRED"),
            Case("worker", "known and not fenced", lambda trial: build.register(build.WORKER)),
        ),
    ),
    Statement("stage", _running, lambda t: _told(V.stage(t.lease, {"ok": 1}, now=t.now)), _of("stage")),
    Statement("commit", _running, _commit, _of("commit")),
    Statement(
        "commit of a staged result",
        _staged,
        _commit_staged,
        (UNCHANGED, Case("staged", "another digest", _other_digest, "NOT_STAGED")),
    ),
    Statement("end", _running, lambda t: _told(V.release(t.lease, now=t.now)), _of("end")),
    Statement(
        "acknowledge_cancel",
        _cancelled,
        lambda t: _told(V.acknowledge_cancel(t.lease, now=t.now)),
        (
            *_of("acknowledge_cancel"),
            Case("cancel_requested", "never asked", _never_asked, "STATUS"),
            Case("lease", "ended long ago: giving up is always safe", instant(at(60) + TICK)),
            Case("epoch", "raised: giving up is always safe", lambda trial: build.raise_epoch()),
        ),
    ),
)
