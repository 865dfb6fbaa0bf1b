"""The scheduler row and the queues: said once, answered truly, kept for people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.ledger import epoch as scheduler
from jobs.ledger import worker as worker_rows
from jobs.models import Change, Job, Queue, Scheduler, Worker
from jobs.outcomes import InvalidJob, Refused
from tests import build
from tests.build import KIND, QUEUE, TICK, at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "drill"}


def _claims(now: Any) -> bool:
    return bool(V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], now=now))


def _feed() -> list[str]:
    return list(Change.objects.exclude(verb="claim").order_by("id").values_list("verb", flat=True))


def test_closing_twice_is_done_once():
    assert V.close_claims(**BY, now=at(1)) is True
    assert V.close_claims(actor="bob", reason="too", now=at(2)) is False
    row = Scheduler.objects.get()
    assert (row.claims_open, row.changed_by, row.reason, row.changed_at) == (False, "ann", "drill", at(1))
    assert V.open_claims(**BY, now=at(3)) is True
    assert V.open_claims(**BY, now=at(4)) is False
    assert _feed() == ["close_claims", "open_claims"]


def test_closed_claims_stop_claims_and_nothing_else():
    lease, _ = build.running(), build.enqueue()
    V.close_claims(**BY, now=at(1))
    assert not _claims(at(2))
    assert V.renew(lease, now=at(3)).landed
    assert V.commit(lease, 1, now=at(4)).landed
    assert V.open_claims(**BY, now=at(5))
    assert _claims(at(6))


def test_clock_that_goes_back_closes_claims_and_leases_go_on():
    lease, _ = build.running(), build.enqueue()
    assert build.ledger(scheduler.mark_clock, now=at(50)) is False
    assert build.ledger(scheduler.mark_clock, now=at(49)) is False, "one second is forgiven"
    assert build.ledger(scheduler.mark_clock, now=at(49) - TICK) is True
    assert not _claims(at(49) - TICK)
    assert V.renew(lease, now=at(40)).landed
    assert V.commit(lease, 1, now=at(41)).landed
    assert _claims(at(49))


def test_mark_of_the_clock_never_falls():
    for now in (at(50), at(10), at(49)):
        build.ledger(scheduler.mark_clock, now=now)
    assert Scheduler.objects.get().clock_high_water == at(50)


def test_opening_claims_forgets_a_mark_that_keeps_them_closed():
    """The clock was an hour ahead and has been put right: a person says that it is right now."""
    build.enqueue()
    build.ledger(scheduler.mark_clock, now=at(3600))
    assert not _claims(at(10))
    assert V.open_claims(**BY, now=at(11)) is True
    assert Scheduler.objects.get().clock_high_water is None
    assert _claims(at(12))
    build.ledger(scheduler.mark_clock, now=at(13))
    assert V.open_claims(**BY, now=at(14)) is False
    assert Scheduler.objects.get().clock_high_water == at(13)


def test_raise_wants_the_epoch_that_was_seen():
    assert V.raise_epoch(expected=1, **BY, now=at(1)) == 2
    with pytest.raises(Refused) as refused:
        V.raise_epoch(expected=1, actor="bob", reason="late", now=at(2))
    assert refused.value.code == "EPOCH_MOVED"
    assert refused.value.params == {"expected": 1, "found": 2}
    assert _feed() == ["raise_epoch"]


@pytest.mark.parametrize(("floor", "epoch"), [(0, 2), (1, 2), (2, 3), (41, 42)])
def test_raise_goes_beyond_its_floor(floor, epoch):
    assert V.raise_epoch(expected=1, floor=floor, **BY, now=at(1)) == epoch == build.epoch()


@pytest.mark.parametrize(("told", "is_open"), [(None, True), (True, True), (False, False)])
def test_raise_may_close_claims_in_the_same_breath(told, is_open):
    V.raise_epoch(expected=1, claims_open=told, **BY, now=at(1))
    assert Scheduler.objects.get().claims_open is is_open


def test_raise_writes_no_job_row():
    lease = build.running()
    before = build.row(lease)
    V.raise_epoch(expected=1, **BY, now=at(1))
    assert build.row(lease) == before


def test_queue_is_paused_until_its_time_and_resumed_once():
    build.enqueue()
    V.pause_queue(QUEUE, **BY, until=at(60), now=at(1))
    row = Queue.objects.get()
    assert (row.paused_at, row.paused_until, row.paused_by, row.pause_reason) == (
        at(1),
        at(60),
        "ann",
        "drill",
    )
    assert not _claims(at(60) - TICK)
    with build.undone():
        assert _claims(at(60))
    assert V.resume_queue(QUEUE, **BY, now=at(2)) is True
    assert V.resume_queue(QUEUE, **BY, now=at(3)) is False
    assert _claims(at(4))
    assert _feed() == ["pause_queue", "resume_queue"]


def test_pausing_again_keeps_since_when_and_says_the_newest_reason():
    V.pause_queue(QUEUE, **BY, until=at(60), now=at(1))
    V.pause_queue(QUEUE, actor="bob", reason="still", now=at(5))
    row = Queue.objects.get()
    assert (row.paused_at, row.paused_until, row.paused_by, row.pause_reason) == (at(1), None, "bob", "still")


def test_pause_after_one_that_is_over_begins_anew():
    V.pause_queue(QUEUE, **BY, until=at(60), now=at(1))
    V.pause_queue(QUEUE, actor="bob", reason="again", until=at(90), now=at(60))
    row = Queue.objects.get()
    assert (row.paused_at, row.paused_until, row.paused_by) == (at(60), at(90), "bob")


def _mark():
    row = Queue.objects.get()
    return scheduler.mark(row.paused_by, row.paused_at, row.paused_until, row.pause_reason)


def test_pause_on_what_was_seen_replaces_no_other_but_what_is_over():
    V.pause_queue(QUEUE, **BY, until=at(60), now=at(1))
    for seen in ("", "ann"):
        with pytest.raises(Refused) as refused:
            V.pause_queue(QUEUE, actor="eve", reason="r", seen=seen, now=at(60) - TICK)
        assert (refused.value.code, refused.value.params["by"]) == ("QUEUE_MOVED", "ann")
    V.pause_queue(QUEUE, actor="bob", reason="r", until=at(70), seen=_mark(), now=at(5))
    V.pause_queue(QUEUE, actor="eve", reason="r", seen="", now=at(70))
    assert Queue.objects.get().paused_by == "eve"


@pytest.mark.parametrize("again", [{"reason": "worse"}, {"reason": "drill", "until": at(60)}])
def test_another_pause_of_the_same_person_is_another_pause(again):
    V.pause_queue(QUEUE, **BY, now=at(1))
    seen = _mark()
    V.pause_queue(QUEUE, actor="ann", **again, now=at(5))
    for verb in (V.pause_queue, V.resume_queue):
        with pytest.raises(Refused) as refused:
            verb(QUEUE, actor="eve", reason="r", seen=seen, now=at(6))
        assert (refused.value.code, refused.value.params["by"]) == ("QUEUE_MOVED", "ann")
    assert V.resume_queue(QUEUE, actor="eve", reason="r", seen=_mark(), now=at(6)) is True
    V.pause_queue(QUEUE, **BY, now=at(7))
    seen = _mark()
    V.resume_queue(QUEUE, **BY, now=at(8))
    V.pause_queue(QUEUE, **BY, now=at(9))
    with pytest.raises(Refused):
        V.resume_queue(QUEUE, actor="eve", reason="r", seen=seen, now=at(10))


def test_claims_that_the_same_person_closed_anew_are_not_what_was_seen():
    V.close_claims(**BY, now=at(1))
    row = Scheduler.objects.get()
    seen = scheduler.mark(row.changed_by, row.changed_at)
    V.open_claims(**BY, seen=seen, now=at(2))
    V.close_claims(**BY, now=at(3))
    with pytest.raises(Refused) as refused:
        V.open_claims(actor="eve", reason="r", seen=seen, now=at(4))
    assert (refused.value.code, refused.value.params["by"]) == ("CLAIMS_MOVED", "ann")
    assert not Scheduler.objects.get().claims_open


@pytest.mark.parametrize("end", [at(0), at(5)])
def test_pause_that_would_be_over_at_once_is_refused_and_ends_no_other(end):
    V.pause_queue(QUEUE, **BY, now=at(1))
    with pytest.raises(InvalidJob, match="until: an instant that is still to come"):
        V.pause_queue(QUEUE, actor="bob", reason="wrong zone", until=end, now=at(5))
    assert Queue.objects.get().paused_by == "ann"
    assert _feed() == ["pause_queue"]


@pytest.mark.parametrize(
    "verb", ["raise_epoch", "open_claims", "close_claims", "pause_queue", "resume_queue"]
)
@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", "REASON_MISSING"),
        (" \n", "REASON_MISSING"),
        ("\u200b\ufeff", "REASON_MISSING"),
        ("x" * 1001, "REASON_TOO_LONG"),
    ],
)
def test_reason_is_asked_for(verb, reason, code):
    more: dict[str, Any] = {"raise_epoch": {"expected": 1}}.get(verb, {})
    arguments = [QUEUE] if verb.endswith("_queue") else []
    with pytest.raises(Refused) as refused:
        getattr(V, verb)(*arguments, actor="ann", reason=reason, **more, now=at(1))
    assert refused.value.code == code
    assert (build.epoch(), Scheduler.objects.get().claims_open, Queue.objects.count()) == (1, True, 0)


def test_worker_not_heard_of_for_a_day_is_pruned_and_its_job_is_not():
    lease = build.running()
    build.register(build.WORKER)
    build.register(build.RIVAL)
    assert build.ledger(worker_rows.prune, now=at(0) + timedelta(days=1)) == 0
    assert build.ledger(worker_rows.prune, now=at(0) + timedelta(days=1) + TICK) == 2
    assert not Worker.objects.exists()
    assert build.row(lease)["status"] == "running"
    assert len(V.recover(now=at(60))) == 1
