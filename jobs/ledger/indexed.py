"""Reading along a partial index: its own condition, as literals.

SQLite takes a partial index only where the query states the index's condition word for word. A bound
parameter proves nothing to it, so that `status = ?` reads the whole table, and every refresh of a list with it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup, Model, QuerySet
from django.db.models.sql.compiler import SQLCompiler

from jobs.status import CLAIMABLE, OPEN_EFFECT, TERMINAL, JobStatus

M = TypeVar("M", bound=Model)

ABNORMAL = sorted({JobStatus.BLOCKED, JobStatus.UNCERTAIN, *TERMINAL} - {JobStatus.SUCCEEDED})
"""The statuses that `job_abnormal` holds."""


def _words(statuses: Any) -> str:
    return ", ".join(f"'{status}'" for status in sorted(statuses))


IS_ABNORMAL = f"%s IN ({_words(ABNORMAL)})"
IS_RUNNING = f"%s = '{JobStatus.RUNNING}'"
IS_CLAIMABLE = f"%s IN ({_words(CLAIMABLE)})"
IS_HELD, IS_FREE = "NOT (%s = '')", "%s = ''"


class _Stated(Lookup):
    """A condition on one column, written into the statement as it is.

    A lookup, because on SQLite Django 6 compares any other expression with true, which hides it from the planner.
    """

    prepare_rhs = False

    def __init__(self, column: str, condition: str) -> None:
        super().__init__(F(column), condition)

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[str | int, ...]]:
        column, params = self.process_lhs(compiler, connection)
        return self.rhs % column, tuple(params)


def abnormal(jobs: QuerySet[M]) -> QuerySet[M]:
    """Keep the jobs whose status is not one of the normal path: by status, newest first (`job_abnormal`)."""
    return jobs.filter(_Stated("status", IS_ABNORMAL))


def running(jobs: QuerySet[M]) -> QuerySet[M]:
    """Keep the jobs that run (`job_running`)."""
    return jobs.filter(_Stated("status", IS_RUNNING))


def ready(jobs: QuerySet[M]) -> QuerySet[M]:
    """Keep the jobs that could be claimed now: by queue (`job_ready`)."""
    return jobs.filter(ready_at__isnull=False)


def due(jobs: QuerySet[M]) -> QuerySet[M]:
    """Keep the jobs that become claimable by time alone: by due time (`job_due`)."""
    claimable = _Stated("status", IS_CLAIMABLE)
    return jobs.filter(_Stated("hold_reason", IS_FREE), claimable, ready_at__isnull=True)


def held(jobs: QuerySet[M]) -> QuerySet[M]:
    """Keep the jobs on hold: newest first (`job_held`)."""
    return jobs.filter(_Stated("hold_reason", IS_HELD))


def whole(minutes: QuerySet[M]) -> QuerySet[M]:
    """Keep the counts of all queues together: by minute (`minute_whole`)."""
    return minutes.filter(_Stated("queue", "%s = ''"))


def open_effects(slots: QuerySet[M]) -> QuerySet[M]:
    """Keep the slots whose outcome is open: longest unchanged first (`effect_open`)."""
    return slots.filter(_Stated("status", f"%s IN ({_words(OPEN_EFFECT)})"))


def unanswered(proposals: QuerySet[M]) -> QuerySet[M]:
    """Keep the proposals that nobody has decided: by case (`proposal_open_once`)."""
    return proposals.filter(_Stated("decision", "%s = ''"))
