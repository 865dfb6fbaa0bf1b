"""The timeline: real times in order, idle time folded, words that do not lie over one another."""

import itertools
from datetime import timedelta

import pytest

from console import timeline
from console.axis import FOLD, LEFT, RIGHT, Axis
from jobs.models import Attempt, EffectSlot, FenceRefusal, Job
from jobs.status import JobStatus, WaitReason
from tests import build

pytestmark = pytest.mark.looks_alike


def at(seconds):
    return build.at(seconds)


def test_instants_keep_their_order_and_their_proportion():
    axis = Axis([(at(0), at(100))])
    assert axis.place(at(0)) == LEFT
    assert axis.place(at(50)) == pytest.approx((LEFT + RIGHT) / 2, abs=1)
    assert axis.place(at(100)) == RIGHT


def test_idle_time_is_folded_and_what_happened_keeps_its_scale():
    axis = Axis([(at(0), at(10)), (at(100_000), at(100_010))])
    assert len(axis.folds) == 1
    fold = axis.folds[0]
    assert fold.end - fold.start == timedelta(seconds=99_990)
    assert axis.place(at(10)) == pytest.approx(fold.x, abs=1)
    assert axis.place(at(100_000)) == pytest.approx(fold.x + FOLD, abs=1)
    first = axis.place(at(10)) - axis.place(at(0))
    second = axis.place(at(100_010)) - axis.place(at(100_000))
    assert first == pytest.approx(second, abs=1)


@pytest.mark.parametrize(
    "busy",
    [
        [(0, 0)],
        [(0, 0), (0, 0)],
        [(0, 0.001)],
        [(0, 5), (5, 9), (9.5, 10)],
        [(0, 0), (4000, 4001), (90_000, 90_000)],
        [(n * 1000, n * 1000 + 1) for n in range(12)],
        [(0, 400_000_000)],
    ],
)
def test_everything_lies_on_the_chart(busy):
    axis = Axis([(at(a), at(b)) for a, b in busy])
    places = [axis.place(at(moment)) for pair in sorted(busy) for moment in pair]
    assert places == sorted(places)
    assert all(LEFT <= x <= RIGHT + 0.1 for x in places)
    marks = axis.marks()
    # Among many folds there is no room; the lanes' own words say the times then.
    assert marks or len(axis.folds) > 4
    assert all(b.x - a.x >= 60 for a, b in itertools.pairwise(marks))


def drawn(job_id, now):
    job = Job.objects.get(pk=job_id)
    attempts = list(Attempt.objects.filter(job=job).order_by("generation"))
    slots = list(EffectSlot.objects.filter(job=job))
    return timeline.draw(job, attempts, slots, list(FenceRefusal.objects.filter(job_id=job.id)), now)


@pytest.mark.django_db
def test_job_without_an_attempt_has_none():
    assert drawn(build.enqueue(now=build.T0), at(1)) is None


@pytest.mark.django_db
def test_every_attempt_effect_and_refused_write_is_drawn():
    job_id = build.enqueue(now=at(0), max_attempts=5)
    lost = build.claim(job_id, now=at(1), ttl=30)
    Job.objects.recover(now=at(40))
    second = build.claim(job_id, worker=build.RIVAL, now=at(41))
    Job.objects.uncertain(second, "no answer", now=at(50))
    Job.objects.commit(lost, 1, now=at(3000))
    line = drawn(job_id, at(3001))
    assert [lane.name for lane in line.lanes] == ["Attempt 1", "Attempt 2", "Effect"]
    assert [lane.status_class for lane in line.lanes] == ["st-warn", "st-unk", "st-unk"]
    assert [dashed for _, _, dashed in line.lanes[0].bars] == [True]
    assert "lost" in line.lanes[0].words[0].text
    assert line.lanes[0].fence_words.text == "1 write refused"
    assert line.lanes[2].below == "job.3"
    assert [length for _, length, _ in line.folds] == ["49 min 10 s"]
    assert (
        "Attempt 1 ran from 12:00:01 to 12:00:40: lost. Afterwards 1 write of it was refused."
        in line.description
    )


@pytest.mark.django_db
def test_attempt_that_runs_is_solid_till_now_and_dashed_till_its_lease_ends():
    lease = build.running(now=at(0))
    line = drawn(build.id_of(lease), at(20))
    (start, solid, _), (mid, leased, dashed) = line.lanes[0].bars
    assert dashed
    assert start + solid == pytest.approx(mid, abs=0.2)
    assert solid == pytest.approx(leased / 2, rel=0.05)
    assert line.lanes[0].status_class == "st-run"


@pytest.mark.django_db
def test_attempt_without_a_beat_is_told_from_one_that_works():
    lease = build.running(now=at(0))
    lane = drawn(build.id_of(lease), at(45)).lanes[0]
    assert lane.status_class == "st-warn"
    assert lane.words[0].text == "no beat, lease ends 12:01:00"


@pytest.mark.django_db
def test_only_the_newest_attempts_are_drawn_and_their_numbers_are_right():
    job_id = build.enqueue(now=at(0), max_attempts=40)
    for n in range(12):
        lease = build.claim(job_id, now=at(10 * n))
        Job.objects.fail(lease, "RUNTIME_HANDLER_EXCEPTION", "no", retry_after=1.0, now=at(10 * n + 5))
    line = drawn(job_id, at(200))
    assert line.hidden == 12 - timeline.ATTEMPTS
    assert [lane.name for lane in line.lanes] == [f"Attempt {n}" for n in range(5, 13)]


@pytest.mark.django_db
def test_wait_on_purpose_is_called_so():
    job_id = build.enqueue(now=at(0))
    Job.objects.wait(build.claim(job_id, now=at(0)), WaitReason.TIMER, seconds=3600, now=at(1))
    Job.objects.commit(build.claim(job_id, now=at(3700)), 1, now=at(3702))
    assert [word for _, _, word in drawn(job_id, at(3703)).folds] == ["waiting"]


@pytest.mark.django_db
@pytest.mark.parametrize("status", [s for s in JobStatus if s != JobStatus.BLOCKED])
def test_words_of_a_lane_do_not_lie_over_one_another(status):
    lease = build.job(status)
    Job.objects.renew(lease, now=at(400))
    Job.objects.renew(lease, now=at(4000))
    for lane in drawn(build.id_of(lease), at(5000)).lanes:
        words = [*lane.words, *([lane.fence_words] if lane.fence_words else [])]
        assert not any(timeline._meet(a, b) for n, a in enumerate(words) for b in words[n + 1 :])
