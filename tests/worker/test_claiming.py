"""What a worker claims, how much, and from where first."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job
from jobs.models import Worker as WorkerRow
from jobs.runtime import KINDS_PER_CLAIM
from jobs.status import AttemptStatus, JobStatus
from jobs.worker.loop import Worker
from jobs.worker.start import Unfit
from tests.build import at
from tests.worker.scene import Scene, attempts, kind, put, row

pytestmark = pytest.mark.django_db


def test_one_step_by_hand_claims_runs_and_commits() -> None:
    worker = Worker(kinds=[kind(lambda n: n + 1).name])
    job_id = Job.objects.enqueue("tests.kind", {"n": 1}).job_id
    assert worker.step() == 1
    assert (row(job_id).status, attempts(job_id)[0].result) == (JobStatus.SUCCEEDED, "2")


def test_a_kind_unknown_to_the_worker_is_neither_claimed_nor_burnt() -> None:
    scene = Scene(kinds=[kind().name])
    unknown = Job.objects.enqueue("tests.newer", {}, now=scene.now).job_id
    known = scene.enqueue(kind())
    for _ in range(3):
        scene.step()
    assert (row(unknown).status, row(unknown).attempt_count) == (JobStatus.PENDING, 0)
    assert row(known).status == JobStatus.SUCCEEDED


def test_of_more_kinds_than_a_claim_takes_none_waits_and_none_is_waited_for() -> None:
    names = [kind(name=f"tests.k{n}").name for n in range(2 * KINDS_PER_CLAIM + 50)]
    scene = Scene(kinds=names, queues=["default"])
    jobs = [Job.objects.enqueue(name, {}, now=scene.now).job_id for name in (names[-1], names[0])]
    assert [scene.step(), scene.step()] == [1, 1]
    assert [row(job).status for job in jobs] == [JobStatus.SUCCEEDED] * 2
    scene.step()
    scene.worker.attend(now=scene.now)
    assert not scene.worker.hungry, "a drain would never end"


def test_a_kind_known_here_but_not_asked_for_is_left_to_others() -> None:
    kind(name="tests.other")
    scene = Scene(kinds=[kind().name], queues=["default"])
    other = scene.enqueue(kind(name="tests.other"))
    scene.step()
    assert row(other).attempt_count == 0


def test_an_alias_of_a_kind_is_claimed_and_run_by_its_handler() -> None:
    ran: list[str] = []
    old = Job.objects.enqueue("tests.old-name", {}, now=at(0)).job_id
    scene = Scene(kinds=None)
    kind(lambda: ran.append("yes"), name="tests.new-name", aliases=["tests.old-name"])
    scene = Scene(kinds=["tests.new-name", "tests.old-name"])
    scene.step()
    assert (ran, row(old).status) == (["yes"], JobStatus.SUCCEEDED)


def test_a_crash_of_another_workers_kind_is_recovered_without_knowing_the_kind() -> None:
    theirs = Job.objects.enqueue("tests.theirs", {}, now=at(0)).job_id
    Job.objects.claim_job(theirs, worker_id="their:1:x", ttl=60, now=at(0))
    scene = Scene(kinds=[kind().name])
    scene.seconds = 61
    scene.step()
    assert (row(theirs).status, row(theirs).attempt_count) == (JobStatus.PENDING, 1)
    assert attempts(theirs)[0].status == AttemptStatus.LOST


def test_nothing_due_later_is_claimed() -> None:
    scene = Scene(kinds=[kind().name])
    scene.enqueue(kind(), delay=30)
    assert scene.claim() == 0
    assert scene.worker.due_at == 1_000 + 30
    scene.seconds = 30
    assert scene.claim() == 1


def test_no_more_is_claimed_than_there_are_free_slots() -> None:
    def takes_long() -> None:
        scene.seconds += 9

    scene = Scene(kinds=[kind(takes_long).name], concurrency=3)
    for _ in range(10):
        scene.enqueue(kind(takes_long))
    assert scene.claim() == 3
    assert scene.claim() == 0
    scene.run()
    assert scene.claim() == 3


def test_an_empty_claim_for_the_kinds_that_have_room_says_nothing_of_those_that_had_none() -> None:
    async def other() -> None:
        return None

    task = kind()
    scene = Scene(kinds=[task.name, kind(other, name="tests.async").name], concurrency=1)
    jobs = [scene.enqueue(task) for _ in range(2)]
    assert scene.claim() == 1
    assert scene.claim() == 0  # the only slot is busy: coroutines alone were asked for, and there are none
    scene.run()
    scene.settle()
    assert scene.claim() == 1
    scene.run()
    scene.settle()
    assert {row(job_id).status for job_id in jobs} == {JobStatus.SUCCEEDED}
    assert scene.claim() == 0
    assert not scene.worker.hungry


def test_slow_jobs_are_not_claimed_ahead() -> None:
    scene = Scene(kinds=[kind().name], concurrency=2)
    for _ in range(50):
        scene.worker.pace.note("tests.kind", 4.0)
    for _ in range(10):
        scene.enqueue(kind())
    assert scene.claim() == 2


def test_quick_jobs_are_claimed_ahead_as_far_as_the_slots_reach_in_half_a_second() -> None:
    scene = Scene(kinds=[kind().name], concurrency=2)
    for _ in range(50):
        scene.worker.pace.note("tests.kind", 0.1)
    for _ in range(30):
        scene.enqueue(kind())
    assert scene.claim() == 2 + 10


def test_one_slow_job_ends_claiming_ahead_at_once() -> None:
    scene = Scene(kinds=[kind().name], concurrency=2)
    for _ in range(50):
        scene.worker.pace.note("tests.kind", 0.001)
    assert scene.worker.pace.ahead(2) == 1000
    scene.worker.pace.note("tests.kind", 600.0)
    assert scene.worker.pace.ahead(2) == 0


def test_buffered_jobs_are_renewed_like_running_ones() -> None:
    scene = Scene(kinds=[kind().name], concurrency=3)
    ids = [scene.enqueue(kind()) for _ in range(3)]
    scene.claim()
    scene.seconds = 50
    scene.renew()
    assert {row(i).lease_expires_at for i in ids} == {at(110)}


def test_each_claim_starts_one_queue_further() -> None:
    def takes_long() -> None:
        scene.seconds += 9

    tasks = {name: kind(takes_long, name=f"tests.{name}", queue=name) for name in ("a", "b", "c")}
    scene = Scene(kinds=[task.name for task in tasks.values()], queues=["a", "b", "c"], concurrency=1)
    for task in tasks.values():
        for _ in range(2):
            scene.enqueue(task)
    order = []
    for _ in range(6):
        scene.claim()
        (held,) = scene.worker.holdings
        order.append(held.lease.queue)
        scene.run()
        scene.settle()
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_a_queue_that_is_not_served_is_left_alone() -> None:
    scene = Scene(kinds=[kind().name], queues=["default"])
    elsewhere = scene.enqueue(kind(), queue="elsewhere")
    scene.step()
    assert row(elsewhere).attempt_count == 0


def test_the_queues_served_by_default_are_those_of_the_kinds() -> None:
    kinds = [kind(name="tests.a", queue="alpha"), kind(name="tests.b", queue="beta")]
    assert Worker(kinds=[k.name for k in kinds]).queues == ["alpha", "beta"]


def test_with_claims_closed_nothing_is_claimed_and_the_next_opening_is_noticed() -> None:
    scene = Scene(kinds=[kind().name])
    job_id = scene.enqueue(kind())
    Job.objects.close_claims(actor="ann", reason="maintenance", now=scene.now)
    assert scene.step() == 0
    Job.objects.open_claims(actor="ann", reason="done", now=scene.now)
    scene.seconds = 10
    assert scene.step() == 1
    assert row(job_id).status == JobStatus.SUCCEEDED


def test_an_unknown_kind_on_the_command_line_is_refused_with_a_sentence() -> None:
    with pytest.raises(Unfit, match=r"knows no kind tests\.nowhere"):
        Worker(kinds=["tests.nowhere"])


@pytest.mark.parametrize(("lease", "fits"), [(44, False), (45, True)])
def test_a_lease_shorter_than_three_heartbeats_is_refused_at_the_start(lease: int, fits: bool) -> None:
    name = kind(lease=lease).name
    if fits:
        Worker(kinds=[name])
    else:
        with pytest.raises(Unfit, match=r"lease of 44 s.*three heartbeats of 15 s"):
            Worker(kinds=[name])


def test_a_row_with_a_shorter_lease_than_its_kind_is_renewed_in_time() -> None:
    """The job was enqueued by an older release, whose kind had a lease of six seconds."""
    kind(lease=6)
    job_id = Job.objects.enqueue("tests.kind", {}, now=at(0)).job_id
    kind(lease=60)
    scene = Scene(kinds=["tests.kind"])
    scene.claim()
    scene.worker.beat.turn(now=scene.now)
    for _ in range(6):
        scene.seconds += 2
        scene.worker.beat.turn(now=scene.now)
    assert row(job_id).lease_expires_at == at(12 + 6)


def test_every_start_has_a_worker_id_of_its_own_and_a_row() -> None:
    scenes: list[Any] = [Scene(kinds=[kind().name]) for _ in range(2)]
    for scene in scenes:
        scene.step()
    ids = {scene.worker.id for scene in scenes}
    assert set(WorkerRow.objects.values_list("id", flat=True)) == ids
    assert len(ids) == 2
    assert WorkerRow.objects.filter(kinds=["tests.kind"], queues=["default"], concurrency=4).count() == 2


def test_jobs_whose_claims_answer_was_lost_are_given_back_at_once_and_cost_no_attempt() -> None:
    scene = Scene(kinds=[kind(max_attempts=1).name])
    ids = [scene.enqueue(kind(max_attempts=1)) for _ in range(3)]
    scene.worker.register(now=scene.now)
    Job.objects.claim(
        worker_id=scene.worker.id, queues=["default"], kinds=["tests.kind"], max_claims=3, now=scene.now
    )
    assert scene.step() == 3
    for job_id in ids:
        assert (row(job_id).status, row(job_id).attempts_used) == (JobStatus.SUCCEEDED, 1)
        assert [a.status for a in attempts(job_id)] == [AttemptStatus.RELEASED, AttemptStatus.COMMITTED]


def test_what_a_worker_let_go_on_purpose_is_not_given_back_as_if_it_had_never_come() -> None:
    scene = Scene(kinds=[kind().name])
    job_id = scene.enqueue(kind())
    scene.claim()
    (held,) = scene.worker.holdings
    held.lose("ENDING_REFUSED")
    scene.worker.holdings.drop(held)
    scene.worker.attend(now=scene.now)
    assert row(job_id).status == JobStatus.RUNNING, "its lease has to run out, and to cost the attempt"


def test_what_another_worker_holds_is_never_given_back() -> None:
    scene = Scene(kinds=[kind().name])
    job_id = scene.enqueue(kind())
    Job.objects.claim_job(job_id, worker_id="other:1:x", ttl=60, now=scene.now)
    scene.step()
    assert (row(job_id).status, row(job_id).worker_id) == (JobStatus.RUNNING, "other:1:x")


def test_what_is_announced_while_a_claim_comes_back_empty_is_not_forgotten() -> None:
    scene = Scene(kinds=[kind().name])

    def announced_meanwhile(*_given: Any, **_more: Any) -> list[Any]:
        scene.worker.hungry = True  # as a notification does, from its own thread
        return []

    put(scene.worker.claims, "turn", announced_meanwhile)
    scene.claim()
    assert scene.worker.hungry


def test_a_claim_that_broke_is_made_again() -> None:
    scene = Scene(kinds=[kind().name])
    put(scene.worker.claims, "turn", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scene.claim()
    assert scene.worker.hungry


def test_while_beats_fail_nothing_is_claimed() -> None:
    scene = Scene(kinds=[kind().name])
    job_id = scene.enqueue(kind())
    put(scene.worker.beat, "write_row", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scene.worker.beat.turn(now=scene.now)
    scene.seconds = 29
    assert not scene.worker.beat.fails_for(30)
    scene.seconds = 30
    assert scene.claim() == 0
    assert row(job_id).attempt_count == 0
    del scene.worker.beat.write_row
    scene.worker.beat.turn(now=scene.now)
    assert scene.claim() == 1


def test_jobs_claimed_ahead_are_given_back_when_every_slot_stays_busy() -> None:
    seen: list[Any] = []

    def slow() -> None:
        scene.seconds += 4.9
        scene.worker.let_go()
        seen.append(len(scene.worker.slots.todo))
        scene.seconds += 0.2
        scene.worker.attend(now=scene.now)
        seen.append(len(scene.worker.slots.todo))

    scene = Scene(kinds=[kind(slow).name], concurrency=1)
    scene.worker.pace.note("tests.kind", 0.1)
    ids = [scene.enqueue(kind(slow), max_attempts=1) for _ in range(4)]
    scene.claim()
    scene.run()
    scene.settle()
    assert seen == [3, 0]
    assert [row(i).status for i in ids] == [JobStatus.SUCCEEDED, *[JobStatus.PENDING] * 3]
    assert {row(i).attempts_used for i in ids[1:]} == {0}
