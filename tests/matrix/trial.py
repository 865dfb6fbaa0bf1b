"""One guarded statement, tried on a row and a token of which every predicate holds, or all but one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobs.outcomes import Lease
from jobs.status import JobStatus
from tests import build
from tests.build import TICK, at


@dataclass
class Trial:
    """What a statement is given; a case changes one thing of it, here or in the database."""

    lease: Lease
    now: datetime
    given: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One predicate falsified alone (`refused` says how that is answered), or still just true ("")."""

    predicate: str
    title: str
    change: Callable[[Trial], Any]
    refused: str = ""
    lifts: tuple[str, ...] = ()
    """constraints that would refuse such a row whatever the statement does"""


@dataclass(frozen=True)
class Statement:
    """A guarded statement: how to build what it accepts, how to run it; `run` returns "" when it landed."""

    name: str
    build: Callable[[], Trial]
    run: Callable[[Trial], str]
    cases: tuple[Case, ...]


Change = Callable[[Trial], Any]
NOTHING = "nothing"
UNCHANGED = Case("all", "every predicate holds", lambda trial: None)


def edited(**columns: Any) -> Change:
    """Write the row by hand."""
    return lambda trial: build.edit(trial.lease, **columns)


def given(**values: Any) -> Change:
    """Give the statement something else."""
    return lambda trial: trial.given.update(values)


def token(**columns: Any) -> Change:
    """Present another token."""

    def change(trial: Trial) -> None:
        trial.lease = trial.lease._replace(**columns)

    return change


def instant(moment: datetime) -> Change:
    """Judge at another instant."""

    def change(trial: Trial) -> None:
        trial.now = moment

    return change


def deadline(ticks: int) -> Change:
    """Put the row's deadline so many ticks after the instant."""
    return lambda trial: build.edit(trial.lease, deadline_at=trial.now + ticks * TICK)


def another(status: JobStatus) -> Change:
    """Try it on a job of another status, all else being as a job of that status has it."""

    def change(trial: Trial) -> None:
        trial.lease = build.job(status)

    return change


def of(status: JobStatus, **options: Any) -> Callable[[], Trial]:
    """Build a job of `status` that is looked at thirty seconds after it was claimed."""
    return lambda: Trial(build.job(status, **options), at(30))


def answer(statement: Statement, case: Case) -> str:
    """Return what the statement answers to one case; everything is taken back."""
    with build.undone(), ExitStack() as stack:
        if case.lifts:
            stack.enter_context(build.unconstrained(*case.lifts))
        trial = statement.build()
        case.change(trial)
        return statement.run(trial)
