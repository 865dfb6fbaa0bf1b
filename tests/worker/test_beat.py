"""The heartbeat: what it writes, when, and what it does with the answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from jobs import measures
from jobs.models import Job, Scheduler
from jobs.models import Worker as WorkerRow
from jobs.outcomes import Code, Outcome
from jobs.status import JobStatus
from tests.build import at
from tests.worker.scene import Scene, kind, last, measured, put, row

pytestmark = pytest.mark.django_db


def holding(count: int = 1) -> tuple[Scene, list[Any]]:
    scene = Scene(kinds=[kind().name], concurrency=count)
    ids = [scene.enqueue(kind()) for _ in range(count)]
    scene.claim()
    return scene, ids


def beat(scene: Scene) -> None:
    scene.worker.beat.turn(now=scene.now)


def test_leases_are_renewed_every_heartbeat_and_never_run_out() -> None:
    scene, (job_id,) = holding()
    for _ in range(300):
        scene.seconds += 1
        beat(scene)
        ends = row(job_id).lease_expires_at
        assert ends is not None
        assert ends > scene.now + timedelta(seconds=60 - 2 * 15)
    assert last(job_id).beats >= 300 / 15 - 1


def test_all_leases_are_renewed_in_one_statement() -> None:
    scene, _ = holding(40)
    scene.seconds = 20
    with CaptureQueriesContext(connection) as queries:
        scene.renew()
    assert sum("lease_expires_at = " in q["sql"] for q in queries) == 1


def test_a_lease_that_is_fresh_is_left_alone() -> None:
    """Most jobs end before they would ever be renewed: renewing them would only lock their rows."""
    scene, (job_id,) = holding()
    scene.seconds = 7
    scene.worker.beat.renew(now=scene.now)
    assert row(job_id).lease_expires_at == at(60)
    scene.seconds = 8
    scene.worker.beat.renew(now=scene.now)
    assert row(job_id).lease_expires_at == at(68)


def test_a_renewal_that_failed_is_sent_again_at_the_next_turn() -> None:
    scene, (job_id,) = holding()
    scene.seconds = 20
    renew = scene.worker.runtime.renew

    def gone(*_given: Any, **_more: Any) -> Any:
        raise OperationalError("connection lost")

    put(scene.worker.runtime, "renew", gone)
    with pytest.raises(OperationalError):
        beat(scene)
    put(scene.worker.runtime, "renew", renew)
    beat(scene)
    assert row(job_id).lease_expires_at == at(80)


def test_a_row_that_somebody_holds_is_asked_for_again_soon_and_not_given_up() -> None:
    scene, _ = holding()
    put(scene.worker.runtime, "renew", lambda leases, **_: [Outcome(Code.BUSY) for _ in leases])
    scene.seconds = 20
    beat(scene)
    (held,) = scene.worker.holdings
    assert not held.lost
    assert scene.worker.beat._next_renewal <= scene.boottime() + 1


def test_a_renewal_that_was_granted_moves_the_workers_own_deadline_from_before_it_was_sent() -> None:
    scene, _ = holding()
    (held,) = scene.worker.holdings
    renew = scene.worker.runtime.renew

    def slow(*given: Any, **more: Any) -> Any:
        outcomes = renew(*given, **more)
        scene.seconds += 5
        return outcomes

    put(scene.worker.runtime, "renew", slow)
    scene.seconds = 20
    scene.renew()
    assert held.surely_ends == 1_000 + 20 + 60


def test_a_lost_lease_is_not_renewed_any_more() -> None:
    scene, (job_id,) = holding()
    Job.objects.force_cancel(
        job_id, state_version=row(job_id).state_version, actor="ann", reason="x", now=scene.now
    )
    scene.renew()
    assert not scene.worker.holdings


def test_an_ending_that_landed_a_moment_ago_is_not_taken_for_a_lost_lease() -> None:
    """The renewal was under way while the commit landed, so the ledger says that nothing is running."""
    scene, (job_id,) = holding()
    (held,) = scene.worker.holdings
    scene.run()
    Job.objects.commit(held.lease, None, now=scene.now)
    scene.renew()
    assert not held.lost
    scene.settle()
    assert row(job_id).status == JobStatus.SUCCEEDED
    assert scene.worker.tally.lost == 0


def test_an_idle_worker_writes_one_row_in_ten_seconds() -> None:
    scene = Scene(kinds=[kind().name])
    scene.step()
    measures.drain()
    writes = []
    for _ in range(10):
        scene.seconds += 1
        with CaptureQueriesContext(connection) as queries:
            scene.step()
        writes += [q["sql"] for q in queries if "UPDATE" in q["sql"] or "INSERT" in q["sql"]]
    assert len(writes) == 1
    assert "jobs_worker" in writes[0]


def test_an_idle_step_asks_one_question() -> None:
    scene = Scene(kinds=[kind().name])
    scene.step()
    scene.seconds += 1
    with CaptureQueriesContext(connection) as queries:
        scene.step()
    assert len(queries) == 1


def test_the_workers_row_tells_what_it_runs_and_when_each_loop_last_passed() -> None:
    seen: list[WorkerRow] = []

    def handler() -> None:
        scene.worker.beat.write_row(now=scene.now)
        seen.append(WorkerRow.objects.get(pk=scene.worker.id))

    scene = Scene(kinds=[kind(handler).name])
    scene.enqueue(kind(handler))
    scene.step()
    assert seen[0].running == 1
    assert {"attend", "claim"} <= set(seen[0].passes)
    assert seen[0].beat_at == at(0)


def test_progress_and_log_are_written_with_the_beat_while_the_handler_runs() -> None:
    seen: list[Any] = []

    def handler(ctx: Any) -> None:
        ctx.progress(1, 4, "first")
        ctx.log("line one")
        scene.worker.beat.write_notes(now=scene.now)
        seen.append(last(job_id))

    scene = Scene(kinds=[kind(handler).name])
    job_id = scene.enqueue(kind(handler))
    scene.step()
    assert (seen[0].progress_done, seen[0].progress_total, seen[0].progress_note) == (1, 4, "first")
    assert (seen[0].log, last(job_id).log) == ("line one", "line one")


def test_counts_reach_the_minutes_and_come_back_when_they_cannot_be_written() -> None:
    scene = Scene(kinds=[kind().name])
    scene.step()
    measures.count("tests.measure", 3)
    beat_row = scene.worker.beat._write

    def gone(*_given: Any) -> Any:
        raise OperationalError("connection lost")

    put(scene.worker.beat, "_write", gone)
    with pytest.raises(OperationalError):
        scene.worker.beat.write_row(now=scene.now)
    put(scene.worker.beat, "_write", beat_row)
    scene.worker.beat.write_row(now=scene.now)
    assert measured("tests.measure").get().count == 3


def test_a_fenced_worker_stops_and_claims_nothing_more() -> None:
    scene = Scene(kinds=[kind().name])
    scene.step()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_worker SET fenced_at = beat_at WHERE id = %s", [scene.worker.id])
    job_id = scene.enqueue(kind())
    scene.seconds = 20
    assert scene.step() == 0
    assert row(job_id).status == JobStatus.PENDING
    assert scene.worker.stop.asked.is_set()
    assert scene.worker.stop.code == 1
    assert scene.worker.beat.fenced


def test_a_clock_that_went_back_closes_claims_and_says_why() -> None:
    scene, _ = holding()
    scene.seconds = 100
    scene.worker.beat.write_row(now=scene.now)
    assert Scheduler.objects.get().clock_high_water == at(100)
    scene.seconds = 98
    scene.worker.attend(now=scene.now)
    state = Scheduler.objects.get()
    assert (state.claims_open, state.reason) == (False, "clock")
    assert scene.worker.id in state.changed_by


def test_a_clock_within_a_second_of_its_mark_closes_nothing() -> None:
    scene, _ = holding()
    scene.seconds = 100
    scene.worker.beat.write_row(now=scene.now)
    scene.seconds = 99
    scene.worker.beat.write_row(now=scene.now)
    scene.worker.attend(now=scene.now)
    assert Scheduler.objects.get().claims_open


def test_the_beat_itself_notices_that_the_clock_went_back() -> None:
    scene, _ = holding()
    scene.seconds = 100
    scene.worker.beat.write_row(now=scene.now)
    scene.seconds = 90
    scene.worker.beat.write_row(now=scene.now)
    assert Scheduler.objects.get().reason == "clock"


def test_a_cancel_request_is_told_within_a_probe_rather_than_a_heartbeat() -> None:
    scene, (job_id,) = holding()
    beat(scene)
    scene.seconds = 1
    Job.objects.cancel(job_id, actor="ann", now=scene.now)
    scene.worker.attend(now=scene.now)
    beat(scene)
    (held,) = scene.worker.holdings
    assert held.cancel_requested


def test_worker_writes_down_the_release_that_it_is_told_else_that_of_python(settings: Any) -> None:
    def written() -> str:
        scene = Scene(kinds=[kind().name])
        scene.worker.register(now=scene.now)
        return WorkerRow.objects.get(pk=scene.worker.id).version

    assert written().startswith("python 3.")
    settings.WORKER_VERSION = "8.4.1-" + "x" * 50
    assert written() == ("8.4.1-" + "x" * 50)[:40]
