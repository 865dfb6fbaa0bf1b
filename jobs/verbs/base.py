"""What the verbs have in common: the runtime of Job, and how a person's verb runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from django.db import models

from jobs.hooks import JobHooks
from jobs.ledger.session import Session, transact
from jobs.models.protected import ProtectedQuerySet
from jobs.outcomes import Refused
from jobs.runtime import DurableJobRuntime
from jobs.vocabulary import JOB

if TYPE_CHECKING:
    from jobs.models.job import Job

HOOKS = JobHooks()
"""One set for the process; append callbacks to `HOOKS.on_ended` and `HOOKS.on_recovered`."""
Result = TypeVar("Result")


class Verbs(models.Manager.from_queryset(ProtectedQuerySet)):  # type: ignore[misc]
    """A manager of jobs. Reads are those of a query set; its writing methods are refused."""

    if TYPE_CHECKING:
        model: type[Job]

    @property
    def runtime(self) -> DurableJobRuntime:
        """The set-based verbs, for workers."""
        return DurableJobRuntime(JOB, hooks=HOOKS, using=self.db)

    def _operate(self, work: Callable[[Session], Result], now: datetime | None) -> Result:
        """Run a person's verb, in the caller's transaction if there is one: its audit row goes along."""
        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False)


def need_reason(reason: str) -> None:
    """Refuse a reason that says nothing, or more than is kept."""
    if is_blank(reason):
        raise Refused("REASON_MISSING")
    need_short(reason)


def is_blank(text: str) -> bool:
    """Tell whether nobody could read anything in it: blanks, controls and marks without a width only."""
    return all(character == " " or not character.isprintable() for character in text)


def need_short(reason: str) -> None:
    """Refuse a reason that is longer than what is kept."""
    if len(reason) > 1000:
        raise Refused("REASON_TOO_LONG", limit=1000)
