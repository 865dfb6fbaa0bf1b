"""Runs a scenario through the real runtime, step by step, at the instants that it names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from jobs.canon import digest
from jobs.drills.database import ALIAS, ThrowAway, throw_away
from jobs.drills.model import JobState
from jobs.drills.moment import instant, seconds
from jobs.drills.record import Record, Row
from jobs.drills.scenarios import LEASE_SECONDS
from jobs.drills.slots import SlotCourse
from jobs.drills.step import Action, Returned, Scenario, Step
from jobs.outcomes import Ending, Lease, Refused
from jobs.runtime import DurableJobRuntime
from jobs.vocabulary import JOB_STATE


def run(scenario: Scenario, database: ThrowAway) -> Record:
    """Return what was observed of `scenario` on `database`.

    On the job-state table the job's id is the scenario's name; one with an effect slot runs on `Job`.
    """
    course = SlotCourse(scenario.replay, database) if scenario.replay else _Course(scenario.name, database)
    record = Record(scenario)
    for step in scenario.steps:
        record.add(_perform(course, step), course.look())
    return record


def replay(chosen: Sequence[Scenario], choice: str = "current") -> tuple[list[Record], str]:
    """Run scenarios one after the other on one throw-away database; returns the records and where that was.

    Raises CannotDrill where none can be made.
    """
    product = any(scenario.replay for scenario in chosen)
    with throw_away(choice, product=product) as database:
        return [run(scenario, database) for scenario in chosen], database.place


def _perform(course: Any, step: Step) -> Returned:
    """Do what the step says and return what its actor was told; an error of the database too."""
    try:
        told: Returned = course.perform(step)
    except (DatabaseError, Refused) as error:
        return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    return told


class _Course:
    """The workers of one scenario, and what they hold in memory: their leases."""

    def __init__(self, job_id: str, database: ThrowAway) -> None:
        self.job_id = job_id
        self.database = database
        self.runtime = DurableJobRuntime(JOB_STATE, using=ALIAS, lease_seconds=LEASE_SECONDS)
        self.leases: dict[str, Lease] = {}

    def perform(self, step: Step) -> Returned:
        """Do what the step says and return what its actor was told."""
        now = instant(step.t)
        match step.action:
            case Action.ENQUEUE:
                JobState.objects.using(ALIAS).create(id=self.job_id)
                return None
            case Action.CLAIM:
                return self._claim(step.actor, now)
            case Action.EXIT:
                self.database.reopen()
                return None
            case Action.ACT_UNANSWERED | Action.ACT_AGAIN:
                return self._act(step.actor, answers=step.action is Action.ACT_AGAIN)
            case Action.READ_OUTSIDE:
                return self.database.outside.count(self.job_id)
            case Action.RENEW | Action.FINISH_DONE | Action.FINISH_UNCERTAIN:
                return self._present(step, now)
        return f"{step.action.name} is no action of this table"

    def look(self) -> Row:
        """Return the job's row as it is now, times in seconds, and the outside count."""
        job = JobState.objects.using(ALIAS).get(pk=self.job_id)
        until = seconds(job.lease_until)
        return Row(job.status, job.generation, until, self.database.outside.count(self.job_id))

    def _claim(self, actor: str, now: datetime) -> int | None:
        lease = self.runtime.claim_job(self.job_id, worker_id=actor, now=now)
        if lease is None:
            return None
        self.leases[actor] = lease
        return lease.generation

    def _act(self, actor: str, *, answers: bool) -> int | str:
        try:
            return self.database.outside.act(self.job_id, actor, answers=answers)
        except TimeoutError:
            return "timeout"

    def _present(self, step: Step, now: datetime) -> bool | str:
        """Present the actor's lease, however old: to refuse it is the fence's business, not the drill's."""
        lease = self.leases.get(step.actor)
        if lease is None:
            return "no lease to present"
        if step.action is Action.RENEW:
            return self.runtime.renew([lease], now=now)[0].landed
        if step.action is Action.FINISH_DONE:
            return self.runtime.commit([(lease, "null", digest("null"))], now=now)[0].landed
        return self.runtime.end([Ending.uncertain(lease, "the answer was lost")], now=now)[0].landed
