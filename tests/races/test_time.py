"""Time is judged once the row is held: waiting for it makes nobody's lease longer, and the end is exact."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.ledger import dialect
from jobs.ledger.session import Session
from jobs.models import Job
from jobs.outcomes import Code, Lease, Outcome
from jobs.status import JobStatus
from tests.build import RIVAL, at, claim, enqueue
from tests.races.aside import Aside
from tests.races.ground import coherent, held, job_of, queue

Verb = Callable[[Lease], Outcome]
VERBS: dict[str, Verb] = {
    "commit": lambda lease: Job.objects.commit(lease, 1),
    "stage": lambda lease: Job.objects.stage(lease, 1),
    "fail": lambda lease: Job.objects.fail(lease, "RUNTIME_HANDLER_EXCEPTION", retry_after=0),
}


def outwait(verb: Verb) -> tuple[Outcome, uuid.UUID]:
    """Send a verb a moment before its lease ends, while somebody holds the job's row until after the end.

    A busy machine may take longer than that moment to send it; then another job gets a longer one.
    """
    for moment in (0.4, 1.6, 6.4, 25.6):
        began = datetime.now(UTC) - timedelta(seconds=60 - moment)
        lease = claim(enqueue(queue=queue(), now=began), now=began)
        assert lease.lease_expires_at is not None
        with transaction.atomic():
            # A caller that enqueues children and goes on working: it holds the parent's row, changes nothing.
            enqueue(queue=queue(), parent_id=job_of(lease))
            late = Aside(partial(verb, lease))
            waits = late.comes_to_wait()
            in_time = clock() < lease.lease_expires_at
            assert waits or not in_time, "it did not wait"
            while clock() <= lease.lease_expires_at:
                late.join(0.005)
        answer = late.answer()
        if in_time:
            return answer, job_of(lease)
    raise AssertionError("this machine stalled before the verb was sent, four times")


def clock() -> datetime:
    """Return the time as the database's clock says it."""
    if not connection.features.has_select_for_update:
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_lease_that_ran_out_while_its_holder_waited_for_the_row_is_refused(
    transactional_db: None, verb: str
) -> None:
    outcome, job_id = outwait(VERBS[verb])
    assert (outcome.code, outcome.reason) == (Code.FENCED, "LEASE_EXPIRED")
    assert coherent(job_id).status == JobStatus.RUNNING
    assert job_id in {uuid.UUID(str(ended.id)) for ended in Job.objects.recover()}


@pytest.fixture
def judge_by(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bool], None]]:
    """Make the ledger judge time by another clock, and with or without holding the row first."""

    def change(clock: str, lock: bool) -> None:
        text = f"COALESCE(%(now)s::timestamptz, {clock})"
        monkeypatch.setitem(dialect.POSTGRESQL.fragments, "clock", text)
        dialect.render.cache_clear()
        if not lock:
            monkeypatch.setattr(Session, "lock", lambda self, ids: None)

    yield change
    monkeypatch.undo()
    dialect.render.cache_clear()


@pytest.mark.parametrize(
    ("clock", "lock"),
    [("transaction_timestamp()", True), ("statement_timestamp()", False), ("clock_timestamp()", False)],
)
def test_each_way_of_judging_time_before_the_row_is_held_would_be_noticed(
    transactional_db: None, judge_by: Any, clock: str, lock: bool
) -> None:
    if not connection.features.has_select_for_update:
        pytest.skip("this database locks the whole file, and its clock is read in Python after that")
    judge_by(clock, lock)
    outcome, _ = outwait(VERBS["commit"])
    assert outcome.landed, "the test above would have failed"


INSTANTS = [
    (at(60) - timedelta(microseconds=1), True),
    (at(60), False),
    (at(60) + timedelta(microseconds=1), False),
]


@pytest.mark.parametrize(("now", "holders"), INSTANTS, ids=["before", "at", "after"])
def test_at_every_instant_either_the_holder_may_act_or_a_rival_and_never_both(
    db: None, now: datetime, holders: bool
) -> None:
    ways: list[tuple[Callable[[Lease], Any], Callable[[Lease], Any]]] = [
        (
            lambda lease: Job.objects.commit(lease, 1, now=now).landed,
            lambda lease: Job.objects.claim_job(job_of(lease), worker_id=RIVAL, now=now),
        ),
        (
            lambda lease: Job.objects.renew(lease, now=now).landed,
            lambda lease: Job.objects.recover(now=now),
        ),
    ]
    for holder, rival in ways:
        assert bool(holder(held())) is holders
        assert bool(rival(held())) is not holders


def test_a_renewal_goes_round_a_row_that_somebody_holds_and_renews_the_others(transactional_db: None) -> None:
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database cannot skip a locked row")
    leases = [held(), *(claim(enqueue(queue=queue()), epoch=1) for _ in range(2))]
    with transaction.atomic():
        enqueue(queue=queue(), parent_id=job_of(leases[1]))
        renewal = Aside(lambda: Job.objects.runtime.renew(leases, now=at(30)))
        codes = [outcome.code for outcome in renewal.answer()]
    assert codes == [Code.RENEWED, Code.BUSY, Code.RENEWED]
    assert Job.objects.renew(leases[1], now=at(31)).code == Code.RENEWED
    assert [coherent(job_of(lease)).lease_expires_at for lease in leases] == [at(90), at(91), at(90)]


def test_a_row_held_beyond_its_lease_is_lost_and_not_committed(transactional_db: None) -> None:
    """What a handler pays that keeps its own job's row locked: it is told, and nothing is done twice."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database cannot skip a locked row")
    lease = held()
    with transaction.atomic():
        enqueue(queue=queue(), parent_id=job_of(lease))
        assert Aside(lambda: Job.objects.recover(now=at(61))).answer() == []
    assert Job.objects.commit(lease, 1, now=at(61)).reason == "LEASE_EXPIRED"
    assert [entry.id for entry in Job.objects.recover(now=at(61))] == [lease.job_id]
