"""Triggers as data: what the database refuses whoever asks, on both databases (contract §4, §11).

`when` is one text that serves both; it must not hold a sub-select, because PostgreSQL evaluates it
before calling anything. `also` may hold one: it is tested only when `when` is true.
"""

from __future__ import annotations

from dataclasses import dataclass

TERMINAL = "('succeeded', 'failed', 'cancelled', 'skipped')"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Refuse `event` on `table` with `message` where `when` (and `also`) holds of OLD and NEW."""

    name: str
    table: str
    event: str
    when: str
    message: str
    also: str = ""


TRIGGERS: tuple[Trigger, ...] = (
    Trigger(
        "job_numbers_grow",
        "jobs_job",
        "UPDATE",
        "NEW.claim_generation < OLD.claim_generation OR NEW.cancel_generation < OLD.cancel_generation"
        " OR NEW.scheduler_epoch < OLD.scheduler_epoch OR NEW.revision < OLD.revision"
        " OR NEW.attempt_count < OLD.attempt_count OR NEW.state_version < OLD.state_version",
        "INV-8: a generation, epoch, revision, attempt count or state version of a job never falls",
    ),
    Trigger(
        "job_terminal_stays",
        "jobs_job",
        "UPDATE",
        f"OLD.status IN {TERMINAL} AND NEW.status <> OLD.status AND NOT (OLD.status <> 'succeeded'"
        " AND NEW.status IN ('pending', 'blocked') AND NEW.cancel_requested_at IS NULL"
        " AND NEW.started_at IS NULL AND NEW.claim_generation = OLD.claim_generation"
        " AND NEW.attempts_excused = NEW.attempt_count)",
        "INV-7: a terminal job is left only by the retry verb",
    ),
    Trigger(
        "job_result_once",
        "jobs_job",
        "UPDATE",
        "OLD.result_commit_id IS NOT NULL"
        " AND (NEW.result_commit_id IS NULL OR NEW.result_commit_id <> OLD.result_commit_id)",
        "INV-9: a job's canonical result is written once",
    ),
    Trigger(
        "job_version_counts",
        "jobs_job",
        "UPDATE",
        "NEW.state_version <> OLD.state_version + 1 AND (NEW.status <> OLD.status"
        " OR (NEW.worker_id IS NULL) <> (OLD.worker_id IS NULL) OR NEW.worker_id <> OLD.worker_id"
        " OR (NEW.attempt_id IS NULL) <> (OLD.attempt_id IS NULL) OR NEW.attempt_id <> OLD.attempt_id"
        " OR (NEW.result_commit_id IS NULL) <> (OLD.result_commit_id IS NULL))",
        "a change of status, worker, attempt or result raises state_version by one",
    ),
    Trigger(
        "job_lease_is_current",
        "jobs_job",
        "UPDATE",
        "NEW.lease_expires_at IS NOT NULL"
        " AND (OLD.lease_expires_at IS NULL OR NEW.lease_expires_at > OLD.lease_expires_at)",
        "INV-10: a lease grows only under the current epoch",
        also="NEW.scheduler_epoch <> (SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1)",
    ),
    Trigger(
        "job_open_effect_kept",
        "jobs_job",
        "DELETE",
        "OLD.open_effects > 0",
        "INV-13: a job with an open effect is never deleted",
    ),
    Trigger(
        "attempt_ends_once",
        "jobs_attempt",
        "UPDATE",
        "OLD.status <> 'running' AND (NEW.status <> OLD.status OR NEW.result_digest <> OLD.result_digest"
        " OR (NEW.result_digest IS NULL) <> (OLD.result_digest IS NULL))",
        "an ended attempt keeps its status and its result",
    ),
    Trigger(
        "attempt_is_its_own",
        "jobs_attempt",
        "UPDATE",
        "NEW.job_id <> OLD.job_id OR NEW.generation <> OLD.generation OR NEW.worker_id <> OLD.worker_id",
        "an attempt never changes its job, generation or worker",
    ),
    Trigger(
        "effect_version_counts",
        "jobs_effectslot",
        "UPDATE",
        "NEW.version <> OLD.version + 1 AND NEW.status <> OLD.status",
        "a change of an effect's status raises its version by one",
    ),
    Trigger(
        "effect_committed_stays",
        "jobs_effectslot",
        "UPDATE",
        "OLD.status = 'committed' AND NEW.status <> 'committed'",
        "a committed effect is never left",
    ),
    Trigger(
        "effect_key_is_bound",
        "jobs_effectslot",
        "UPDATE",
        "OLD.grants > 0 AND NEW.payload_digest <> OLD.payload_digest",
        "INV-11: a key that may have been sent is never bound to another payload",
    ),
    Trigger(
        "effect_open_kept",
        "jobs_effectslot",
        "DELETE",
        "OLD.status IN ('executing', 'unknown')",
        "INV-13: an open effect is never deleted",
    ),
    *(
        Trigger(f"{name}_{word}", table, event, "OLD.id = OLD.id", message)
        for name, table, what in (
            ("evidence", "jobs_evidence", "a piece of evidence"),
            ("ruling", "jobs_ruling", "a ruling"),
        )
        for event, word, message in (
            ("UPDATE", "unchanged", f"{what} is never changed"),
            ("DELETE", "stays", f"{what} is never deleted"),
        )
    ),
    Trigger(
        "drill_unchanged",
        "jobs_drill",
        "UPDATE",
        "OLD.finished_at IS NOT NULL OR NEW.started_at <> OLD.started_at OR NEW.kind <> OLD.kind"
        " OR NEW.by <> OLD.by",
        "a drill that has ended is never changed, nor how one began",
    ),
    Trigger("drill_stays", "jobs_drill", "DELETE", "OLD.id = OLD.id", "a drill is never deleted"),
    Trigger(
        "scheduler_epoch_grows",
        "jobs_scheduler",
        "UPDATE",
        "NEW.epoch < OLD.epoch",
        "the epoch never falls",
    ),
    Trigger(
        "scheduler_stays", "jobs_scheduler", "DELETE", "OLD.id = 1", "the scheduler row is never deleted"
    ),
    Trigger(
        "audit_entry_continues",
        "jobs_auditentry",
        "INSERT",
        "NEW.seq IS NOT NULL",
        "an audit entry continues the chain where its head says",
        also="NOT EXISTS (SELECT 1 FROM jobs_audithead h"
        " WHERE h.id = 1 AND h.seq = NEW.seq AND h.hash = NEW.hash)",
    ),
    Trigger(
        "audit_entry_unchanged",
        "jobs_auditentry",
        "UPDATE",
        "OLD.seq IS NOT NULL",
        "an audit entry is never changed",
    ),
    Trigger(
        "audit_entry_stays",
        "jobs_auditentry",
        "DELETE",
        "OLD.seq IS NOT NULL",
        "an audit entry is never deleted",
    ),
    Trigger(
        "audit_head_advances",
        "jobs_audithead",
        "UPDATE",
        "NEW.seq < OLD.seq OR NEW.seq > OLD.seq + 1 OR (NEW.seq = OLD.seq AND NEW.hash <> OLD.hash)",
        "the head of the audit chain goes on by one entry at a time",
    ),
    Trigger(
        "audit_head_stays", "jobs_audithead", "DELETE", "OLD.id = 1", "the head of the audit chain stays"
    ),
    Trigger(
        "audit_entries_not_emptied",
        "jobs_auditentry",
        "TRUNCATE",
        "true",
        "an audit entry is never deleted",
    ),
    Trigger(
        "audit_head_not_emptied",
        "jobs_audithead",
        "TRUNCATE",
        "true",
        "the head of the audit chain stays",
    ),
)


def guarding(vendor: str) -> tuple[Trigger, ...]:
    """Return the triggers that a database can have: SQLite knows no TRUNCATE, and so needs no guard of it."""
    return tuple(t for t in TRIGGERS if vendor == "postgresql" or t.event != "TRUNCATE")
