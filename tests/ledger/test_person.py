"""A person's verbs: what they refuse and why, and what they leave in the feed."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from jobs.handlers import Options
from jobs.models import Change, EffectSlot, Job
from jobs.outcomes import InvalidJob, Lease, Refused
from jobs.status import HoldReason, JobStatus, WaitReason
from tests import build
from tests.build import KIND, QUEUE, at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "because"}


def _version(key: Lease | uuid.UUID) -> int:
    version: int = build.row(key)["state_version"]
    return version


def _retry(key: Lease | uuid.UUID, **more: Any) -> JobStatus:
    return V.retry(build.id_of(key), state_version=_version(key), **BY, now=at(30), **more)


def _revise(key: Lease | uuid.UUID, arguments: Any = None, **more: Any) -> int:
    given = {"x": 1} if arguments is None else arguments
    return V.revise(build.id_of(key), given, state_version=_version(key), **BY, now=at(30), **more)


def _refused(call: Any) -> tuple[str, dict[str, Any]]:
    with pytest.raises(Refused) as refused:
        call()
    assert str(refused.value) not in ("", refused.value.code), "a refusal has its sentence"
    return refused.value.code, refused.value.params


# -- retry ------------------------------------------------------------------------------------------


def test_retry_gives_a_fresh_budget_and_keeps_the_history():
    lease = build.running(max_attempts=1)
    V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", "boom", retry_after=0, now=at(1))
    assert _retry(lease) == "pending"
    row = build.row(lease)
    assert (row["attempt_count"], row["attempts_excused"], row["claim_generation"]) == (1, 1, 1)
    again = build.claim(build.id_of(lease), now=at(31))
    assert again.generation == 2
    V.fail(again, "RUNTIME_HANDLER_EXCEPTION", "boom", retry_after=0, now=at(32))
    assert build.row(lease)["status"] == "failed"
    assert [a.status for a in Job.objects.get().attempts.order_by("generation")] == ["failed", "failed"]


def test_retry_of_a_cancelled_job_forgets_the_request_and_keeps_its_number():
    lease = build.job(JobStatus.CANCELLED)
    assert _retry(lease) == "pending"
    row = build.row(lease)
    assert (row["cancel_requested_at"], row["cancel_requested_by"], row["cancel_generation"]) == (None, "", 1)
    again = build.claim(build.id_of(lease), now=at(31))
    assert again.cancel_generation == 1
    assert V.commit(again, 1, now=at(32)).landed


def test_retry_names_the_job_that_holds_the_key_meanwhile():
    lease = build.job(JobStatus.FAILED, unique_key="k")
    holder = build.enqueue(unique_key="k", now=at(5))
    code, params = _refused(lambda: _retry(lease))
    assert (code, params["job_id"]) == ("KEY_TAKEN", str(holder))
    V.cancel(holder, **BY, now=at(6))
    assert _retry(lease) == "pending"


def test_retry_of_a_job_that_keeps_its_key_for_ever_is_not_in_its_own_way():
    assert _retry(build.job(JobStatus.FAILED, unique_key="k", unique_scope="ever")) == "pending"


def test_retry_under_a_cancelled_parent_is_refused():
    parent = build.enqueue()
    child = build.enqueue(parent_id=parent)
    V.cancel(parent, **BY, now=at(1))
    assert build.row(child)["status"] == "cancelled"
    code, params = _refused(lambda: _retry(child))
    assert (code, params["parent_id"]) == ("PARENT_CANCELLED", str(parent))
    _retry(parent)
    assert _retry(child) == "pending"


def test_retry_while_evidence_contradicts_is_refused():
    lease = build.job(JobStatus.FAILED)
    build.edit(lease, hold_reason=HoldReason.CONTRADICTION)
    assert _refused(lambda: _retry(lease))[0] == "CONTRADICTION"


def test_retry_after_the_deadline_needs_a_new_one():
    lease = build.job(JobStatus.FAILED, deadline=20)
    assert _refused(lambda: _retry(lease))[0] == "DEADLINE_PASSED"
    assert _refused(lambda: _retry(lease, deadline_at=at(30)))[0] == "DEADLINE_PASSED"
    assert _retry(lease, deadline_at=at(31)) == "pending"
    assert build.row(lease)["deadline_at"] == at(31)


@pytest.mark.parametrize("nonsense", [datetime(2026, 3, 1), "tomorrow"])
def test_new_deadline_must_be_an_instant(nonsense):
    lease = build.job(JobStatus.FAILED)
    with pytest.raises(InvalidJob, match="deadline_at"):
        _retry(lease, deadline_at=nonsense)


def test_retry_after_an_effect_that_may_have_been_sent_was_abandoned_is_refused():
    lease = build.job(JobStatus.FAILED)
    build.effect(lease, status="abandoned")
    assert _refused(lambda: _retry(lease))[0] == "EFFECT_ABANDONED"


def test_passed_deadline_is_named_although_an_earlier_revision_abandoned_an_effect():
    lease = build.job(JobStatus.FAILED, deadline=20)
    build.effect(lease, status="abandoned", revision=0)
    assert _refused(lambda: _retry(lease))[0] == "DEADLINE_PASSED"


def test_retried_job_that_is_held_waits_for_the_hold_to_be_lifted():
    lease = build.job(JobStatus.FAILED, held=True)
    _retry(lease)
    assert V.claim_job(build.id_of(lease), worker_id="w", now=at(31)) is None
    assert V.unhold(build.id_of(lease), **BY, now=at(32))
    assert V.claim_job(build.id_of(lease), worker_id="w", now=at(33)) is not None


# -- revise -----------------------------------------------------------------------------------------


def test_revision_reaches_the_holder_as_stale_input_and_its_release_costs_nothing():
    lease = build.running(max_attempts=1)
    assert _revise(lease, {"x": 2}) == 2
    assert V.commit(lease, 1, now=at(31)).code == "STALE_INPUT"
    assert V.stage(lease, 1, now=at(31)).code == "STALE_INPUT"
    assert V.renew(lease, now=at(31)).landed, "the lease is untouched"
    assert V.release(lease, now=at(32)).status == "pending"
    again = build.claim(build.id_of(lease), now=at(33))
    assert (again.revision, again.input) == (2, '{"x":2}')
    assert V.commit(again, 1, now=at(34)).landed


def test_revision_to_the_same_input_is_a_revision_all_the_same():
    lease = build.claim(build.enqueue({"x": 1}))
    assert _revise(lease, {"x": 1}) == 2
    assert V.commit(lease, 1, now=at(31)).code == "STALE_INPUT"


def test_bad_input_is_refused_and_nothing_is_written():
    lease = build.running()
    before = build.row(lease)
    with pytest.raises(InvalidJob, match="arguments/x"):
        _revise(lease, {"x": float("nan")})
    assert build.row(lease) == before


def test_revision_where_effects_took_place_must_say_what_becomes_of_them():
    lease = build.running()
    build.effect(lease, status="committed")
    assert _refused(lambda: _revise(lease))[0] == "EFFECTS_COMMITTED"
    assert _refused(lambda: _revise(lease, effects="forget"))[0] == "EFFECTS_COMMITTED"
    assert _revise(lease, effects="keep_effects") == 2
    assert _revise(lease, effects="repeat_effects") == 3


def test_revision_closes_what_was_never_sent():
    lease = build.running()
    build.effect(lease, slot="one", status="prepared", grants=0)
    build.effect(lease, slot="two", status="absent")
    _revise(lease)
    assert set(EffectSlot.objects.values_list("slot", "status")) == {
        ("one", "abandoned"),
        ("two", "abandoned"),
    }


def test_revision_asks_an_approval_anew():
    lease = build.running()
    build.end_waiting_for_approval(lease)
    assert V.claim_job(build.id_of(lease), worker_id="w", now=at(29)) is None
    _revise(lease)
    assert build.row(lease)["status"] == "waiting"
    assert V.claim_job(build.id_of(lease), worker_id="w", now=at(31)) is not None


# -- hold -------------------------------------------------------------------------------------------


def test_hold_lets_the_holder_run_and_not_commit():
    lease = build.running()
    assert V.hold(build.id_of(lease), **BY, now=at(1))
    assert V.renew(lease, now=at(2)).landed
    assert V.commit(lease, 1, now=at(3)).reason == "HELD"
    assert V.unhold(build.id_of(lease), **BY, now=at(4))
    assert V.commit(lease, 1, now=at(5)).landed


def test_released_job_is_claimable_at_once_without_a_promotion():
    """A worker's claim, which sends no instant, promotes nothing."""
    job_id = V.enqueue(KIND, {}).job_id
    assert V.hold(job_id, **BY)
    assert V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND]) == []
    assert V.unhold(job_id, **BY)
    assert len(V.claim(worker_id="w", queues=[QUEUE], kinds=[KIND])) == 1


def test_released_job_that_is_not_due_is_not_claimable():
    job_id = build.enqueue(delay=60)
    V.hold(job_id, **BY, now=at(1))
    V.unhold(job_id, **BY, now=at(2))
    assert build.row(job_id)["ready_at"] is None


def test_hold_for_another_reason_takes_the_place_of_the_first():
    job_id = build.enqueue()
    assert V.hold(job_id, **BY, now=at(1))
    assert not V.hold(job_id, **BY, now=at(2))
    assert V.hold(job_id, hold_reason=HoldReason.QUARANTINE, **BY, now=at(3))
    assert build.row(job_id)["hold_reason"] == "quarantine"


# -- all of them ------------------------------------------------------------------------------------

CALLS: dict[str, Any] = {
    "cancel": lambda key, by: V.cancel(key, **by, now=at(30)),
    "force_cancel": lambda key, by: V.force_cancel(key, state_version=1, **by, now=at(30)),
    "retry": lambda key, by: V.retry(key, state_version=1, **by, now=at(30)),
    "revise": lambda key, by: V.revise(key, {}, state_version=1, **by, now=at(30)),
    "hold": lambda key, by: V.hold(key, **by, now=at(30)),
    "unhold": lambda key, by: V.unhold(key, **by, now=at(30)),
}


@pytest.mark.parametrize("verb", CALLS)
def test_job_that_is_not_there_is_named(verb):
    missing = uuid.uuid4()
    assert _refused(lambda: CALLS[verb](missing, BY)) == ("NOT_FOUND", {"job_id": str(missing)})


@pytest.mark.parametrize("verb", CALLS)
def test_reason_is_asked_for_and_bounded(verb):
    job_id = build.enqueue()
    refused = {
        "": "REASON_MISSING",
        " \n": "REASON_MISSING",
        "\u200b\u202e": "REASON_MISSING",
        "x" * 1001: "REASON_TOO_LONG",
    }
    for reason, code in refused.items():
        if verb == "cancel" and code == "REASON_MISSING":
            continue  # nothing has to be explained to stop what has not begun
        assert _refused(lambda: CALLS[verb](job_id, {"actor": "ann", "reason": reason}))[0] == code  # noqa: B023
    assert build.row(job_id)["state_version"] == 1


def test_every_verb_is_in_the_feed_with_who_and_why():
    lease = build.running()
    key = build.id_of(lease)
    V.hold(key, **BY, now=at(1))
    V.unhold(key, **BY, now=at(2))
    _revise(lease)
    V.cancel(key, **BY, now=at(4))
    V.force_cancel(key, state_version=_version(lease), **BY, now=at(5))
    _retry(lease)
    V.cancel(key, **BY, now=at(40))
    said = Change.objects.exclude(verb="claim").order_by("id").values_list("verb", "jobs", "actor", "reason")
    statuses = ["running", "running", "running", "running", "cancelled", "pending", "cancelled"]
    verbs = ["hold", "unhold", "revise", "cancel", "force_cancel", "retry", "cancel"]
    assert list(said) == [
        (verb, [[lease.job_id, status]], "ann", "because")
        for verb, status in zip(verbs, statuses, strict=True)
    ]


def test_force_cancel_leaves_the_old_holder_with_nothing():
    lease = build.running()
    assert V.force_cancel(build.id_of(lease), state_version=_version(lease), **BY, now=at(1)) == "cancelled"
    for outcome in (
        V.renew(lease, now=at(2)),
        V.commit(lease, 1, now=at(2)),
        V.release(lease, now=at(2)),
    ):
        assert outcome.reason == "GENERATION"
    assert V.acknowledge_cancel(lease, now=at(2)).replay, "what it wants to say is so already"
    assert build.attempt(lease)["status"] == "cancelled"


def test_approval_never_comes_due_by_time():
    lease = build.running()
    assert V.wait(lease, WaitReason.APPROVAL, seconds=5, now=at(1)).landed
    assert build.row(lease)["next_attempt_at"] is None
    V.runtime.promote(now=at(9_999))
    assert V.claim_job(build.id_of(lease), worker_id="w", now=at(9_999)) is None


def test_wait_that_is_no_approval_needs_an_end():
    with pytest.raises(ValueError, match="say how many seconds"):
        V.wait(build.running(), WaitReason.SIGNAL, now=at(1))


def test_options_of_a_batch_are_each_jobs_own():
    calls: list[Any] = [(KIND, {"n": n}, Options(priority=n, label=f"job {n}")) for n in range(3)]
    ids = [answer.job_id for answer in V.enqueue_many(calls, now=at(0))]  # type: ignore[union-attr]
    assert [(build.row(i)["priority"], build.row(i)["label"]) for i in ids] == [
        (0, "job 0"),
        (1, "job 1"),
        (2, "job 2"),
    ]
