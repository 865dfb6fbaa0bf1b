"""The scheduler's row, queues, workers and attempts: each predicate falsified alone, with its boundaries."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from jobs.ledger import cancel, drills, epoch, settle, timeline
from jobs.ledger import worker as workers
from jobs.ledger.session import Session
from jobs.models import Job
from jobs.status import JobStatus
from tests import build
from tests.build import QUEUE, TICK, WORKER, at
from tests.matrix.rows import another_row, edit_row, writes
from tests.matrix.trial import NOTHING, UNCHANGED, Case, Change, Statement, Trial, another, edited, given

OTHER = uuid.UUID(int=1)
BY: dict[str, Any] = {"actor": "someone", "reason": "because"}
DAY = 86400


def _scheduler(*, claims_open: bool = True) -> Callable[[], Trial]:
    def make() -> Trial:
        trial = Trial(build.running(), at(30), {"scheduler": 1, "expected": 1, "claims_open": True})
        edit_row("scheduler", claims_open=claims_open)(trial)
        return trial

    return make


def _raise(session: Session, asked: dict[str, Any]) -> None:
    epoch.raise_epoch(session, expected=asked["expected"], floor=0, claims_open=None, **BY)


def _set_claims(session: Session, asked: dict[str, Any]) -> None:
    epoch.set_claims(session, claims_open=asked["claims_open"], **BY)


def _clock(ticks: int, **columns: Any) -> Change:
    """Let claims be open, and the clock's mark a second and some ticks ahead."""
    return edit_row("scheduler", claims_open=True, clock_high_water=at(31) + ticks * TICK, **columns)


def _paused() -> Trial:
    trial = Trial(build.running(), at(30), {"queue": QUEUE})
    Job.objects.pause_queue(QUEUE, until=None, **BY, now=at(2))
    return trial


def _worker(beat: float = 0, **columns: Any) -> Callable[[], Trial]:
    def make() -> Trial:
        trial = Trial(build.running(), at(30), {"worker": WORKER})
        build.register(WORKER)
        edit_row("worker", beat_at=at(beat), **columns)(trial)
        return trial

    return make


def _attempt() -> Trial:
    trial = Trial(build.running(), at(30))
    return Trial(trial.lease, at(30), {"attempt": uuid.UUID(trial.lease.attempt_id)})


def _drill() -> Trial:
    trial = Trial(build.running(), at(30))
    trial.given["drill"] = build.ledger(lambda s: drills.begin(s, kind="zombie", by="ann"), now=at(2))
    return trial


CLOSING = {"result": "1", "result_digest": "0" * 64, "status": "committed", "log": None} | dict.fromkeys(
    ("error_code", "error_message", "traceback"), ""
)
NOTE = {"beats": 1, "log": None} | dict.fromkeys(("progress_done", "progress_total", "progress_note"), None)


def _end_leases(trial: Trial) -> str:
    return "" if build.ledger(lambda s: workers.end_leases(s, trial.given["id"])) else NOTHING


def _fenced() -> Trial:
    trial = _worker(fenced_at=at(20), fenced_by="ann")()
    trial.given["id"] = WORKER
    return trial


def _attempts(name: str, text: str, rows: str, values: dict[str, Any]) -> Statement:
    def run(session: Session, asked: dict[str, Any]) -> None:
        session.run(getattr(settle, text), {rows: [values | {"attempt_id": asked["attempt"].hex}]})

    ended = edit_row("attempt", status="failed", finished_at=at(3), error_code="X")
    return Statement(
        name,
        _attempt,
        writes(run),
        (
            UNCHANGED,
            Case("attempt", "another", another_row(attempt=OTHER), NOTHING),
            Case("status", "ended", ended, NOTHING),
        ),
    )


CLUSTER = (
    Statement(
        "raise",
        _scheduler(),
        writes(_raise),
        (UNCHANGED, Case("expected", "another epoch", given(expected=2), NOTHING)),
    ),
    Statement(
        "open or close claims",
        _scheduler(claims_open=False),
        writes(_set_claims),
        (
            UNCHANGED,
            Case("open", "open already", edit_row("scheduler", claims_open=True), NOTHING),
            Case("clock", "a tick further than a second ahead", _clock(1)),
            Case("clock", "a second ahead", _clock(0), NOTHING),
            Case("clock", "closed already", given(claims_open=False), NOTHING),
            Case(
                "clock",
                "closed already, the clock far ahead",
                lambda t: (given(claims_open=False)(t), edit_row("scheduler", clock_high_water=at(99))(t)),
                NOTHING,
            ),
        ),
    ),
    Statement(
        "keep a timeline",
        _scheduler(),
        writes(lambda s, t: timeline.keep(s, "1/2/3")),
        (UNCHANGED, Case("first", "kept before", edit_row("scheduler", timeline="1/1/1"), NOTHING)),
    ),
    Statement(
        "resume a queue",
        _paused,
        writes(lambda s, t: epoch.resume(s, t["queue"], **BY)),
        (
            UNCHANGED,
            Case("queue", "another", another_row(queue="another"), NOTHING),
            Case("paused", "open", edit_row("queue", paused_at=None, paused_by=""), NOTHING),
        ),
    ),
    Statement(
        "fence a worker",
        _worker(),
        writes(lambda s, t: workers.fence(s, t["worker"], actor="ann")),
        (
            UNCHANGED,
            Case("worker", "another", another_row(worker="another"), NOTHING),
            Case("first", "fenced before", edit_row("worker", fenced_at=at(5), fenced_by="ben"), NOTHING),
        ),
    ),
    Statement(
        "end a worker's leases",
        _fenced,
        _end_leases,
        (
            UNCHANGED,
            Case("worker", "another", edited(worker_id="another"), NOTHING),
            Case("lease", "ended then", edited(lease_expires_at=at(20)), NOTHING),
            Case("lease", "a tick left", edited(lease_expires_at=at(20) + TICK)),
        ),
    ),
    Statement(
        "forget workers",
        _worker(beat=29 - DAY),
        writes(lambda s, t: workers.prune(s)),
        (
            UNCHANGED,
            Case("beat", "heard of a day ago", edit_row("worker", beat_at=at(30 - DAY)), NOTHING),
            Case("fenced", "fenced, and not stopped", edit_row("worker", fenced_at=at(5)), NOTHING),
            Case("fenced", "fenced and stopped", edit_row("worker", fenced_at=at(5), stopped_at=at(6))),
        ),
    ),
    Statement(
        "hold many",
        lambda: Trial(build.job(JobStatus.WAITING), at(30)),
        lambda t: (
            ""
            if build.ledger(lambda s: cancel.hold_many(s, [t.given.get("id", t.lease.job_id)], "quarantine"))
            else NOTHING
        ),
        (
            UNCHANGED,
            Case("job", "another", given(id=OTHER), NOTHING),
            Case("hold", "held so", lambda t: build.hold(t.lease), NOTHING),
            Case("status", "ended", another(JobStatus.FAILED), NOTHING),
        ),
    ),
    Statement(
        "finish a drill",
        _drill,
        writes(lambda s, t: drills.finish(s, t["drill"], verdict="passed", tried=1, passed=1, record="null")),
        (
            UNCHANGED,
            Case("drill", "another", another_row(drill=0), NOTHING),
            Case("first", "finished", edit_row("drill", finished_at=at(3), verdict="stopped"), NOTHING),
        ),
    ),
    _attempts("close an attempt", "CLOSE_ATTEMPTS", "closings", CLOSING),
    _attempts("close a committed attempt", "CLOSE_COMMITTED", "leases", CLOSING),
    _attempts("stage on an attempt", "STAGE_ATTEMPTS", "closings", CLOSING),
    _attempts("note on an attempt", "NOTE_ATTEMPTS", "notes", NOTE),
)
