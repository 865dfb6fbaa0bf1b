"""The readings behind metrics and health: exact up to their bound, and never the price of a large table."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from jobs import measures
from jobs.ledger import metrics
from jobs.ledger.reading import reading
from jobs.models import Job
from jobs.status import HoldReason, JobStatus
from tests import build
from tests.build import KIND, at, enqueue, id_of

pytestmark = pytest.mark.django_db

NOW = at(100)


@pytest.fixture
def read():
    """A function that takes one reading at an instant."""

    def take(figure, *args, now=NOW):
        with reading("default", now=now) as session:
            return figure(session, *args)

    return take


def test_queue_shows_its_depth_and_its_oldest_job(read):
    enqueue(queue="b", now=at(5))
    enqueue(queue="a", now=at(7))
    enqueue(queue="a", priority=9, now=at(8))
    enqueue(queue="later", delay=1000)
    build.running(queue="taken")
    assert read(metrics.waiting) == [metrics.Waiting("a", 2, at(7)), metrics.Waiting("b", 1, at(5))]


def test_job_that_came_due_while_no_worker_was_alive_is_waiting_too(read):
    enqueue(queue="a", delay=10)
    enqueue(queue="a", now=at(50))
    enqueue(queue="b", delay=20)
    assert read(metrics.waiting, now=at(9)) == [metrics.Waiting("a", 1, at(50))]
    assert read(metrics.waiting) == [metrics.Waiting("a", 2, at(10)), metrics.Waiting("b", 1, at(20))]


def test_depth_stops_at_its_bound(read, monkeypatch):
    monkeypatch.setattr(metrics, "BOUND", 3)
    Job.objects.enqueue_many([(KIND, {}, None)] * 5, now=at(0))
    assert read(metrics.waiting) == [metrics.Waiting("default", 3, at(0))]


def test_lease_counts_as_expired_from_its_very_end_and_after_a_raise(read):
    build.running(queue="a", now=at(0))
    build.running(queue="b", now=at(50))
    a, b = read(metrics.running, now=at(60) - timedelta(microseconds=1))
    assert (a, b) == (metrics.Held("a", 1, 0, None), metrics.Held("b", 1, 0, None))
    assert read(metrics.running, now=at(60))[0] == metrics.Held("a", 1, 1, at(60))
    build.raise_epoch(now=at(60))
    assert [held.expired for held in read(metrics.running, now=at(61))] == [1, 1]


def test_what_waits_for_a_person_is_counted(read):
    build.job(JobStatus.UNCERTAIN)
    Job.objects.hold(id_of(build.job(JobStatus.PENDING)), actor="me", reason="r", now=at(2))
    Job.objects.hold(
        id_of(build.running(now=at(2))), actor="me", reason="r", hold_reason=HoldReason.QUARANTINE, now=at(3)
    )
    assert read(metrics.uncertain) == {KIND: 1}
    assert read(metrics.held) == {"operator": 1, "quarantine": 1}
    [effect] = read(metrics.open_effects)
    assert (effect.replay, effect.number, effect.oldest_at) == ("non_replayable", 1, at(1))


def test_readings_wait_for_no_writer(read, transactional_db):
    writing, done = threading.Event(), threading.Event()

    def write():
        try:
            with transaction.atomic():
                enqueue(now=at(0))
                writing.set()
                done.wait(60)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert writing.wait(60)
        for figure in (metrics.waiting, metrics.running, metrics.uncertain, metrics.held, metrics.totals):
            assert not read(figure)
    finally:
        done.set()
        writer.join()
    assert len(read(metrics.waiting)) == 1


@pytest.mark.parametrize(
    ("text", "index"),
    [
        (metrics.READY, "job_ready"),
        (metrics.DUE, "job_due"),
        (metrics.RUNNING, "job_running"),
        (metrics.UNCERTAIN, "job_abnormal"),
        (metrics.HELD, "job_held"),
        (metrics.OPEN_EFFECTS, "effect_open"),
    ],
)
def test_reading_walks_an_index_that_holds_what_it_asks_for_only(text, index):
    Job.objects.enqueue_many([(KIND, {}, None)] * 50, now=at(0))
    with reading("default", now=at(1)) as session:
        rows = session.run(
            f"{connection.ops.explain_query_prefix()} {text}",
            bound=10,
            queues=10,
            ever=measures.EVER,
        )
    plan = "\n".join(str(row[-1]) for row in rows)
    assert index in plan
    assert "Seq Scan on jobs_job" not in plan
    assert not [
        line
        for line in plan.splitlines()
        if line.startswith(("SCAN j", "SCAN s")) and "INDEX" not in line and "jobs_scheduler" not in line
    ], plan


def test_totals_grow_with_every_flush_and_survive_the_minutes(read):
    from jobs.ledger import worker
    from jobs.ledger.session import transact
    from jobs.models import Minute
    from jobs.vocabulary import JOB

    def flush():
        rows = measures.drain()
        transact(lambda s: worker.add_minutes(s, rows), using="default", vocabulary=JOB, durable=False)

    measures.count("fence.commit.checked", 2)
    measures.observe("due_to_commit", 0.004, queue="q", kind="k")
    flush()
    measures.count("fence.commit.checked", 3)
    flush()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_minute WHERE minute > %s", [str(measures.EVER.replace(tzinfo=None))])
    assert Minute.objects.exclude(minute=measures.EVER).count() == 0
    assert set(read(metrics.totals)) == {
        metrics.Total("fence.commit.checked", "", "", 0, 5, 0.0),
        metrics.Total("due_to_commit", "q", "k", 5, 1, 4.0),
    }


def test_counts_of_several_minutes_go_into_one_total(read):
    from jobs.ledger import worker
    from jobs.ledger.session import transact
    from jobs.vocabulary import JOB

    row = {"measure": "m", "queue": "", "kind": "", "bucket": 0, "count": 1, "total": 0.5}
    rows = [row | {"minute": at(60 * n)} for n in range(3)]
    transact(lambda s: worker.add_minutes(s, rows), using="default", vocabulary=JOB, durable=False)
    assert read(metrics.totals) == [metrics.Total("m", "", "", 0, 3, 1.5)]


def test_claims_and_attempts_and_reclaims_are_counted():
    lease = build.running(now=at(0))
    runtime = Job.objects.runtime
    runtime.claim(worker_id=build.WORKER, queues=["none"], kinds=[KIND], now=at(1))
    Job.objects.recover(now=at(70))
    again = build.claim(id_of(lease), now=at(71))
    Job.objects.commit(again, None, now=at(72))
    Job.objects.commit(again, None, now=at(72))  # a replay ends nothing
    counted = {row["measure"]: (row["count"], row["total"]) for row in measures.drain()}
    assert counted["claims"] == counted["claims_empty"] == (1, 0.0)
    assert counted["attempts"] == (1, 2.0)
    assert counted["reclaim_delay"] == (1, 10_000.0)


def _tried():
    names = ("retries", "failed", "recovered.pending", "recovered.failed")
    rows = measures.drain()
    return tuple(sum(int(str(row["count"])) for row in rows if row["measure"] == name) for name in names)


def test_retry_is_an_attempt_after_which_the_job_goes_on_and_a_last_one_is_none():
    job_id = enqueue(max_attempts=2)
    fail = Job.objects.fail
    first = build.claim(job_id, now=at(0))
    assert fail(first, "RUNTIME_HANDLER_EXCEPTION", "no", retry_after=1, now=at(1)).landed
    assert fail(first, "RUNTIME_HANDLER_EXCEPTION", "no", retry_after=1, now=at(1)).replay
    assert _tried() == (1, 0, 0, 0)
    last = build.claim(job_id, now=at(3))
    assert fail(last, "RUNTIME_HANDLER_EXCEPTION", "no", retry_after=1, now=at(4)).status == "failed"
    assert _tried() == (0, 1, 0, 0)


def test_release_and_wait_are_no_retries():
    for n in range(2):
        Job.objects.release(build.running(now=at(n)), now=at(n + 1))
        Job.objects.wait(build.running(now=at(n)), seconds=5, now=at(n + 1))
    assert _tried() == (0, 0, 0, 0)


def test_lost_lease_is_a_retry_whoever_takes_it_back():
    lost, taken = build.running(now=at(0), max_attempts=2), build.running(now=at(0), max_attempts=2)
    assert Job.objects.claim_job(id_of(taken), worker_id=build.RIVAL, ttl=60, now=at(70))
    assert _tried() == (0, 0, 1, 0)
    Job.objects.recover(now=at(70))
    assert _tried() == (0, 0, 1, 0)
    build.claim(id_of(lost), now=at(71))
    assert Job.objects.claim_job(id_of(taken), worker_id=build.WORKER, now=at(200)) is None
    Job.objects.recover(now=at(200))
    assert _tried() == (0, 0, 0, 2)
