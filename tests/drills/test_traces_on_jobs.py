"""The golden traces once more, through `Job.objects`: the full vocabulary, on the product's own tables."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection

from jobs.drills.moment import instant, seconds
from jobs.drills.outside import OutsideLedger
from jobs.drills.record import Record, Row
from jobs.drills.scenarios import LEASE_SECONDS, SCENARIOS
from jobs.drills.step import Action, Returned, Scenario, Step
from jobs.handlers import job
from jobs.models import Job
from jobs.outcomes import Lease

WORDS = {"succeeded": "done"}
WITHOUT_SLOTS = [scenario for scenario in SCENARIOS if not scenario.replay]


class Course:
    """One scenario's workers, and the leases that they hold in memory."""

    def __init__(self, outside: OutsideLedger) -> None:
        self.outside = outside
        self.leases: dict[str, Lease] = {}
        self.job_id = uuid.UUID(int=0)

    def perform(self, step: Step) -> Returned:
        now, actor = instant(step.t), step.actor
        match step.action:
            case Action.ENQUEUE:
                self.job_id = Job.objects.enqueue("drill.trace", {}, now=now).job_id
            case Action.CLAIM:
                lease = Job.objects.claim_job(self.job_id, worker_id=actor, now=now)
                self.leases |= {actor: lease} if lease else {}
                return lease.generation if lease else None
            case Action.RENEW:
                return Job.objects.renew(self.leases[actor], now=now).landed
            case Action.FINISH_DONE:
                return Job.objects.commit(self.leases[actor], now=now).landed
            case Action.FINISH_UNCERTAIN:
                return Job.objects.uncertain(self.leases[actor], "the answer was lost", now=now).landed
            case Action.EXIT:
                raw = connection.connection
                connection.close()
                connection.ensure_connection()
                assert connection.connection is not raw
            case Action.ACT_UNANSWERED:
                with pytest.raises(TimeoutError):
                    self.outside.act("job", actor, answers=False)
                return "timeout"
            case Action.ACT_AGAIN:
                return self.outside.act("job", actor, answers=True)
            case Action.READ_OUTSIDE:
                return self.outside.count("job")
        return None

    def look(self) -> Row:
        found = Job.objects.get(pk=self.job_id)
        return Row(
            WORDS.get(found.status, found.status),
            found.claim_generation,
            seconds(found.lease_expires_at),
            self.outside.count("job"),
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scenario", WITHOUT_SLOTS, ids=lambda s: s.name)
def test_the_full_vocabulary_gives_every_golden_value(scenario: Scenario, tmp_path):
    @job("drill.trace", lease=LEASE_SECONDS)
    def trace() -> None: ...

    course = Course(OutsideLedger(tmp_path / "outside"))
    record = Record(scenario)
    for step in scenario.steps:
        record.add(course.perform(step), course.look())
    assert record.deviations() == []
    assert record.ok
