"""Every trigger refuses what goes around the verbs: hand edits and old binaries (contract §4)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection

from jobs.drills import kept
from jobs.guards import TRIGGERS, guarding
from jobs.models import AuditEntry, Case, Job
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.outcomes import Lease
from jobs.status import JobStatus
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects
MESSAGES = {trigger.name: trigger.message for trigger in TRIGGERS}
RETRIED = {
    "finished_at": None,
    "started_at": None,
    "attempts_excused": 1,
    "next_attempt_at": at(9),
    "error_code": "",
}


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _edit(status: JobStatus, /, **columns: Any) -> Callable[[], None]:
    """Write columns of a job of `status`; a callable value is given the row."""

    def write() -> None:
        lease = build.job(status)
        before = build.row(lease)
        build.edit(lease, **{k: v(before) if callable(v) else v for k, v in columns.items()})

    return write


def _fewer(column: str) -> Callable[[], None]:
    def write() -> None:
        lease = build.running()
        build.edit(lease, **{column: 5})
        build.edit(lease, **{column: 4})

    return write


def _same_version(row: dict[str, Any]) -> int:
    version: int = row["state_version"]
    return version


def _two_on(row: dict[str, Any]) -> int:
    return _same_version(row) + 2


def _after_a_raise(write: Callable[[Lease], None]) -> Callable[[], None]:
    def run() -> None:
        lease = build.running()
        build.raise_epoch()
        write(lease)

    return run


def _longer_lease(lease: Lease) -> None:
    build.edit(lease, lease_expires_at=at(61))


def _shorter_lease(lease: Lease) -> None:
    build.edit(lease, lease_expires_at=at(59))


def _taken_by_hand(lease: Lease) -> None:
    build.end(build.claim(build.id_of(lease), now=at(1)), JobStatus.PENDING, now=at(2))
    build.edit(
        lease,
        status="running",
        ready_at=None,
        lease_expires_at=at(90),
        worker_id=build.RIVAL,
        scheduler_epoch=3,
    )


def _on_attempt(status: JobStatus, assignment: str) -> Callable[[], None]:
    def write() -> None:
        build.job(status)
        build.enqueue()
        _sql(f"UPDATE jobs_attempt SET {assignment}")

    return write


def _on_effect(assignment: str, **columns: Any) -> Callable[[], None]:
    def write() -> None:
        build.effect(build.running(), **columns)
        _sql(f"UPDATE jobs_effectslot SET {assignment}")

    return write


def _delete(statement: str, **columns: Any) -> Callable[[], None]:
    def write() -> None:
        build.effect(build.running(), **columns)
        _sql(statement)

    return write


def _told(statement: str) -> Callable[[], None]:
    """Do something to the one piece of evidence, or the one ruling, that there is."""

    def write() -> None:
        build.job(JobStatus.UNCERTAIN)
        case = Case.objects.get()
        _sql(
            "INSERT INTO jobs_evidence (at, effect_id, source, outcome, decisive, reference, body, actor)"
            f" VALUES ('{at(1)}', '{case.effect_id}', 'report', 'unknown', false, '', 'timeout', '')"
        )
        _sql(
            "INSERT INTO jobs_ruling (at, case_id, effect_id, verdict, by, approved_by, reason_code, reason,"
            " reference, compensate, attested, snapshot, slot_version)"
            f" VALUES ('{at(2)}', '{case.pk.hex}', '{case.effect_id}', 'abandon', 'a', '', 'x', 'y', '',"
            " false, false, '', 1)"
        )
        _sql(statement)

    return write


def _on_drill(statement: str) -> Callable[[], None]:
    def write() -> None:
        number = kept.begin(DrillKind.ZOMBIE, by="cron")
        kept.finish(number, DrillVerdict.FAILED, tried=1, passed=0, record=None)
        _sql(statement)

    return write


def _drill_begun_otherwise() -> None:
    kept.begin(DrillKind.ZOMBIE, by="cron")
    _sql("UPDATE jobs_drill SET by = 'nobody'")


def _epoch_back() -> None:
    build.raise_epoch()
    _sql("UPDATE jobs_scheduler SET epoch = 1")


def _on_audit(statement: str) -> Callable[[], None]:
    def write() -> None:
        V.close_claims(actor="ann", reason="because", now=at(1))
        _sql(statement)

    return write


AUDITED = [f'"{column.column}"' for column in AuditEntry._meta.concrete_fields]
NEXT_ENTRY = (
    f"INSERT INTO jobs_auditentry ({', '.join(AUDITED)}) SELECT "
    + ", ".join({'"seq"': "seq + 1", '"prev_hash"': "hash"}.get(name, name) for name in AUDITED)
    + " FROM jobs_auditentry"
)
OTHER_JOB = "job_id = (SELECT j.id FROM jobs_job j WHERE j.attempt_id IS NULL)"
BROKEN: list[tuple[str, Callable[[], None]]] = [
    *[
        ("job_numbers_grow", _fewer(column))
        for column in (
            "claim_generation",
            "cancel_generation",
            "scheduler_epoch",
            "revision",
            "attempt_count",
            "state_version",
        )
    ],
    *[
        ("job_terminal_stays", _edit(status, status="pending", **RETRIED | {"attempts_excused": 0}))
        for status in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.SKIPPED)
    ],
    ("job_terminal_stays", _edit(JobStatus.FAILED, status="pending", **RETRIED | {"claim_generation": 2})),
    ("job_terminal_stays", _edit(JobStatus.FAILED, status="pending", **RETRIED | {"started_at": at(1)})),
    ("job_terminal_stays", _edit(JobStatus.FAILED, status="uncertain", finished_at=None)),
    ("job_terminal_stays", _edit(JobStatus.FAILED, status="cancelled")),
    ("job_terminal_stays", _edit(JobStatus.SUCCEEDED, status="pending", **RETRIED)),
    ("job_result_once", _edit(JobStatus.SUCCEEDED, result_commit_id=uuid.uuid4())),
    ("job_result_once", _edit(JobStatus.SUCCEEDED, result_commit_id=None)),
    *[
        ("job_version_counts", _edit(JobStatus.RUNNING, **columns, state_version=version))
        for version in (_same_version, _two_on)
        for columns in (
            {"status": "uncertain", "lease_expires_at": None, "worker_id": None},
            {"worker_id": build.RIVAL},
            {"attempt_id": uuid.uuid4()},
        )
    ],
    ("job_version_counts", _edit(JobStatus.PENDING, attempt_id=None, state_version=_same_version)),
    ("job_lease_is_current", _after_a_raise(_longer_lease)),
    ("job_lease_is_current", _after_a_raise(_taken_by_hand)),
    ("job_open_effect_kept", _delete("DELETE FROM jobs_job")),
    ("attempt_ends_once", _on_attempt(JobStatus.FAILED, "status = 'released'")),
    ("attempt_ends_once", _on_attempt(JobStatus.FAILED, "status = 'running', finished_at = NULL")),
    ("attempt_ends_once", _on_attempt(JobStatus.FAILED, f"result_digest = '{'0' * 64}'")),
    ("attempt_ends_once", _on_attempt(JobStatus.SUCCEEDED, f"result_digest = '{'0' * 64}'")),
    ("attempt_is_its_own", _on_attempt(JobStatus.RUNNING, OTHER_JOB)),
    ("attempt_is_its_own", _on_attempt(JobStatus.RUNNING, "generation = 2")),
    ("attempt_is_its_own", _on_attempt(JobStatus.RUNNING, "worker_id = 'host:2:b'")),
    ("effect_version_counts", _on_effect("status = 'absent'")),
    ("effect_version_counts", _on_effect("status = 'absent', version = version + 2")),
    ("effect_committed_stays", _on_effect("status = 'absent', version = version + 1", status="committed")),
    ("effect_committed_stays", _on_effect("status = 'unknown', version = version + 1", status="committed")),
    ("effect_key_is_bound", _on_effect("payload_digest = 'x', version = version + 1")),
    ("effect_open_kept", _delete("DELETE FROM jobs_effectslot")),
    (
        "effect_open_kept",
        _delete("DELETE FROM jobs_effectslot", status="executing"),
    ),
    ("evidence_unchanged", _told("UPDATE jobs_evidence SET body = 'nothing'")),
    ("evidence_stays", _told("DELETE FROM jobs_evidence")),
    ("ruling_unchanged", _told("UPDATE jobs_ruling SET reason = 'other'")),
    ("ruling_stays", _told("DELETE FROM jobs_ruling")),
    ("drill_unchanged", _on_drill("UPDATE jobs_drill SET verdict = 'passed'")),
    ("drill_unchanged", _drill_begun_otherwise),
    ("drill_stays", _on_drill("DELETE FROM jobs_drill")),
    ("scheduler_epoch_grows", _epoch_back),
    ("scheduler_stays", lambda: _sql("DELETE FROM jobs_scheduler")),
    (
        "audit_entry_continues",
        _on_audit(NEXT_ENTRY),
    ),
    ("audit_entry_unchanged", _on_audit("UPDATE jobs_auditentry SET reason = ''")),
    ("audit_entry_stays", _on_audit("DELETE FROM jobs_auditentry")),
    ("audit_head_advances", _on_audit("UPDATE jobs_audithead SET seq = 0")),
    ("audit_head_advances", _on_audit("UPDATE jobs_audithead SET seq = 3")),
    ("audit_head_advances", _on_audit("UPDATE jobs_audithead SET hash = 'x'")),
    ("audit_head_stays", _on_audit("DELETE FROM jobs_audithead")),
    ("audit_entries_not_emptied", _on_audit("TRUNCATE jobs_auditentry")),
    ("audit_head_not_emptied", _on_audit("TRUNCATE jobs_audithead")),
]


@pytest.mark.parametrize(("name", "write"), BROKEN, ids=lambda v: v if isinstance(v, str) else "")
def test_trigger_refuses_and_says_why(name, write):
    if name not in {trigger.name for trigger in guarding(connection.vendor)}:
        pytest.skip("nothing to guard against here")
    with pytest.raises(IntegrityError) as refused, build.savepoint():
        write()
    assert MESSAGES[name] in str(refused.value)


def test_every_trigger_is_broken_here():
    assert set(MESSAGES) == {name for name, _ in BROKEN}


ALLOWED: list[tuple[str, Callable[[], None]]] = [
    ("a retry by hand that is a retry", _edit(JobStatus.FAILED, status="pending", **RETRIED)),
    ("a label", _edit(JobStatus.SUCCEEDED, label="other")),
    ("a shorter lease after a raise", _after_a_raise(_shorter_lease)),
    ("another payload of a slot never sent", _on_effect("payload_digest = 'x'", status="prepared", grants=0)),
    ("deleting a closed effect", _delete("DELETE FROM jobs_effectslot", status="absent")),
    ("an attempt's log after its end", _on_attempt(JobStatus.FAILED, "log = 'late'")),
]


@pytest.mark.parametrize("write", [write for _, write in ALLOWED], ids=[name for name, _ in ALLOWED])
def test_trigger_lets_through_what_is_no_harm(write):
    write()


def test_old_binary_that_knows_no_epoch_cannot_claim():
    """It writes status, worker and lease, and leaves the row's epoch as it finds it."""
    lease = build.job(JobStatus.PENDING)
    build.raise_epoch(now=at(2))
    claim = {"status": "running", "ready_at": None, "worker_id": build.RIVAL, "lease_expires_at": at(90)}
    with pytest.raises(IntegrityError, match="INV-10"), build.savepoint():
        build.edit(lease, **claim)


def test_lease_is_judged_for_each_row_of_one_statement():
    """The normal case is asked once per statement; a single stale row among good ones is still found."""
    stale = build.running()
    epoch = build.raise_epoch()
    good = [build.running() for _ in range(3)]
    assert {build.row(lease)["scheduler_epoch"] for lease in good} == {epoch}
    ends: Any = Job._meta.get_field("lease_expires_at")
    later = ends.get_db_prep_save(at(60) + timedelta(seconds=1), connection)

    def write() -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_job SET lease_expires_at = %s", [later])

    with pytest.raises(IntegrityError, match="INV-10"), build.savepoint():
        write()
    assert {build.row(lease)["lease_expires_at"] for lease in [stale, *good]} == {at(60)}
