"""Recovery under contention: what expired is taken back once, however many look for it."""

from __future__ import annotations

import threading
import uuid
from collections import Counter

from jobs.handlers import Options
from jobs.ledger.settle import Ended
from jobs.manager import HOOKS
from jobs.models import Attempt, Change, Job
from jobs.status import AttemptStatus, JobStatus
from tests.build import KIND, WORKER, at, claim, enqueue
from tests.races.aside import Aside
from tests.races.ground import alone, coherent, end_all, history, job_of, queue, take
from tests.races.interleave import Race, Run, Scene


def expired(number: int) -> list[uuid.UUID]:
    """Return that many jobs whose leases have run out at 60 s."""
    name = queue()
    added = Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * number, now=at(0))
    assert len(take(name, max_claims=number, ttl=60, now=at(0))) == number
    return [entry.job_id for entry in added]


def test_three_reapers_take_each_of_a_hundred_lost_jobs_back_once(transactional_db: None) -> None:
    jobs = expired(100)
    told: list[str] = []
    HOOKS.on_recovered.append(told.extend)

    def reap() -> list[str]:
        mine = []
        while page := Job.objects.recover(limit=7, now=at(60)):
            mine += [entry.id for entry in page]
        return mine

    reapers = [Aside(reap) for _ in range(3)]
    ids = Counter(job_id for reaper in reapers for job_id in reaper.answer())
    # A reaper that skipped what the others held may have stopped too early for the rest.
    ids.update(reap())
    expected = Counter(job_id.hex for job_id in jobs)
    assert ids == expected
    assert Counter(told) == expected
    entries = [entry for change in Change.objects.filter(verb="recover") for entry in change.jobs]
    assert Counter(job_id for job_id, _ in entries) == expected
    assert Attempt.objects.filter(status=AttemptStatus.LOST).count() == 100
    counts = Job.objects.filter(pk__in=jobs).values_list("status", "claim_generation", "attempt_count")
    assert set(counts) == {("pending", 2, 1)}


def test_reapers_and_a_takeover_meet_on_two_jobs_and_each_is_taken_back_once(race: Race) -> None:
    def scene() -> Scene:
        end_all()
        jobs = expired(2)

        def check(run: Run) -> None:
            taken = run.answers["takeover"]
            found = [entry.id for name in ("one", "two") for entry in run.answers[name]]
            assert len(found) == len(set(found))
            for job_id in jobs:
                verbs = [verb for verb, _ in history(job_id)]
                assert verbs.count("recover") + (verbs.count("claim") - 1) <= 2
                coherent(job_id)
                assert Attempt.objects.filter(job_id=job_id, status=AttemptStatus.LOST).count() <= 1
            if taken is None:
                assert jobs[0].hex in found, "somebody else had it"

        def reap() -> list[Ended]:
            return Job.objects.recover(now=at(60))

        return Scene(
            {
                "one": reap,
                "two": reap,
                "takeover": lambda: Job.objects.claim_job(jobs[0], worker_id="h:9:z", epoch=1, now=at(60)),
            },
            check,
        )

    explored = race.explore(scene, most=30)
    assert explored.retries == 0


def test_a_recoverer_that_acts_on_a_list_it_read_before_does_nothing_the_second_time(
    transactional_db: None,
) -> None:
    (job_id,) = expired(1)
    one = Job.objects.runtime.lapsed_ids(now=at(60))
    two = Job.objects.runtime.lapsed_ids(now=at(60))
    assert one == two == [job_id.hex]
    assert len(Job.objects.runtime.recover_one(one[0], now=at(60))) == 1
    assert Job.objects.runtime.recover_one(two[0], now=at(60)) == []
    claimed = claim(job_id, now=at(60))
    assert Job.objects.runtime.recover_one(two[0], now=at(61)) == []
    assert Job.objects.commit(claimed, 1, now=at(62)).landed


def test_what_is_claimed_in_the_very_instant_of_a_recovery_is_left_alone(race: Race) -> None:
    def scene() -> Scene:
        end_all()
        job_id = enqueue(queue=queue())

        def check(run: Run) -> None:
            assert run.answers["recover"] == []
            assert run.answers["claim"] is not None
            assert coherent(job_id).claim_generation == 1

        return Scene(
            {
                "claim": lambda: Job.objects.claim_job(job_id, worker_id=WORKER, epoch=1, now=at(60)),
                "recover": lambda: Job.objects.recover(now=at(60)),
            },
            check,
        )

    assert race.explore(scene).complete


def test_five_hundred_jobs_submitted_while_a_recovery_never_rests_run_once_each(
    transactional_db: None,
) -> None:
    stop = threading.Event()

    def reap() -> int:
        found = 0
        while not stop.is_set():
            found += len(Job.objects.recover())
        return found

    reaper = Aside(reap)
    name = queue()
    leases = []
    for _ in range(50):
        Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * 10)
        leases += take(name, max_claims=10)
    outcomes = Job.objects.commit_many([(lease, 1) for lease in leases])
    stop.set()
    assert reaper.answer() == 0
    assert len(leases) == 500
    assert all(outcome.landed and not outcome.replay for outcome in outcomes)
    assert set(Job.objects.filter(queue=name).values_list("status", "claim_generation")) == {
        (JobStatus.SUCCEEDED.value, 1)
    }


def test_a_lease_that_ends_and_one_that_was_renewed_in_the_same_page_are_told_apart(race: Race) -> None:
    def scene() -> Scene:
        kept = alone()
        lost = claim(enqueue(queue=queue()), epoch=1)

        def check(run: Run) -> None:
            found = {entry.id for entry in run.answers["recover"]}
            assert lost.job_id in found or run.answers["recover"] == []
            renewed = run.answers["renew"][0]
            assert renewed.landed != (kept.job_id in found) or renewed.code == "BUSY"
            coherent(job_of(kept))

        return Scene(
            {
                "renew": lambda: Job.objects.runtime.renew([kept], now=at(59)),
                "recover": lambda: Job.objects.recover(now=at(60)),
            },
            check,
        )

    assert race.explore(scene).complete
