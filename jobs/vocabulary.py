"""Column vocabularies: how a table takes part in the protocol (contract §10).

A table names its columns and its words once; every statement of the ledger is rendered from them, and
a predicate whose column is not mapped is not emitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jobs.status import JobStatus


class Grade(StrEnum):
    """How much of the fence a table can carry; shown wherever the table is."""

    A = "A"
    """generation and attempt id"""
    B = "B"
    """generation"""
    C = "C"
    """attempt count only"""


STANDARD_FIELDS = frozenset(
    [
        "id",
        "kind",
        "queue",
        "label",
        "status",
        "wait_reason",
        "hold_reason",
        "priority",
        "state_version",
        "input",
        "input_digest",
        "revision",
        "ready_at",
        "next_attempt_at",
        "deadline_at",
        "wait_ends_at",
        "started_at",
        "finished_at",
        "worker_id",
        "attempt_id",
        "claim_generation",
        "scheduler_epoch",
        "lease_seconds",
        "lease_expires_at",
        "heartbeat_at",
        "attempt_count",
        "attempts_excused",
        "max_attempts",
        "open_effects",
        "cancel_requested_at",
        "cancel_generation",
        "cancel_requested_by",
        "cancel_reason",
        "error_code",
        "error_message",
        "result_commit_id",
        "parent_id",
        "unmet_edges",
        "unique_key",
        "created_at",
        "traceparent",
    ]
)


@dataclass(frozen=True)
class JobColumnVocabulary:
    """Maps the standard field names and status words onto one table.

    `columns` maps a standard field to its column; `words` maps a status to the table's words, the
    first of which is written and all of which are read. `id_type` is the key's PostgreSQL type.
    Raises ValueError for a table that cannot be fenced: neither generation nor attempt count.
    """

    table: str
    columns: Mapping[str, str]
    words: Mapping[JobStatus, tuple[str, ...]] = field(default_factory=dict)
    id_type: str = "uuid"

    def __post_init__(self) -> None:
        unknown = set(self.columns) - STANDARD_FIELDS
        if unknown:
            raise ValueError(f"{self.table}: no standard field is called {', '.join(sorted(unknown))}")
        missing = {"id", "status", "lease_expires_at"} - set(self.columns)
        if missing:
            raise ValueError(f"{self.table}: map a column for {', '.join(sorted(missing))}")
        _ = self.grade

    @property
    def grade(self) -> Grade:
        """Return how much of the fence this table carries; raises ValueError without anything to fence by."""
        if "claim_generation" in self.columns:
            return Grade.A if "attempt_id" in self.columns else Grade.B
        if "attempt_count" in self.columns:
            return Grade.C
        raise ValueError(
            f"{self.table}: has neither a generation nor an attempt count, so an old owner cannot be told"
        )

    @property
    def generation_column(self) -> str:
        """The column that tells one claim from the next."""
        return self.columns.get("claim_generation") or self.columns["attempt_count"]

    def has(self, *fields: str) -> bool:
        """Return whether all of `fields` are mapped."""
        return all(name in self.columns for name in fields)

    def word(self, status: JobStatus) -> str:
        """Return the word written for `status`."""
        return self.words.get(status, (status.value,))[0]

    def read_words(self, status: JobStatus) -> tuple[str, ...]:
        """Return every word that means `status` in this table."""
        return self.words.get(status, (status.value,))

    def status_of(self, word: str) -> JobStatus:
        """Return the status that `word` means; raises ValueError for a word this table should not hold."""
        for status in JobStatus:
            if word in self.read_words(status):
                return status
        raise ValueError(f"{self.table}: no status is written {word!r}")


JOB = JobColumnVocabulary("jobs_job", {name: name for name in STANDARD_FIELDS})

JOB_STATE = JobColumnVocabulary(
    "job_state",
    {
        "id": "id",
        "status": "status",
        "claim_generation": "generation",
        "lease_expires_at": "lease_until",
    },
    {JobStatus.SUCCEEDED: ("done",), JobStatus.PENDING: ("pending", "retryable")},
    id_type="text",
)
"""The table of the exercise: three columns, the same guards (contract §10, row 0)."""
