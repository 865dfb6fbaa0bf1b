"""Locks taken in another order than ours: a verb that is made the victim runs again, and nothing is lost."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from jobs.models import Job
from jobs.outcomes import Code
from jobs.status import JobStatus
from tests.build import at, claim, enqueue
from tests.races.ground import PERSON, coherent, end_all, held, job_of, queue
from tests.races.interleave import Explored, Race, Run, Scene


@pytest.fixture(autouse=True)
def _rows_are_locked(transactional_db: None) -> None:
    if not connection.features.has_select_for_update:
        pytest.skip("this database has no row locks to deadlock on")


def by_hand(ids: list[uuid.UUID]) -> str:
    """Lock rows one after the other, as somebody's own code may do in whatever order."""
    with transaction.atomic():
        for job_id in ids:
            Job.objects.select_for_update().get(pk=job_id)
    return "locked"


def against_locks_by_hand(race: Race, verb: str) -> Explored:
    """Send a batch of two leases against a transaction that locks their rows in the opposite order."""

    def scene() -> Scene:
        leases = [held(), claim(enqueue(queue=queue()), epoch=1)]
        ids = sorted(job_of(lease) for lease in leases)

        def check(run: Run) -> None:
            if verb == "commit":
                assert [answer.code for answer in run.answers[verb]] == [Code.COMMITTED] * 2
                assert {coherent(job_id).status for job_id in ids} == {JobStatus.SUCCEEDED}
            else:
                assert {answer.code for answer in run.answers[verb]} <= {Code.RENEWED, Code.BUSY}
                again = Job.objects.runtime.renew(leases, now=at(31))
                assert {answer.code for answer in again} == {Code.RENEWED}

        verbs = {
            "commit": lambda: Job.objects.commit_many([(lease, 1) for lease in leases], now=at(30)),
            "renew": lambda: Job.objects.runtime.renew(leases, now=at(30)),
        }
        return Scene({verb: verbs[verb], "hand": lambda: by_hand(ids[::-1])}, check)

    return race.explore(scene, tolerate=(OperationalError,))


def test_a_batch_of_commits_that_meets_a_deadlock_runs_again_and_lands(race: Race) -> None:
    explored = against_locks_by_hand(race, "commit")
    assert explored.complete
    assert explored.retries or "OperationalError" in explored.answers["hand"], "they did meet"


def test_a_batch_of_renewals_never_waits_and_so_never_deadlocks(race: Race) -> None:
    explored = against_locks_by_hand(race, "renew")
    assert explored.complete
    assert (explored.retries, explored.answers["hand"]) == (0, {"locked"})
    assert "BUSY" in " ".join(explored.answers["renew"])


def test_our_own_verbs_lock_a_family_in_one_order_and_never_deadlock(race: Race) -> None:
    def scene() -> Scene:
        end_all()
        parent = enqueue(queue=queue())
        children = [enqueue(queue=queue(), parent_id=parent) for _ in range(2)]
        leases = [claim(job_id, epoch=1) for job_id in (*children[::-1], parent)]

        def check(run: Run) -> None:
            for job_id in (parent, *children):
                coherent(job_id)

        return Scene(
            {
                "commit": lambda: Job.objects.commit_many([(lease, 1) for lease in leases], now=at(59)),
                "cancel": lambda: Job.objects.cancel(parent, actor="ada"),
                "recover": lambda: Job.objects.recover(now=at(60)),
            },
            check,
        )

    explored = race.explore(scene, most=30)
    assert explored.retries == 0


def test_a_raise_inside_a_transaction_that_holds_a_jobs_row_and_its_holders_commit_both_end(
    race: Race,
) -> None:
    """The raise waits for the commit's share of the scheduler, the commit for the row: one is run again."""

    def scene() -> Scene:
        from jobs.models import Scheduler

        epoch = Scheduler.objects.get().epoch
        lease = claim(enqueue(queue=queue()), epoch=epoch)

        def both() -> int:
            with transaction.atomic():
                enqueue(queue=queue(), parent_id=job_of(lease))
                return Job.objects.raise_epoch(expected=epoch, **PERSON)

        def check(run: Run) -> None:
            coherent(job_of(lease))
            raised = Scheduler.objects.get().epoch > epoch
            assert raised == isinstance(run.answers["raise"], int)
            outcome = run.answers["commit"]
            assert outcome.landed or (raised and outcome.reason == "EPOCH")
            assert not (outcome.landed and run.before("raise", "commit"))

        return Scene({"commit": lambda: Job.objects.commit(lease, 1, now=at(59)), "raise": both}, check)

    explored = race.explore(scene, tolerate=(OperationalError,))
    assert explored.complete
    assert explored.retries or "OperationalError" in explored.answers["raise"], "they did meet"


def test_a_deadlock_that_never_stops_is_raised_after_a_bounded_number_of_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jobs.ledger import session, settle

    tries: list[int] = []

    def always(*_: Any, **__: Any) -> Any:
        tries.append(1)
        with connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END $$")

    lease = held()
    monkeypatch.setattr(settle, "commit", always)
    with pytest.raises(OperationalError, match="again"):
        Job.objects.commit(lease, 1, now=at(1))
    assert len(tries) == session.RETRIES + 1
    monkeypatch.undo()
    assert Job.objects.commit(lease, 1, now=at(1)).landed, "nothing was half-done"
