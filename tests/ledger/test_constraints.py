"""Every constraint of the protocol tables refuses, whoever writes: raw SQL that breaks it and it alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection

from jobs.drills import kept
from jobs.ledger import cases, raising
from jobs.ledger.session import Session, transact
from jobs.models import Attempt, Case, EffectSlot, Job, Minute, Proposal, Queue, RaiseProposal, Scheduler
from jobs.models.drill import DrillKind
from jobs.models.protected import Protected
from jobs.status import JobStatus
from jobs.vocabulary import JOB as JOB_WORDS
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db

RUNNING, PENDING, UNCERTAIN = JobStatus.RUNNING, JobStatus.PENDING, JobStatus.UNCERTAIN
A_TIME, AN_ID = at(5), uuid.uuid4()

JOB: list[tuple[str, JobStatus, dict[str, Any]]] = [
    ("job_status_known", UNCERTAIN, {"status": "lost"}),
    ("job_terminal_has_finished_at", JobStatus.FAILED, {"finished_at": None}),
    ("job_terminal_has_finished_at", RUNNING, {"finished_at": A_TIME}),
    ("job_running_has_lease", RUNNING, {"lease_expires_at": None}),
    ("job_running_has_lease", RUNNING, {"worker_id": None}),
    ("job_running_has_lease", RUNNING, {"attempt_id": None}),
    ("job_running_has_lease", UNCERTAIN, {"lease_expires_at": A_TIME}),
    ("job_running_has_lease", UNCERTAIN, {"worker_id": "host:1:a"}),
    ("job_succeeded_has_result", RUNNING, {"result_commit_id": AN_ID}),
    (
        "job_succeeded_has_result",
        UNCERTAIN,
        {"status": "succeeded", "finished_at": A_TIME, "open_effects": 0},
    ),
    (
        "job_cancel_requested_not_idle",
        PENDING,
        {"cancel_requested_at": A_TIME, "cancel_generation": 1},
    ),
    ("job_cancel_has_generation", RUNNING, {"cancel_requested_at": A_TIME}),
    ("job_ready_is_claimable", UNCERTAIN, {"ready_at": A_TIME}),
    ("job_ready_is_claimable", PENDING, {"hold_reason": "operator"}),
    ("job_claimable_has_attempts_left", PENDING, {"attempts_excused": 0, "max_attempts": 1}),
    ("job_claimable_has_attempts_left", JobStatus.WAITING, {"attempts_excused": 0, "max_attempts": 1}),
    ("job_excused_within_count", RUNNING, {"attempts_excused": 2}),
    ("job_waiting_has_reason", JobStatus.WAITING, {"wait_reason": ""}),
    ("job_waiting_has_reason", JobStatus.WAITING, {"wait_reason": "weather"}),
    ("job_waiting_has_reason", RUNNING, {"wait_reason": "timer"}),
    ("job_due_unless_approval", PENDING, {"next_attempt_at": None}),
    ("job_due_unless_approval", JobStatus.WAITING, {"next_attempt_at": None}),
    ("job_hold_known", RUNNING, {"hold_reason": "because"}),
    ("job_blocked_has_edges", JobStatus.BLOCKED, {"unmet_edges": 0}),
    ("job_blocked_has_edges", PENDING, {"unmet_edges": 1}),
    ("job_terminal_has_no_open_effect", JobStatus.FAILED, {"open_effects": 1}),
    ("job_priority_range", RUNNING, {"priority": 101}),
    ("job_priority_range", RUNNING, {"priority": -101}),
    ("job_max_attempts_positive", RUNNING, {"max_attempts": 0}),
    ("job_lease_positive", RUNNING, {"lease_seconds": 0}),
    ("job_scope_known", RUNNING, {"unique_scope": "always"}),
]


def _attempt(**columns: Any) -> Callable[[], None]:
    def write() -> None:
        lease = build.running()
        _update(Attempt, uuid.UUID(lease.attempt_id), **columns)

    return write


def _effect(**columns: Any) -> Callable[[], None]:
    def write() -> None:
        _update(EffectSlot, build.effect(build.running(), status="unknown"), **columns)

    return write


def _case(**columns: Any) -> Callable[[], None]:
    def write() -> None:
        build.job(UNCERTAIN)
        _update(Case, Case.objects.get().pk, **columns)

    return write


def _asked() -> Proposal:
    """Ask for a second person's word about an uncertain job's effect."""
    build.job(UNCERTAIN)
    case = Case.objects.get()

    def ask(session: Session) -> None:
        cases.propose(session, case.pk, case.effect_id, "did_not_happen", by="first", seconds=60)

    transact(ask, using="default", vocabulary=JOB_WORDS, durable=False)
    return Proposal.objects.get()


def _proposal(**columns: Any) -> Callable[[], None]:
    return lambda: _update(Proposal, _asked().pk, **columns)


def _raise_asked() -> RaiseProposal:
    """Ask for a second person's word about a raise of the epoch."""
    asked: dict[str, Any] = {"floor": 0, "close_claims": False, "reason": "why", "price": "{}", "seconds": 60}

    def ask(session: Session) -> None:
        raising.propose(session, expected=1, by="first", account="1", **asked)

    transact(ask, using="default", vocabulary=JOB_WORDS, durable=False)
    return RaiseProposal.objects.get()


def _raise_proposal(**columns: Any) -> Callable[[], None]:
    return lambda: _update(RaiseProposal, _raise_asked().pk, **columns)


def _second_of(table: type[Protected], first: Callable[[], Any]) -> Callable[[], None]:
    def write() -> None:
        first()
        _second(table, _all_but_the_key(table))

    return write


def _second(table: type[Protected], columns: str) -> None:
    """Insert the only row of `table` again under another key; `columns` are all but the key."""
    key = "1 + id" if table is Minute else ("'x'" if table is EffectSlot else f"'{uuid.uuid4()}'")
    name = table._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {name} (id, {columns}) SELECT {key}, {columns} FROM {name}")


def _all_but_the_key(model: type[Protected]) -> str:
    fields: Any = model._meta.concrete_fields
    return ", ".join(f.column for f in fields if not f.primary_key)


def _two_attempts_of_one_generation() -> None:
    build.running()
    _second(Attempt, _all_but_the_key(Attempt))


def _two_slots_of_one_name() -> None:
    build.effect(build.running())
    _second(EffectSlot, _all_but_the_key(EffectSlot))


CASES: list[tuple[str, Callable[[], None]]] = [
    ("case_kind_known", _case(kind="maybe")),
    ("case_closed_says_how", _case(closed_at=A_TIME)),
    ("case_closed_says_how", _case(closed_as="ruled")),
    ("case_closed_says_how", _case(closed_at=A_TIME, closed_as="forgotten")),
    ("case_open_once", _second_of(Case, lambda: build.job(UNCERTAIN))),
    ("proposal_never_self", _proposal(decision="approved", decided_by="first", decided_at=A_TIME)),
    ("proposal_decided_says_who", _proposal(decision="approved", decided_by="second")),
    ("proposal_decided_says_who", _proposal(decision="perhaps", decided_at=A_TIME)),
    ("proposal_decided_says_who", _proposal(decided_at=A_TIME)),
    ("proposal_open_once", _second_of(Proposal, _asked)),
    ("raiseproposal_never_self", _raise_proposal(decision="approved", decided_by="first", decided_at=A_TIME)),
    ("raiseproposal_decided_says_who", _raise_proposal(decision="approved", decided_by="second")),
    ("raiseproposal_decided_says_who", _raise_proposal(decision="perhaps", decided_at=A_TIME)),
    ("raiseproposal_decided_says_who", _raise_proposal(decided_at=A_TIME)),
    ("raiseproposal_open_once", _second_of(RaiseProposal, _raise_asked)),
]


def _two_rows_of_one_minute() -> None:
    values = ", ".join(f"'{value}'" for value in (at(0), "q", "k", "m"))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_minute (minute, queue, kind, measure, bucket, count, total)"
            f" VALUES ({values}, 0, 1, 0)"
        )
    _second(Minute, _all_but_the_key(Minute))


def _two_jobs_of_one_key() -> None:
    first, second = build.running(unique_key="k"), build.running()
    assert first
    build.edit(second, unique_key="k")


def _an_ended_key_kept_for_ever() -> None:
    build.job(JobStatus.SUCCEEDED, unique_key="k", unique_scope="ever")
    build.edit(build.running(), unique_key="k")


def _paused_until_but_not_since() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_queue (name, paused_until, paused_by, pause_reason) VALUES ('q', %s, '', '')",
            [str(at(5))],
        )


def _one_tag_twice() -> None:
    job_id = build.enqueue(tags=["vip"])
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_searchattribute (job_id, name, value)"
            " SELECT job_id, name, value FROM jobs_searchattribute WHERE job_id = %s",
            [Job._meta.pk.get_db_prep_save(job_id, connection)],
        )


def _scheduler(assignment: str) -> Callable[[], None]:
    def write() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE jobs_scheduler SET {assignment}")

    return write


def _another_scheduler() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_scheduler (id, epoch, claims_open, timeline, changed_by, reason)"
            " SELECT 2, epoch, claims_open, timeline, changed_by, reason FROM jobs_scheduler"
        )


def _by_hand(statement: str) -> Callable[[], None]:
    def write() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return write


def _audit_entry(assignment: str) -> Callable[[], None]:
    def write() -> None:
        Job.objects.close_claims(actor="ann", reason="because", now=at(1))
        _by_hand(f"UPDATE jobs_auditentry SET {assignment}")()

    return write


def _drill(assignment: str) -> Callable[[], None]:
    def write() -> None:
        kept.begin(DrillKind.ZOMBIE, by="cron")
        _by_hand(f"UPDATE jobs_drill SET {assignment}")()

    return write


OTHERS: list[tuple[str, Callable[[], None]]] = [
    *CASES,
    ("job_unique_key", _two_jobs_of_one_key),
    ("job_unique_key", _an_ended_key_kept_for_ever),
    ("attempt_generation_once", _two_attempts_of_one_generation),
    ("attempt_status_known", _attempt(status="gone", finished_at=A_TIME)),
    ("attempt_ended_has_finished_at", _attempt(status="failed")),
    ("attempt_ended_has_finished_at", _attempt(finished_at=A_TIME)),
    ("attempt_committed_has_digest", _attempt(status="committed", finished_at=A_TIME)),
    ("attempt_staged_has_digest", _attempt(staged_at=A_TIME)),
    ("effect_slot_once", _two_slots_of_one_name),
    ("effect_status_known", _effect(status="sent", version=2)),
    ("effect_replay_known", _effect(replay="reserved")),
    ("effect_executing_is_granted", _effect(status="executing", version=2, grants=0)),
    ("effect_executing_is_granted", _effect(status="executing", version=2, grant_id=None)),
    ("effect_executing_is_granted", _effect(status="executing", version=2, granted_attempt_id=None)),
    ("effect_executing_is_granted", _effect(status="executing", version=2, granted_at=None)),
    ("effect_committed_has_response", _effect(status="committed", version=2)),
    ("scheduler_one_row", _another_scheduler),
    ("scheduler_epoch_positive", _scheduler("epoch = 0")),
    ("queue_pause_has_start", _paused_until_but_not_since),
    ("search_once", _one_tag_twice),
    ("minute_once", _two_rows_of_one_minute),
    ("audit_source_known", _audit_entry("source = 'guess'")),
    ("audit_first_has_no_previous", _audit_entry("prev_hash = 'x'")),
    ("audit_first_has_no_previous", _audit_entry("seq = 2")),
    ("audit_first_has_no_previous", _audit_entry("seq = 0")),
    ("audit_head_one_row", _by_hand("UPDATE jobs_audithead SET id = 2")),
    ("drill_kind_known", _drill("kind = 'fire'")),
    ("drill_finished_has_verdict", _drill("verdict = 'passed'")),
    ("drill_finished_has_verdict", _drill("finished_at = started_at")),
    ("drill_finished_has_verdict", _drill("finished_at = started_at, verdict = 'fine'")),
    ("audit_head_not_negative", _by_hand("UPDATE jobs_audithead SET seq = -1")),
]


@pytest.mark.parametrize(("name", "status", "columns"), JOB, ids=lambda v: v if isinstance(v, str) else "")
def test_constraint_of_jobs_refuses(name, status, columns):
    lease = build.job(status)
    with pytest.raises(IntegrityError, match=name), build.savepoint():
        build.edit(lease, **columns)


@pytest.mark.parametrize(("name", "write"), OTHERS, ids=lambda v: v if isinstance(v, str) else "")
def test_constraint_refuses(name, write):
    # SQLite names the columns of a unique constraint, not the constraint.
    says = name if connection.vendor == "postgresql" or not name.endswith(("_once", "_key")) else "UNIQUE"
    with build.unguarded(), pytest.raises(IntegrityError, match=says), build.savepoint():
        write()


def test_every_constraint_of_every_protocol_table_is_broken_here():
    models = [m for m in apps.get_app_config("jobs").get_models() if issubclass(m, Protected)]
    assert {Job, Attempt, EffectSlot, Scheduler, Queue, Minute} <= set(models)
    names = {constraint.name for model in models for constraint in model._meta.constraints}
    assert names == {name for name, *_ in [*JOB, *OTHERS]}


def test_every_constraint_stands_in_the_database():
    with connection.cursor() as cursor:
        found = {
            name
            for model in apps.get_app_config("jobs").get_models()
            for name in connection.introspection.get_constraints(cursor, model._meta.db_table)
        }
    assert {name for name, *_ in [*JOB, *OTHERS]} <= found


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("SELECT 1", "DELETE FROM jobs_job WHERE claim_generation = 1"),
        ("DELETE FROM jobs_attempt", "DELETE FROM jobs_job WHERE claim_generation = 1"),
        ("DELETE FROM jobs_effectslot", "DELETE FROM jobs_job WHERE claim_generation = 1"),
    ],
    ids=["a job with a child, an attempt and an effect", "with an effect", "with an attempt"],
)
def test_job_that_others_point_at_cannot_be_deleted(first, then):
    lease = build.running()
    build.effect(lease, status="prepared", grants=0)
    build.enqueue(parent_id=build.id_of(lease))

    def delete() -> None:
        with connection.cursor() as cursor:
            cursor.execute(first)
            cursor.execute(then)
        connection.check_constraints()  # deferred until the commit, which a test never reaches

    with pytest.raises(IntegrityError), build.savepoint():
        delete()


def _update(model: type[Protected], key: Any, **columns: Any) -> None:
    field: Any = model._meta.get_field
    values = [field(name).get_db_prep_save(value, connection) for name, value in columns.items()]
    pk: Any = model._meta.pk
    places = ", ".join(f"{name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {model._meta.db_table} SET {places} WHERE id = %s",
            [*values, pk.get_db_prep_save(key, connection)],
        )
        assert cursor.rowcount == 1
