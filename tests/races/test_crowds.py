"""Many at once, unscheduled: what no order of two or three shows. Seeds are printed by a failure."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet

from jobs.handlers import Options
from jobs.models import Attempt, Job, Scheduler
from jobs.outcomes import Lease, Refused
from jobs.status import AttemptStatus, JobStatus
from tests.build import KIND, at, claim, enqueue
from tests.races.aside import Aside
from tests.races.ground import PERSON, coherent, queue, take
from tests.races.interleave import PATIENCE


def test_eight_workers_share_five_hundred_jobs_though_somebody_holds_what_the_first_claim_would_write(
    transactional_db: None,
) -> None:
    name = queue()
    added = Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * 500)

    def work(number: int) -> list[str]:
        mine = []
        while leases := take(name, worker=f"h:{number}:w", max_claims=10):
            mine += [lease.job_id for lease in leases]
        return mine

    rival = Attempt(
        id=uuid.uuid4(),
        job_id=added[0].job_id,
        generation=1,
        worker_id="nobody",
        scheduler_epoch=1,
        started_at=datetime.now(UTC),
    )

    with transaction.atomic():
        QuerySet[Attempt](Attempt).bulk_create([rival])
        crowd = [Aside(lambda number=number: work(number)) for number in range(8)]  # type: ignore[misc]
        for member in crowd:
            assert member.began.wait(PATIENCE)
        transaction.set_rollback(True)
    claimed = [job_id for member in crowd for job_id in member.answer()]
    # Whoever found the rest locked by the others has stopped; what it left is still to be had.
    claimed += work(9)
    assert Counter(claimed) == Counter(entry.job_id.hex for entry in added)
    assert Job.objects.filter(queue=name, status=JobStatus.RUNNING, attempt_id__isnull=False).count() == 500
    assert Attempt.objects.filter(job__queue=name, status=AttemptStatus.RUNNING).count() == 500


def test_writers_of_an_older_epoch_have_nothing_accepted_after_each_of_twenty_raises(
    transactional_db: None,
) -> None:
    stop = threading.Event()
    over: set[int] = set()
    """Epochs above which a raise has returned."""
    landed = threading.Semaphore(0)

    def write(number: int) -> list[str]:
        late = []
        name = queue()
        while not stop.is_set():
            epoch = Scheduler.objects.get().epoch
            Job.objects.enqueue_many([(KIND, {}, Options(queue=name))])
            for lease in take(name, worker=f"h:{number}:w", epoch=epoch):
                too_late = epoch in over  # looked at before the write is sent
                if Job.objects.commit(lease, 1).landed:
                    landed.release()
                    if too_late:
                        late.append(lease.job_id)
        return late

    writers = [Aside(lambda number=number: write(number)) for number in range(2)]  # type: ignore[misc]
    for _ in range(20):
        for _ in range(3):
            assert landed.acquire(timeout=PATIENCE), "they do write"
        epoch = Scheduler.objects.get().epoch
        assert Job.objects.raise_epoch(expected=epoch, **PERSON) == epoch + 1
        over.add(epoch)
    stop.set()
    assert [writer.answer() for writer in writers] == [[], []]


def test_a_writer_that_holds_the_database_for_a_while_makes_nobody_fail(transactional_db: None) -> None:
    name = queue()
    leases = [claim(enqueue(queue=name), epoch=1) for _ in range(2)]
    verbs: list[Callable[[], Any]] = [
        lambda: enqueue(queue=name),
        lambda: take(name, now=at(1)),
        lambda: Job.objects.runtime.renew(leases[:1], now=at(1))[0].landed,
        lambda: Job.objects.commit(leases[1], 1, now=at(1)).landed,
        lambda: Job.objects.recover(now=at(1)) == [],
    ]
    with transaction.atomic():
        enqueue(queue=name)
        crowd = [Aside(verb) for verb in verbs]
        for member in crowd:
            assert member.began.wait(PATIENCE)
    assert all(answer is not False for answer in [member.answer() for member in crowd])


def storm(seed: int, jobs: list[uuid.UUID], name: str, rounds: int) -> Counter[str]:
    """Do whatever comes to mind to the same jobs, in batches and in any order; count what landed."""
    rng = random.Random(seed)
    landed: Counter[str] = Counter()
    held: list[Lease] = []

    def note(verb: str, outcomes: Any) -> None:
        landed[verb] += sum(outcome.landed for outcome in outcomes)

    for second in range(rounds):
        now = at(second * 20)
        rng.shuffle(held)
        match rng.randrange(6):
            case 0 | 1:
                held += take(name, worker=f"h:{seed}:w", max_claims=5, ttl=30, now=now)
            case 2:
                note("renew", Job.objects.runtime.renew(held, now=now))
            case 3:
                part, held = held[:3], held[3:]
                note("commit", Job.objects.commit_many([(lease, 1) for lease in part], now=now))
            case 4:
                landed["recover"] += len(Job.objects.recover(now=now))
            case _:
                job = Job.objects.get(pk=rng.choice(jobs))
                verb = rng.choice(["cancel", "hold", "unhold", "force_cancel", "retry"])
                extra = {"state_version": job.state_version} if verb in ("force_cancel", "retry") else {}
                try:
                    getattr(Job.objects, verb)(job.pk, **PERSON, **extra, now=now)
                    landed[verb] += 1
                except Refused:
                    landed["refused"] += 1
    return landed


@pytest.mark.parametrize("seed", [1])
def test_whatever_six_do_to_the_same_jobs_at_once_every_job_stays_coherent(
    transactional_db: None, seed: int
) -> None:
    name = queue()
    added = Job.objects.enqueue_many([(KIND, {}, Options(queue=name, max_attempts=10_000))] * 30, now=at(0))
    jobs = [entry.job_id for entry in added]
    crowd = [
        Aside(lambda own=own: storm(seed * 100 + own, jobs, name, 40))  # type: ignore[misc]
        for own in range(6)
    ]
    landed: Counter[str] = sum((member.answer() for member in crowd), Counter())
    assert landed["commit"] == Attempt.objects.filter(status=AttemptStatus.COMMITTED).count()
    # Which verbs land is up to the threads: one that is ahead in time takes back what the others hold.
    assert sum(landed.values()) > len(jobs), "something did happen"
    for job_id in jobs:
        coherent(job_id, recent=10_000)
