"""Enqueue: an INSERT in the caller's own transaction, and what its options make of the row.

Keys under contention, with several connections and rollbacks, are raced in tests/races/test_keys.py.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from jobs.handlers import Options
from jobs.models import Job
from jobs.outcomes import Enqueued, InvalidJob, KeyConflict, Refused
from jobs.status import JobStatus
from tests import build
from tests.build import KIND, QUEUE, T0, TICK, at

pytestmark = pytest.mark.django_db
V = Job.objects


class Undo(Exception):
    """The caller's own reason to roll back."""


def _key(
    key: str = "k", arguments: dict[str, Any] | None = None, *, kind: str = KIND, **more: Any
) -> Enqueued:
    return V.enqueue(kind, arguments or {}, options=Options(unique_key=key, **more), now=T0)


def _claimed(count: int = 1, now: datetime = T0) -> list[uuid.UUID]:
    leases = V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], max_claims=count, now=now)
    return [build.id_of(lease) for lease in leases]


# -- the caller's transaction -----------------------------------------------------------------------


def test_job_is_there_exactly_if_the_callers_transaction_commits(django_user_model):
    def order(fails: bool) -> None:
        with transaction.atomic():
            user = django_user_model.objects.create_user(f"buyer {fails}")
            V.enqueue(KIND, {"user": user.pk}, now=T0)
            if fails:
                raise Undo

    order(fails=False)
    with pytest.raises(Undo):
        order(fails=True)
    assert [job.arguments["user"] for job in Job.objects.all()] == [django_user_model.objects.get().pk]


def test_refused_enqueue_leaves_the_callers_transaction_whole(django_user_model):
    """A key conflict is an answer, not a database error: the caller may go on and commit."""
    _key()
    with transaction.atomic():
        with pytest.raises(KeyConflict):
            _key(arguments={"x": 2})
        django_user_model.objects.create_user("still here")
    assert django_user_model.objects.count() == 1


def test_batch_with_one_bad_job_adds_none():
    calls: list[Any] = [(KIND, {"n": 1}, None), (KIND, {"n": float("nan")}, None)]
    with pytest.raises(InvalidJob, match="arguments/n"):
        V.enqueue_many(calls, now=T0)
    assert not Job.objects.exists()


# -- unique keys ------------------------------------------------------------------------------------


def test_same_key_and_input_answers_with_the_first_job():
    first, second = _key(arguments={"a": [1, 2]}), _key(arguments={"a": [1, 2]})
    assert (first.created, second.created) == (True, False)
    assert first.job_id == second.job_id == Job.objects.get().pk


def test_order_of_names_makes_no_other_input():
    assert _key(arguments={"a": 1, "b": 2}).job_id == _key(arguments={"b": 2, "a": 1}).job_id


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (KIND, {"a": [2, 1]}),
        (KIND, {"a": [1, "2"]}),
        (KIND, {"a": ["1", 2]}),
        (KIND, {"a": [1, 2], "b": None}),
        (KIND, {"a": [1, 2.5]}),
        (KIND, {"\N{LATIN SMALL LETTER A WITH DIAERESIS}": 1}),
        (KIND, {"a\N{COMBINING DIAERESIS}": 1}),
        ("tests.other", {"a": [1, 2]}),
    ],
)
def test_same_key_with_other_content_is_refused_and_the_first_job_untouched(kind, arguments):
    first = _key(arguments={"a": [1, 2]})
    before = build.row(first.job_id)
    with pytest.raises(KeyConflict) as refused:
        _key(kind=kind, arguments=arguments)
    assert (refused.value.job_id, refused.value.key) == (first.job_id, "k")
    assert build.row(first.job_id) == before
    assert Job.objects.count() == 1


def test_whole_number_written_with_a_point_is_the_same_input():
    """RFC 8785 knows one number: 2 and 2.0 have one digest, and 2.5 has another."""
    assert _key(arguments={"n": 2}).job_id == _key(arguments={"n": 2.0}).job_id


@pytest.mark.parametrize("status", sorted(JobStatus))
def test_key_of_unfinished_scope_is_held_until_the_job_ends(status):
    lease = build.job(status, unique_key="k")
    answer = _key()
    unfinished = status in (
        JobStatus.PENDING,
        JobStatus.BLOCKED,
        JobStatus.RUNNING,
        JobStatus.WAITING,
        JobStatus.UNCERTAIN,
    )
    assert answer.created is not unfinished
    assert (answer.job_id == build.id_of(lease)) is unfinished


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_key_of_ever_scope_is_held_for_good(status):
    lease = build.job(status, unique_key="k", unique_scope="ever")
    assert _key().job_id == build.id_of(lease)
    assert _key(unique_scope="ever").job_id == build.id_of(lease)
    with pytest.raises(KeyConflict):
        _key(arguments={"x": 1})


def test_batch_of_2500_with_duplicates_inside_answers_each_in_its_place():
    calls: list[Any] = []
    for number in range(2_500):
        key = f"k{number % 900}" if number % 2 else None
        calls.append((KIND, {"n": number % 900}, Options(unique_key=key)))
    calls[1_777] = (KIND, {"n": "other"}, Options(unique_key="k1"))
    answers = V.enqueue_many(calls, now=T0)
    firsts: dict[str, uuid.UUID] = {}
    kept = {job.pk: job.arguments for job in Job.objects.all()}
    for number, ((_, arguments, options), answer) in enumerate(zip(calls, answers, strict=True)):
        if number == 1_777:
            assert isinstance(answer, KeyConflict)
            assert answer.job_id == firsts["k1"]
            continue
        assert isinstance(answer, Enqueued)
        assert answer.created == (options.unique_key is None or options.unique_key not in firsts)
        if options.unique_key:
            assert firsts.setdefault(options.unique_key, answer.job_id) == answer.job_id
        assert kept[answer.job_id] == arguments
    assert len(kept) == 1_250 + len(firsts)


# -- when and in which order ------------------------------------------------------------------------


def test_delay_is_not_due_a_tick_before():
    job_id = build.enqueue(delay=90.5)
    assert build.row(job_id)["next_attempt_at"] == at(90.5)
    assert build.row(job_id)["ready_at"] is None
    assert _claimed(now=at(90.5) - TICK) == []
    assert _claimed(now=at(90.5)) == [job_id]


def test_instant_in_the_past_is_due_at_once_and_goes_first():
    late = build.enqueue(now=at(10))
    early = build.enqueue(due_at=at(-86_400), now=at(10))
    assert _claimed(2, now=at(10)) == [early, late]


def test_far_future_is_kept_exactly_and_never_due():
    far = datetime(8999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    job_id = build.enqueue(due_at=far, deadline_at=far)
    assert (build.row(job_id)["next_attempt_at"], build.row(job_id)["deadline_at"]) == (far, far)
    assert _claimed(now=datetime(2999, 1, 1, tzinfo=UTC)) == []
    assert V.recover(now=datetime(2999, 1, 1, tzinfo=UTC)) == []
    for options in ({"due_at": datetime(9001, 1, 1, tzinfo=UTC)}, {"delay": 1e12}):
        with pytest.raises(InvalidJob):
            build.enqueue(**options)


def test_higher_priority_first_then_due_time_then_age():
    second = build.enqueue(priority=5, now=at(1))
    third = build.enqueue(priority=5, now=at(2))
    fourth, fifth = build.enqueue(now=at(0)), build.enqueue(now=at(0))
    last = build.enqueue(priority=-100, now=at(0))
    first = build.enqueue(priority=100, now=at(3))
    assert _claimed(9, now=at(5)) == [first, second, third, fourth, fifth, last]


def test_one_at_a_time_comes_in_the_same_order_as_a_batch():
    ids = [build.enqueue(priority=p, now=at(n)) for n, p in enumerate([0, 7, -3, 7, 0])]
    taken = [_claimed(1, now=at(9))[0] for _ in ids]
    assert taken == [ids[1], ids[3], ids[0], ids[4], ids[2]]


def test_far_future_at_top_priority_hides_nothing():
    V.enqueue_many([(KIND, {}, Options(priority=100, delay=10**8))] * 300, now=T0)
    due = build.enqueue(priority=-100)
    assert _claimed(5, now=at(1)) == [due]


def test_held_and_unknown_heads_hide_nothing():
    for _ in range(3):
        build.hold(build.enqueue(priority=100))
    V.enqueue_many([("tests.strange", {}, Options(priority=100))] * 300, now=T0)
    due = build.enqueue()
    assert _claimed(5, now=at(1)) == [due]


def test_retried_job_stands_in_the_same_order():
    first, second = build.running(), build.running()
    V.fail(second, "RUNTIME_HANDLER_EXCEPTION", retry_after=1, now=at(2))
    V.fail(first, "RUNTIME_HANDLER_EXCEPTION", retry_after=5, now=at(1))
    between = build.enqueue(now=at(4))
    assert _claimed(5, now=at(10)) == [build.id_of(second), between, build.id_of(first)]


def test_deadline_ends_a_job_that_nobody_took():
    job_id = build.enqueue(deadline=50)
    assert build.row(job_id)["deadline_at"] == at(50)
    assert V.recover(now=at(50) - TICK) == []
    assert _claimed(now=at(50)) == []
    (ended,) = V.recover(now=at(50))
    assert (ended.status, build.row(job_id)["error_code"]) == ("failed", "JOB_DEADLINE_EXCEEDED")


def test_lease_never_reaches_past_the_deadline():
    lease = build.running(deadline=20)
    assert lease.lease_expires_at == at(20)
    assert V.renew(lease, now=at(19)).lease_expires_at == at(20)


# -- parents ----------------------------------------------------------------------------------------


def test_child_knows_its_parent():
    parent = build.enqueue()
    child = build.enqueue(parent_id=parent)
    assert [job.pk for job in Job.objects.get(pk=parent).children.all()] == [child]


def test_child_of_nobody_is_refused_by_name():
    with pytest.raises(InvalidJob, match="parent_id: there is no job"):
        build.enqueue(parent_id=uuid.uuid4())


@pytest.mark.parametrize("nonsense", ["", "x", 7, "00000000-0000-0000-0000-00000000000g"])
def test_parent_that_is_no_id_is_refused_by_name(nonsense):
    with pytest.raises(InvalidJob, match="parent_id"):
        build.enqueue(parent_id=nonsense)


@pytest.mark.parametrize("form", [str, lambda parent: parent.hex, lambda parent: str(parent).upper()])
def test_parent_may_be_named_in_any_form_of_its_id(form):
    parent = build.enqueue()
    assert build.row(build.enqueue(parent_id=form(parent)))["parent_id"] == parent


def test_cancelled_or_cancel_requested_parent_gets_no_child():
    cancelled, asked = build.enqueue(), build.id_of(build.running())
    for parent in (cancelled, asked):
        V.cancel(parent, actor="someone", reason="stop", now=at(1))
        with pytest.raises(Refused, match="cancelled"):
            build.enqueue(parent_id=parent, now=at(2))


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.RUNNING])
def test_parent_in_any_other_status_may_have_children(status):
    parent = build.id_of(build.job(status))
    assert build.row(build.enqueue(parent_id=parent, now=at(5)))["parent_id"] == parent


def test_new_row_says_nothing_that_has_not_happened():
    row = build.row(build.enqueue({"x": 1}, enqueued_by="ann", label="one"))
    said = {name: value for name, value in row.items() if value not in (None, "", 0)}
    assert said == {
        "id": row["id"],
        "kind": KIND,
        "queue": QUEUE,
        "label": "one",
        "status": "pending",
        "state_version": 1,
        "input": '{"x":1}',
        "input_digest": row["input_digest"],
        "revision": 1,
        "unique_scope": "unfinished",
        "enqueued_by": "ann",
        "created_at": T0,
        "ready_at": T0,
        "next_attempt_at": T0,
        "lease_seconds": 60,
        "max_attempts": 20,
    }
