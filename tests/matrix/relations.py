"""Every relation that a token can be in to its row: what a worker may hold when the world has moved on.

Each relation takes a status, builds a coherent job and returns the token and the instant at which the verbs
are tried; None where the status cannot be in that relation (the constraints refuse it).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jobs.models import Job
from jobs.outcomes import Lease
from jobs.status import JobStatus
from tests import build
from tests.build import TICK, at

Cell = tuple[Lease, datetime] | None
Relation = Callable[[JobStatus], Cell]
RELATIONS: dict[str, Relation] = {}
ONLY_THE_TOKEN: set[str] = set()
"""Relations in which the row is as in `fresh`: a verb that is shown no token cannot tell them apart."""

NOW = at(30)
TERMINAL = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.SKIPPED}
IDLE = {JobStatus.PENDING, JobStatus.BLOCKED, JobStatus.WAITING}


def relation(function: Relation) -> Relation:
    RELATIONS[function.__name__] = function
    return function


def token_relation(function: Relation) -> Relation:
    ONLY_THE_TOKEN.add(function.__name__)
    return relation(function)


@relation
def fresh(status: JobStatus) -> Cell:
    return build.job(status), NOW


@token_relation
def stale_generation(status: JobStatus) -> Cell:
    lease = build.job(status)
    return lease._replace(generation=lease.generation - 1), NOW


@token_relation
def generation_of_the_future(status: JobStatus) -> Cell:
    lease = build.job(status)
    return lease._replace(generation=lease.generation + 1), NOW


@relation
def superseded(status: JobStatus) -> Cell:
    """A real second claim, after the first lease ran out."""
    old = build.running()
    new = build.claim(build.id_of(old), worker=build.RIVAL, now=at(60))
    build.end(new, status, now=at(61))
    return old, at(90)


@token_relation
def stale_attempt(status: JobStatus) -> Cell:
    """The generation was handed out twice: only the attempt id tells the owners apart."""
    return build.job(status)._replace(attempt_id=uuid.uuid4().hex), NOW


@token_relation
def wrong_owner(status: JobStatus) -> Cell:
    return build.job(status)._replace(worker_id=build.RIVAL), NOW


@relation
def old_epoch(status: JobStatus) -> Cell:
    lease = build.job(status)
    build.raise_epoch(now=at(2))
    return lease, NOW


@token_relation
def old_epoch_that_claims_the_new_one(status: JobStatus) -> Cell:
    lease = build.job(status)
    return lease._replace(epoch=build.raise_epoch(now=at(2))), NOW


@token_relation
def epoch_of_the_future(status: JobStatus) -> Cell:
    lease = build.job(status)
    return lease._replace(epoch=lease.epoch + 1), NOW


@relation
def one_tick_before_the_lease_ends(status: JobStatus) -> Cell:
    return (build.running(), at(60) - TICK) if status == JobStatus.RUNNING else None


@relation
def as_the_lease_ends(status: JobStatus) -> Cell:
    return build.job(status), at(60)


@relation
def one_tick_after_the_lease_ends(status: JobStatus) -> Cell:
    return (build.running(), at(60) + TICK) if status == JobStatus.RUNNING else None


@relation
def expired_on_the_last_attempt(status: JobStatus) -> Cell:
    return _spent(status, at(61))


@relation
def last_attempt(status: JobStatus) -> Cell:
    return _spent(status, NOW)


def _spent(status: JobStatus, now: datetime) -> Cell:
    return None if status in TERMINAL else (build.job(status, max_attempts=1), now)


@relation
def cancel_requested(status: JobStatus) -> Cell:
    if status not in (JobStatus.RUNNING, JobStatus.UNCERTAIN):
        return None
    lease = build.job(status)
    Job.objects.cancel(build.id_of(lease), actor="someone", reason="stop", now=at(5))
    return lease, NOW


@relation
def cancel_requested_and_told(status: JobStatus) -> Cell:
    cell = cancel_requested(status)
    return cell and (cell[0].told_cancel(1), NOW)


@relation
def cancel_requested_and_expired(status: JobStatus) -> Cell:
    cell = cancel_requested(status)
    return cell and (cell[0], at(61))


@relation
def cancel_requested_with_an_open_effect(status: JobStatus) -> Cell:
    cell = cancel_requested(status)
    if cell:
        build.effect(cell[0])
    return cell


@token_relation
def other_digest(status: JobStatus) -> Cell:
    return build.job(status)._replace(input_digest="f" * 64), NOW


@token_relation
def other_revision(status: JobStatus) -> Cell:
    lease = build.job(status)
    return lease._replace(revision=lease.revision + 1), NOW


@relation
def revised(status: JobStatus) -> Cell:
    if status in (JobStatus.UNCERTAIN, JobStatus.SUCCEEDED):
        return None
    lease = build.job(status)
    version = build.row(lease)["state_version"]
    who = {"actor": "someone", "reason": "better", "state_version": version}
    Job.objects.revise(build.id_of(lease), {"x": 2}, **who, now=at(5))
    return lease, NOW


@relation
def one_tick_before_the_deadline(status: JobStatus) -> Cell:
    return build.job(status, deadline=50), at(50) - TICK


@relation
def as_the_deadline_comes(status: JobStatus) -> Cell:
    return build.job(status, deadline=50), at(50)


@relation
def one_tick_after_the_deadline(status: JobStatus) -> Cell:
    return build.job(status, deadline=50), at(50) + TICK


@relation
def deadline_drawn_nearer_by_hand(status: JobStatus) -> Cell:
    """The lease is good, the deadline is not: no verb makes this, so that TIME's second half stands alone."""
    lease = build.job(status)
    build.edit(lease, deadline_at=NOW)
    return lease, NOW


@relation
def held(status: JobStatus) -> Cell:
    return None if status == JobStatus.SUCCEEDED else (build.job(status, held=True), NOW)


@relation
def held_and_expired(status: JobStatus) -> Cell:
    return (build.job(status, held=True), at(61)) if status == JobStatus.RUNNING else None


@relation
def quarantined_and_expired(status: JobStatus) -> Cell:
    if status in TERMINAL:
        return None
    lease = build.job(status)
    build.edit(lease, hold_reason="quarantine", ready_at=None)
    return lease, at(61)


@relation
def quarantined_as_the_deadline_comes(status: JobStatus) -> Cell:
    if status not in IDLE:
        return None
    lease = build.job(status, deadline=50)
    build.edit(lease, hold_reason="quarantine", ready_at=None)
    return lease, at(50)


@relation
def open_effect(status: JobStatus) -> Cell:
    """One that an inquiry can settle."""
    return _with_effect(status, NOW)


@relation
def open_effect_and_expired(status: JobStatus) -> Cell:
    return _with_effect(status, at(61))


@relation
def open_effect_as_the_deadline_comes(status: JobStatus) -> Cell:
    return _with_effect(status, at(50), deadline=50)


@relation
def open_effect_on_the_last_attempt(status: JobStatus) -> Cell:
    return _with_effect(status, at(61), max_attempts=1)


def _with_effect(status: JobStatus, now: datetime, **options: Any) -> Cell:
    if status in TERMINAL:
        return None
    lease = build.job(status, **options)
    sending = "executing" if status == JobStatus.RUNNING else "unknown"
    build.effect(lease, status=sending, replay="queryable")
    return lease, now


@relation
def open_effect_for_a_person(status: JobStatus) -> Cell:
    return _with_a_persons_effect(status, NOW)


@relation
def open_effect_for_a_person_and_expired(status: JobStatus) -> Cell:
    return _with_a_persons_effect(status, at(61))


def _with_a_persons_effect(status: JobStatus, now: datetime) -> Cell:
    if status in TERMINAL:
        return None
    lease = build.job(status)
    build.effect(lease, replay="non_replayable")
    return lease, now


@relation
def uncertain_with_nothing_open(status: JobStatus) -> Cell:
    """As after the last matter was closed by a door that has not moved the job on yet."""
    if status != JobStatus.UNCERTAIN:
        return None
    lease = build.job(status)
    build.edit(lease, open_effects=0)
    return lease, NOW


@relation
def prepared_effect(status: JobStatus) -> Cell:
    """Certainly not sent: an ending closes it."""
    if status in TERMINAL:
        return None
    lease = build.job(status)
    build.effect(lease, status="prepared", grants=0)
    return lease, NOW


@relation
def waited_too_long(status: JobStatus) -> Cell:
    if status != JobStatus.RUNNING:
        return None
    lease = build.running()
    build.edit(lease, wait_ends_at=NOW)
    return lease, NOW


@relation
def staged(status: JobStatus) -> Cell:
    lease = build.running()
    assert Job.objects.stage(lease, {"ok": 1}, now=at(0.5)).landed
    build.end(lease, status)
    return lease, NOW


@relation
def not_due_yet(status: JobStatus) -> Cell:
    if status not in (JobStatus.PENDING, JobStatus.WAITING):
        return None
    lease = build.job(status)
    build.edit(lease, next_attempt_at=NOW + TICK, ready_at=None)
    return lease, NOW


@relation
def due_now(status: JobStatus) -> Cell:
    if status not in (JobStatus.PENDING, JobStatus.WAITING):
        return None
    lease = build.job(status)
    build.edit(lease, next_attempt_at=NOW, ready_at=None)
    return lease, NOW


@relation
def waiting_for_approval(status: JobStatus) -> Cell:
    if status != JobStatus.WAITING:
        return None
    lease = build.running()
    build.end_waiting_for_approval(lease)
    return lease, NOW


@relation
def claims_closed(status: JobStatus) -> Cell:
    lease = build.job(status)
    Job.objects.close_claims(actor="someone", reason="drill", now=at(2))
    return lease, NOW


@relation
def claims_closed_and_expired(status: JobStatus) -> Cell:
    cell = claims_closed(status) if status == JobStatus.RUNNING else None
    return cell and (cell[0], at(61))


@relation
def predecessors_unmet(status: JobStatus) -> Cell:
    if status not in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.SKIPPED):
        return None
    lease = build.job(status)
    build.edit(lease, unmet_edges=1)
    return lease, NOW


@relation
def no_such_job(status: JobStatus) -> Cell:
    if status != JobStatus.RUNNING:
        return None
    return build.job(status)._replace(job_id=uuid.uuid4().hex), NOW
