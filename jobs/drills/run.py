"""Runs a scenario through the real runtime, step by step, at the instants that it names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import DatabaseError

from jobs.canon import digest
from jobs.drills.database import ALIAS, ThrowAway
from jobs.drills.model import JobState
from jobs.drills.record import Record, Row
from jobs.drills.scenarios import LEASE_SECONDS
from jobs.drills.step import Action, Returned, Scenario, Step
from jobs.outcomes import Ending, Lease
from jobs.runtime import DurableJobRuntime
from jobs.vocabulary import JOB_STATE

START = datetime(2000, 1, 1, tzinfo=UTC)
"""When every scenario begins; no clock is read."""


def run(scenario: Scenario, database: ThrowAway) -> Record:
    """Return what was observed of `scenario` on `database`; its job's id is the scenario's name."""
    course = _Course(scenario.name, database)
    record = Record(scenario)
    for step in scenario.steps:
        record.add(course.perform(step), course.look())
    return record


def instant(t: float) -> datetime:
    """Return when second `t` of a scenario is, to the microsecond."""
    return START + timedelta(microseconds=round(t * 1_000_000))


def seconds(moment: datetime | None) -> float | None:
    """Return the second of a scenario that `moment` is, exactly; a whole one as an integer."""
    if moment is None:
        return None
    whole, rest = divmod((moment - START) // timedelta(microseconds=1), 1_000_000)
    return whole + rest / 1_000_000 if rest else whole


class _Course:
    """The workers of one scenario, and what they hold in memory: their leases."""

    def __init__(self, job_id: str, database: ThrowAway) -> None:
        self.job_id = job_id
        self.database = database
        self.runtime = DurableJobRuntime(JOB_STATE, using=ALIAS, lease_seconds=LEASE_SECONDS)
        self.leases: dict[str, Lease] = {}

    def perform(self, step: Step) -> Returned:
        """Do what the step says and return what its actor was told; an error of the database too."""
        now = instant(step.t)
        try:
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
        except DatabaseError as error:
            return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"

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
