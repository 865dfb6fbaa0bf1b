"""Where a run stops at an effect, and how it goes on: approval, another payload, revision, cancel, a lost
lease."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from jobs.context import Context
from jobs.handlers import job
from jobs.models import Case, Job, Proposal
from jobs.operations import cases, rulings
from jobs.stops import EffectDeclined
from tests.effects.outside import Outside, results, slot, steps, the_job, worker


def person(*codenames: str, name: str = "second") -> Any:
    found = get_user_model().objects.create(username=name)
    found.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return get_user_model().objects.get(pk=found.pk)


def approve() -> None:
    view = cases.look(Case.objects.get(closed_at=None).pk)
    rulings.approve(
        Proposal.objects.get(decision="").pk,
        actor=person("approve_ruling"),
        snapshot=view.snapshot,
        reason="checked it",
    )


def test_what_cannot_be_repeated_waits_for_a_person_and_is_sent_once_approved(outside: Outside) -> None:
    outside.kind("non_replayable")
    outside.handler().enqueue()
    steps(worker(), 2)
    assert (the_job().status, the_job().wait_reason, slot().status) == ("waiting", "approval", "prepared")
    assert not outside.done
    approve()
    steps(worker(), 1)
    assert (the_job().status, len(outside.done)) == ("succeeded", 1)
    assert Proposal.objects.get().grant_id is not None
    assert Case.objects.get().closed_as == "ruled"


def test_an_approval_is_used_up_by_one_sending(outside: Outside) -> None:
    outside.kind("non_replayable")
    outside.sending = outside.refuse_connection
    outside.handler(backoff=None).enqueue()
    steps(worker(), 1)
    approve()
    steps(worker(), 1)
    assert (slot().status, the_job().error_code) == ("absent", "EFFECT_PROVIDER_UNAVAILABLE")
    lease = Job.objects.claim_job(the_job().pk, worker_id="w")
    assert lease is None, "its back-off is not over"
    Job.objects.cancel(the_job().pk, actor="x")
    Job.objects.retry(the_job().pk, state_version=the_job().state_version, actor="x", reason="again")
    steps(worker(), 1)
    assert (the_job().status, the_job().wait_reason) == ("waiting", "approval")
    assert not outside.done


def test_another_payload_for_a_bound_key_sends_nothing_and_asks_a_person(outside: Outside) -> None:
    outside.kind("idempotent")
    outside.sending = outside.refuse_connection
    outside.handler().enqueue()
    steps(worker(), 1)
    Job.objects.cancel(the_job().pk, actor="x")
    Job.objects.retry(the_job().pk, state_version=the_job().state_version, actor="x", reason="again")
    outside.sending = outside.charge
    bound = slot().payload_digest
    outside.payload = outside.payload | {"amount": "99.00"}
    steps(worker(), 1)
    assert (the_job().status, the_job().open_effects, slot().in_conflict) == ("uncertain", 0, True)
    assert slot().payload_digest == bound
    assert Case.objects.get().kind == "conflict"
    assert not outside.done
    view = cases.look(Case.objects.get().pk)
    rulings.rule(
        view.case.pk,
        "use_recorded",
        actor=person("rule_effect"),
        reason_code="recorded_is_right",
        reason="the first amount was agreed",
        seen_version=view.case.version,
        snapshot=view.snapshot,
    )
    assert the_job().status == "pending"
    steps(worker(), 1)
    (request,) = outside.done
    assert request.payload["amount"] == "12.50"
    assert next(results())["charged"]["amount"] == "12.50"


def test_a_slot_that_was_never_sent_is_bound_anew_after_its_job_has_ended(outside: Outside) -> None:
    outside.kind("non_replayable")
    outside.handler().enqueue()
    steps(worker(), 1)
    Job.objects.cancel(the_job().pk, actor="x")
    assert slot().status == "abandoned"
    Job.objects.retry(the_job().pk, state_version=the_job().state_version, actor="x", reason="again")
    outside.payload = outside.payload | {"amount": "99.00"}
    steps(worker(), 1)
    assert (the_job().status, slot().status, slot().in_conflict) == ("waiting", "prepared", False)
    assert str(slot().amount) == "99.0000"


def test_a_committed_effect_is_not_sent_again_by_a_job_that_is_retried(outside: Outside) -> None:
    outside.kind("idempotent")
    seen: list[Any] = []

    def bill(ctx: Context) -> Any:
        seen.append(ctx.effect("tests.charge", "charge", outside.payload))
        raise ValueError("after the effect")

    bill.__qualname__ = "bill-then-break"
    job("tests.bill", max_attempts=1)(bill).enqueue()
    steps(worker(), 1)
    assert (the_job().status, slot().status) == ("failed", "committed")
    Job.objects.retry(the_job().pk, state_version=the_job().state_version, actor="x", reason="again")
    steps(worker(), 1)
    assert len(outside.done) == 1
    assert seen[0] == seen[1]


def test_after_a_cancel_request_nothing_is_sent(outside: Outside) -> None:
    outside.kind("idempotent")

    def bill(ctx: Context) -> Any:
        Job.objects.cancel(ctx.job.id, actor="x")
        return ctx.effect("tests.charge", "charge", outside.payload)

    bill.__qualname__ = "bill-cancelled"
    job("tests.bill")(bill).enqueue()
    steps(worker(), 1)
    assert (the_job().status, len(outside.done)) == ("cancelled", 0)


def test_after_a_revision_nothing_is_sent_under_the_old_input(outside: Outside) -> None:
    outside.kind("idempotent")

    def bill(ctx: Context, amount: str) -> Any:
        if amount == "1":
            version = Job.objects.get().state_version
            Job.objects.revise(ctx.job.id, {"amount": "2"}, state_version=version, actor="x", reason="typo")
        return ctx.effect("tests.charge", "charge", {"amount": amount})

    bill.__qualname__ = "bill-revised"
    job("tests.bill")(bill).enqueue(amount="1")
    steps(worker(), 1)
    assert (the_job().status, len(outside.done), the_job().attempts_used) == ("pending", 0, 0)
    steps(worker(), 1)
    assert [request.payload for request in outside.done] == [{"amount": "2"}]


def test_a_superseded_attempt_sends_nothing(outside: Outside) -> None:
    outside.kind("idempotent")

    def bill(ctx: Context) -> Any:
        Job.objects.force_cancel(
            ctx.job.id, state_version=Job.objects.get().state_version, actor="x", reason="stuck"
        )
        return ctx.effect("tests.charge", "charge", outside.payload)

    bill.__qualname__ = "bill-superseded"
    job("tests.bill")(bill).enqueue()
    steps(worker(), 1)
    assert (the_job().status, len(outside.done)) == ("cancelled", 0)


def test_a_handler_may_go_another_way_when_it_is_refused(outside: Outside) -> None:
    from jobs.effect_kinds import Declined

    outside.kind("queryable")
    outside.sending = lambda _request: (_ for _ in ()).throw(Declined("HANDLER_CONTENT_FAILED", "no"))

    def bill(ctx: Context) -> Any:
        with pytest.raises(EffectDeclined, match="no"):
            ctx.effect("tests.charge", "charge", outside.payload)
        return "by invoice"

    bill.__qualname__ = "bill-declined"
    job("tests.bill")(bill).enqueue()
    steps(worker(), 1)
    assert [*results()] == ["by invoice"]


@pytest.mark.parametrize("is_async", [True, False], ids=["async send", "plain send"])
def test_a_coroutine_awaits_its_effect(outside: Outside, is_async: bool) -> None:
    kind = outside.kind("idempotent")
    if is_async:

        async def send(request: Any) -> Any:
            return outside.charge(request)

        object.__setattr__(kind, "send", send)

    async def bill(ctx: Context) -> Any:
        return await ctx.effect("tests.charge", "charge", outside.payload)

    job("tests.bill")(bill).enqueue()
    steps(worker(), 1)
    assert (the_job().status, slot().status, len(outside.done)) == ("succeeded", "committed", 1)


@pytest.mark.parametrize(
    ("slot_name", "payload", "says"),
    [
        ("with space", {}, "slot 'with space'"),
        ("", {}, "slot ''"),
        ("ok", {"x": float("nan")}, "payload"),
        ("ok", {"x": object()}, "payload"),
        ("ok", {"x": "a" * 300_000}, "payload"),
    ],
    ids=["a space", "no name", "NaN", "no JSON", "too long"],
)
def test_a_bad_effect_fails_with_a_sentence_and_sends_nothing(
    outside: Outside, slot_name: str, payload: Any, says: str
) -> None:
    outside.kind("idempotent")

    def bill(ctx: Context) -> Any:
        return ctx.effect("tests.charge", slot_name, payload)

    bill.__qualname__ = "bill-badly"
    job("tests.bill", max_attempts=1)(bill).enqueue()
    steps(worker(), 1)
    assert the_job().status == "failed"
    assert says in the_job().error_message
    assert not outside.done


def test_what_was_handled_before_an_effect_is_no_doubt_about_it(outside: Outside) -> None:
    outside.kind("non_replayable", approval="never")

    def bill(ctx: Context) -> Any:
        try:
            raise TimeoutError("of the handler's own")
        except TimeoutError:
            return ctx.effect("tests.charge", "charge", outside.payload)

    bill.__qualname__ = "bill-elsewhere"
    outside.sending = outside.refuse_connection
    job("tests.bill", backoff=None)(bill).enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().error_code) == ("absent", "EFFECT_PROVIDER_UNAVAILABLE")
