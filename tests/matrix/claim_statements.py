"""Claims, takeover and promotion: each predicate falsified alone, with its boundaries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection

from jobs.ledger import claim as claims
from jobs.models import Job, Scheduler
from jobs.status import JobStatus
from tests import build
from tests.build import KIND, QUEUE, RIVAL, TICK, at
from tests.matrix.trial import (
    NOTHING,
    UNCHANGED,
    Case,
    Change,
    Statement,
    Trial,
    deadline,
    edited,
    given,
    instant,
    of,
)

V = Job.objects
BY: dict[str, Any] = {"actor": "someone", "reason": "because"}


def _clock(ahead: timedelta) -> Change:
    """Set the scheduler's high-water mark relative to T."""

    def change(trial: Trial) -> None:
        field: Any = Scheduler._meta.get_field("clock_high_water")
        with connection.cursor() as cursor:
            mark = field.get_db_prep_save(trial.now + ahead, connection)
            cursor.execute("UPDATE jobs_scheduler SET clock_high_water = %s", [mark])

    return change


def _pause(*, ticks: int | None = None, queue: str = QUEUE) -> Change:
    def change(trial: Trial) -> None:
        until = None if ticks is None else trial.now + ticks * TICK
        V.pause_queue(queue, until=until, **BY, now=at(2))

    return change


def _ready(ticks: int) -> Change:
    def change(trial: Trial) -> None:
        moment = trial.now + ticks * TICK
        build.edit(trial.lease, next_attempt_at=moment, ready_at=moment)

    return change


def _lease_lives_on(trial: Trial) -> None:
    """Take a lease that has not run out, of an epoch that is over."""
    trial.now = at(30)
    trial.given["epoch"] = build.raise_epoch()


def _resumed(trial: Trial) -> None:
    V.pause_queue(QUEUE, **BY, now=at(2))
    V.resume_queue(QUEUE, **BY, now=at(3))


def _effect(**columns: Any) -> Change:
    return lambda trial: build.effect(trial.lease, **columns)


OPEN = (
    Case("open", "an epoch of before a raise", given(epoch=0), NOTHING),
    Case("open", "an epoch of the future", given(epoch=2), NOTHING),
    Case("open", "claims closed", lambda t: V.close_claims(**BY, now=at(2)), NOTHING),
    Case("open", "the clock a second behind its mark", _clock(timedelta(seconds=1))),
    Case("open", "the clock a second and a tick behind", _clock(timedelta(seconds=1) + TICK), NOTHING),
    Case("worker", "fenced", lambda t: build.fenced_worker(RIVAL), NOTHING),
    Case("worker", "known and not fenced", lambda t: build.register(RIVAL)),
    Case("worker", "another one fenced", lambda t: build.fenced_worker(build.WORKER)),
    Case("queue open", "paused", _pause(), NOTHING),
    Case("queue open", "paused for a tick more", _pause(ticks=1), NOTHING),
    Case("queue open", "paused until now", _pause(ticks=0)),
    Case("queue open", "resumed", _resumed),
    Case("queue open", "another one paused", _pause(queue="other")),
    Case("deadline", "one tick left", deadline(1)),
    Case("deadline", "is now", deadline(0), NOTHING),
)
FREE = (
    *OPEN,
    Case("status", "not claimable", edited(status="uncertain"), NOTHING, ("job_ready_is_claimable",)),
    Case("ready_at", "is now", _ready(0)),
    Case("ready_at", "a tick ahead", _ready(1), NOTHING),
    Case(
        "cancel",
        "requested",
        edited(cancel_requested_at=at(5), cancel_generation=1),
        NOTHING,
        ("job_cancel_requested_not_idle",),
    ),
    Case("hold", "held", edited(hold_reason="operator"), NOTHING, ("job_ready_is_claimable",)),
)
SOUGHT = (
    Case("queue", "another", given(queue="other"), NOTHING),
    Case("kind", "unknown to the worker", given(kinds=["tests.strange"]), NOTHING),
)
EXPIRED = (
    Case("status", "not running", edited(status="uncertain"), NOTHING, ("job_running_has_lease",)),
    Case("expired", "one tick left", instant(at(60) - TICK), NOTHING),
    Case("expired", "a tick ago", instant(at(60) + TICK)),
    Case("expired", "not run out, but of an older epoch", _lease_lives_on),
)
TAKEOVER = (
    *OPEN,
    *EXPIRED,
    Case("budget", "used", edited(max_attempts=1), NOTHING),
    Case("budget", "one attempt left", edited(max_attempts=2)),
    Case("person", "an open effect for a person", _effect(replay="non_replayable"), NOTHING),
    Case("person", "an open effect with an inquiry", _effect(replay="queryable")),
    Case("cancel", "requested", lambda t: V.cancel(build.id_of(t.lease), **BY, now=at(5)), NOTHING),
    Case("hold", "held", lambda t: build.hold(t.lease), NOTHING),
)
DUE = (
    UNCHANGED,
    Case("ready_at", "set already", edited(ready_at=at(5)), NOTHING),
    Case("status", "not claimable", edited(status="uncertain"), NOTHING, ("job_waiting_has_reason",)),
    Case("hold", "held", edited(hold_reason="operator"), NOTHING),
    Case("due", "is now", instant(at(11))),
    Case("due", "a tick ahead", instant(at(11) - TICK), NOTHING),
)


def _claim(trial: Trial) -> str:
    kinds = trial.given.get("kinds", [KIND])
    queues = [trial.given.get("queue", QUEUE)]
    epoch = trial.given.get("epoch", 1)
    taken = V.claim(worker_id=RIVAL, queues=queues, kinds=kinds, epoch=epoch, now=trial.now)
    return "" if taken else NOTHING


def _claim_of_two(trial: Trial) -> str:
    trial.given["kinds"] = ["tests.other", *trial.given.get("kinds", [KIND])]
    return _claim(trial)


def _claim_job(trial: Trial) -> str:
    epoch = trial.given.get("epoch", 1)
    lease = V.claim_job(build.id_of(trial.lease), worker_id=RIVAL, epoch=epoch, now=trial.now)
    return "" if lease else NOTHING


def _claim_id(takeover: bool) -> Any:
    """Run the claim statement itself: what was seen before the lock may have changed."""

    def run(trial: Trial) -> str:
        key, epoch = build.id_of(trial.lease), trial.given.get("epoch", 1)
        taken = build.ledger(
            lambda s: claims.claim_id(s, key, worker=RIVAL, epoch=epoch, ttl=60, takeover=takeover),
            now=trial.now,
        )
        return "" if taken else NOTHING

    return run


def _promote(trial: Trial) -> str:
    return "" if build.ledger(lambda s: claims.promote(s, limit=10), now=trial.now) else NOTHING


def _promote_id(trial: Trial) -> str:
    build.ledger(lambda s: claims.promote_id(s, build.id_of(trial.lease)), now=trial.now)
    return "" if build.row(trial.lease)["ready_at"] == at(11) else NOTHING


def _expired() -> Trial:
    return Trial(build.running(), at(60))


CLAIMS = (
    Statement("claim", of(JobStatus.PENDING), _claim, (UNCHANGED, *FREE, *SOUGHT)),
    Statement("claim for two kinds", of(JobStatus.PENDING), _claim_of_two, (UNCHANGED, *FREE, *SOUGHT)),
    Statement("claim_job", of(JobStatus.PENDING), _claim_job, (UNCHANGED, *FREE)),
    Statement("claim by id", of(JobStatus.PENDING), _claim_id(False), (UNCHANGED, *FREE)),
    Statement("claim_job of an expired job", _expired, _claim_job, (UNCHANGED, *TAKEOVER)),
    Statement("takeover", _expired, _claim_id(True), (UNCHANGED, *TAKEOVER)),
    Statement("promote", of(JobStatus.WAITING), _promote, DUE),
    Statement("promote by id", of(JobStatus.WAITING), _promote_id, DUE),
)
