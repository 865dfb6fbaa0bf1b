"""Builds coherent rows of any status, at given instants, by the real verbs.

Only what no verb reaches yet (predecessors, effect slots) is written by hand, and so is what a test
breaks on purpose.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from jobs.handlers import Options
from jobs.hooks import effect_id
from jobs.ledger import triggers
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.models import Attempt, EffectSlot, Job, Scheduler
from jobs.outcomes import Lease
from jobs.status import JobStatus, WaitReason
from jobs.vocabulary import JOB

T0 = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
"""When built rows begin to live; every other instant is told in seconds after it."""
KIND = "tests.kind"
QUEUE = "default"
WORKER = "host:1:a"
RIVAL = "host:2:b"
TICK = timedelta(microseconds=1)


def at(seconds: float) -> datetime:
    """Return the instant `seconds` after T0."""
    return T0 + timedelta(seconds=seconds)


# -- jobs -------------------------------------------------------------------------------------------


def enqueue(arguments: dict[str, Any] | None = None, *, now: datetime = T0, **options: Any) -> uuid.UUID:
    """Enqueue a job of KIND and return its id; `options` are those of jobs.handlers.Options."""
    given: uuid.UUID = Job.objects.enqueue(KIND, arguments or {}, options=Options(**options), now=now).job_id
    return given


def options(**given: Any) -> Options:
    """Return the options of one enqueue."""
    return Options(**given)


def claim(
    job_id: uuid.UUID, *, worker: str = WORKER, now: datetime = T0, ttl: int = 60, **more: Any
) -> Lease:
    """Claim a due job by id, or fail."""
    lease = Job.objects.claim_job(job_id, worker_id=worker, ttl=ttl, now=now, **more)
    assert lease is not None, "the job could not be claimed"
    return lease


def running(*, now: datetime = T0, **options: Any) -> Lease:
    """Enqueue and claim one job; returns its lease of sixty seconds."""
    return claim(enqueue(now=now, **options), now=now)


def job(status: JobStatus, *, held: bool = False, **options: Any) -> Lease:
    """Build a job of any status that was claimed once, at T0; returns that claim's lease.

    It left `running` one second after T0. `held` puts it on hold while it runs.
    """
    lease = running(**options)
    if held:
        hold(lease)
    end(lease, status)
    return lease


def end(lease: Lease, status: JobStatus, *, now: datetime = T0 + timedelta(seconds=1)) -> None:
    """Take a running job to `status`."""
    verbs = Job.objects
    match status:
        case JobStatus.RUNNING:
            return
        case JobStatus.PENDING:
            answer = verbs.release(lease, now=now)
        case JobStatus.BLOCKED:
            answer = verbs.release(lease, now=now)
            blocks(lease)
        case JobStatus.WAITING:
            answer = verbs.wait(lease, WaitReason.TIMER, seconds=10, now=now)
        case JobStatus.UNCERTAIN:
            answer = verbs.uncertain(lease, "no answer came", now=now)
        case JobStatus.SUCCEEDED:
            answer = verbs.commit(lease, {"ok": 1}, now=now)
        case JobStatus.FAILED:
            answer = verbs.fail(lease, "HANDLER_CONTENT_FAILED", "no good", now=now)
        case JobStatus.SKIPPED:
            answer = verbs.skip(lease, "NOTHING_TO_DO", now=now)
        case _:
            verbs.cancel(id_of(lease), actor="someone", reason="not needed", now=now)
            answer = verbs.acknowledge_cancel(lease, now=now)
    assert answer.landed, answer
    assert row(lease)["status"] == status


def end_waiting_for_approval(lease: Lease, *, now: datetime = T0 + timedelta(seconds=1)) -> None:
    """Take a running job to a wait that has no due time."""
    assert Job.objects.wait(lease, WaitReason.APPROVAL, now=now).landed


def hold(lease: Lease | uuid.UUID, *, now: datetime = T0) -> None:
    """Put a job on hold."""
    assert Job.objects.hold(id_of(lease), actor="someone", reason="wait", now=now)


def nobodys(job_id: uuid.UUID) -> Lease:
    """Return a token that nobody was ever given."""
    return Lease(
        job_id=job_id.hex,
        attempt_id="0" * 32,
        generation=0,
        worker_id="",
        epoch=0,
        lease_expires_at=None,
        ttl_seconds=60,
    )


# -- by hand ----------------------------------------------------------------------------------------


def edit(job_id: Lease | uuid.UUID, **columns: Any) -> None:
    """Write columns of a job by hand, as nobody may; `state_version` goes on by one with them."""
    field: Any = Job._meta.get_field
    values = {name: field(name).get_db_prep_save(value, connection) for name, value in columns.items()}
    values.setdefault("state_version", row(job_id)["state_version"] + 1)
    places = ", ".join(f"{field(name).column} = %s" for name in values)
    key = Job._meta.pk.get_db_prep_save(id_of(job_id), connection)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE jobs_job SET {places} WHERE id = %s", [*values.values(), key])
        assert cursor.rowcount == 1


def blocks(lease: Lease | uuid.UUID, edges: int = 1) -> None:
    """Let a pending job wait for predecessors, as enqueue will once there are edges."""
    edit(lease, status=JobStatus.BLOCKED, unmet_edges=edges, ready_at=None)


def effect(
    lease: Lease,
    *,
    status: str = "unknown",
    replay: str = "queryable",
    inquirable: bool = True,
    slot: str = "send",
    grants: int = 1,
    **columns: Any,
) -> str:
    """Give a job an effect slot and count it where it is open, as grant and report will; returns its id."""
    key = effect_id(lease.job_id, lease.revision, "", slot)
    granted = grants > 0
    values: dict[str, Any] = {
        "id": key,
        "job_id": id_of(lease),
        "revision": lease.revision,
        "node_id": "",
        "slot": slot,
        "kind": "tests.effect",
        "replay": replay,
        "inquirable": inquirable,
        "status": status,
        "version": 1,
        "in_conflict": False,
        "conflict_digest": "",
        "use_recorded": False,
        "ruled_abandon": False,
        "label": "",
        "target": "",
        "currency": "",
        "etag": "",
        "earlier_unresolved": False,
        "inquiries": 0,
        "payload": "null",
        "payload_digest": "0" * 64,
        "granted_attempt_id": uuid.UUID(lease.attempt_id) if granted else None,
        "grant_id": uuid.uuid4() if granted else None,
        "grants": grants,
        "granted_at": T0 if granted else None,
        "key_valid_until": None,
        "reference": "",
        "response": "{}" if status == "committed" else None,
        "created_at": T0,
        "changed_at": T0,
    } | columns
    field: Any = EffectSlot._meta.get_field
    prepared = [field(name).get_db_prep_save(value, connection) for name, value in values.items()]
    marks = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO jobs_effectslot ({', '.join(values)}) VALUES ({marks})", prepared)
    if status in ("executing", "unknown"):
        current = row(lease)
        edit(lease, open_effects=current["open_effects"] + 1, state_version=current["state_version"])
    return key


# -- reading ----------------------------------------------------------------------------------------


def id_of(key: Lease | uuid.UUID) -> uuid.UUID:
    """Return a job's primary key."""
    return key if isinstance(key, uuid.UUID) else uuid.UUID(key.job_id)


def row(key: Lease | uuid.UUID) -> dict[str, Any]:
    """Return every column of a job."""
    return dict(Job.objects.filter(pk=id_of(key)).values().get())


def attempt(lease: Lease) -> dict[str, Any]:
    """Return every column of a lease's attempt."""
    return dict(Attempt.objects.filter(pk=uuid.UUID(lease.attempt_id)).values().get())


def epoch() -> int:
    """Return the current epoch."""
    return Scheduler.objects.get().epoch


def raise_epoch(*, now: datetime = T0) -> int:
    """Raise the epoch by one."""
    raised: int = Job.objects.raise_epoch(expected=epoch(), actor="someone", reason="drill", now=now)
    return raised


def fenced_worker(worker_id: str) -> None:
    """Register a worker as fenced."""
    register(worker_id)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_worker SET fenced_at = started_at WHERE id = %s", [worker_id])


def register(worker_id: str) -> None:
    """Write a live worker's row."""
    facts: dict[str, Any] = {
        "host": "host",
        "pid": 1,
        "boot_id": "",
        "pid_namespace": "",
        "pid_started": None,
        "version": "",
        "concurrency": 1,
    }
    with_names = {"queues": [QUEUE], "kinds": [KIND]} | facts
    ledger(lambda session: worker_rows.register(session, id=worker_id, epoch=epoch(), **with_names))


def ledger(work: Callable[[Session], Any], *, now: datetime = T0) -> Any:
    """Run one ledger function in a transaction of its own."""
    return transact(work, using="default", vocabulary=JOB, now=now, durable=False)


@contextmanager
def unguarded() -> Iterator[None]:
    """Take the triggers away, to see a constraint refuse by itself; `db` tests only, which roll back."""
    triggers.lift("default")
    try:
        yield
    finally:
        triggers.lay("default")


@contextmanager
def unconstrained(*names: str) -> Iterator[None]:
    """Let rows through that the CHECK constraints `names` of the job table refuse; inside `undone` only.

    A predicate that a constraint stands behind can be shown to hold by itself only when that is away.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        for name in names if connection.vendor != "sqlite" else ():
            cursor.execute(f"ALTER TABLE jobs_job DROP CONSTRAINT {name}")
        try:
            yield
        finally:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA ignore_check_constraints = OFF")


@contextmanager
def savepoint() -> Iterator[None]:
    """Open a block that may fail without spoiling the test's transaction.

    Ledger transactions refuse to run inside a caller's; Django lets them where a test case opened it.
    """
    with transaction.atomic():
        block: Any = connection.atomic_blocks[-1]
        block._from_testcase = True
        yield


@contextmanager
def undone() -> Iterator[None]:
    """Take back everything written inside, as if it had been the whole of a test."""
    with savepoint():
        yield
        transaction.set_rollback(True)
