"""From a handler's line to the outside world and back, each replay policy, worker and database real."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from jobs.effect_kinds import Declined, Found, NotFound, Sent
from jobs.models import Case, Evidence, Job
from tests.effects.outside import Outside, results, slot, steps, the_job, worker


def test_a_definite_answer_is_recorded_and_becomes_the_result(outside: Outside) -> None:
    outside.kind("idempotent")
    outside.handler().enqueue()
    steps(worker(), 1)
    assert the_job().status == "succeeded"
    assert len(outside.done) == 1
    assert (slot().status, slot().reference, slot().grants) == ("committed", "ch_1", 1)
    assert [*results()] == [{"charged": outside.payload, "number": 1}]
    assert the_job().open_effects == 0


def test_the_key_is_the_slots_id_and_the_fencing_token_the_generation(outside: Outside) -> None:
    outside.kind("idempotent")
    outside.handler().enqueue()
    steps(worker(), 1)
    (request,) = outside.done
    assert (request.key, request.fencing_token) == (slot().id, 1)


def test_nothing_was_sent_when_the_connection_is_refused_and_the_job_is_tried_again(outside: Outside) -> None:
    outside.kind("non_replayable", approval="never")
    outside.sending = outside.refuse_connection
    outside.handler(backoff=None).enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status) == ("absent", "pending")
    assert the_job().error_code == "EFFECT_PROVIDER_UNAVAILABLE"
    assert not outside.done


def test_a_refusal_fails_the_job_with_the_providers_code(outside: Outside) -> None:
    outside.kind("queryable")

    def decline(_request: object) -> None:
        raise Declined("HANDLER_CONTENT_FAILED", "card declined")

    outside.sending = decline
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status, the_job().error_code) == (
        "absent",
        "failed",
        "HANDLER_CONTENT_FAILED",
    )


def test_a_lost_answer_is_asked_for_and_found(outside: Outside) -> None:
    outside.kind("queryable", inquiry=True)
    outside.sending = outside.charge_silently
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status) == ("committed", "succeeded")
    assert len(outside.done) == 1
    assert [*Evidence.objects.order_by("id").values_list("source", "outcome", "decisive")] == [
        ("report", "unknown", True),
        ("inquiry", "found", True),
    ]


def test_a_lost_answer_that_cannot_be_asked_for_stops_the_job_and_opens_a_case(outside: Outside) -> None:
    outside.kind("non_replayable", approval="never")
    outside.sending = outside.charge_silently
    outside.handler().enqueue()
    steps(worker(), 3)
    assert (slot().status, the_job().status, the_job().open_effects) == ("unknown", "uncertain", 1)
    assert len(outside.done) == 1
    case = Case.objects.get()
    assert (case.kind, case.label, case.currency, str(case.amount)) == (
        "unknown",
        "to acme",
        "EUR",
        "12.5000",
    )


def test_an_idempotent_effect_is_sent_again_under_the_same_key(outside: Outside) -> None:
    outside.kind("idempotent")
    outside.sending = outside.charge_silently
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status, the_job().wait_reason) == ("unknown", "waiting", "provider")
    outside.sending = outside.charge
    lease = Job.objects.claim_job(the_job().pk, worker_id="x")
    assert lease is None, "not due yet"
    assert len({request.key for request in outside.done}) == 1


@pytest.mark.parametrize("seconds", [3600, None])
def test_not_found_too_early_proves_nothing(outside: Outside, seconds: int | None) -> None:
    outside.kind("queryable", inquiry=True, settle_after=seconds)
    outside.sending = outside.charge_silently
    outside.looking = lambda _request: NotFound()
    outside.handler().enqueue()
    steps(worker(), 1)
    assert slot().status == "unknown"
    assert the_job().status == ("waiting" if seconds else "uncertain")
    assert Case.objects.count() == (0 if seconds else 1)


def test_not_found_after_it_has_settled_is_proof_and_it_is_sent_again(outside: Outside) -> None:
    outside.kind("queryable", inquiry=True, settle_after=0)
    outside.sending = lambda _request: (_ for _ in ()).throw(TimeoutError)
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status) == ("absent", "waiting")


class Mute(ConnectionRefusedError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_what_an_error_proves_counts_whether_or_not_it_can_be_shown(outside: Outside) -> None:
    outside.kind("non_replayable", approval="never")

    def refuse(_request: object) -> None:
        raise Mute

    outside.sending = refuse
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, the_job().status) == ("absent", "pending")
    assert Evidence.objects.get().body == "Mute: <Mute that cannot be shown as text>"


@pytest.mark.parametrize(
    ("reference", "kept"),
    [("a\0b\ud800", "a\ufffdb\ufffd"), (None, ""), (17, "17"), ("x" * 500, "x" * 200)],
    ids=["controls", "none", "number", "long"],
)
@pytest.mark.parametrize("door", ["answer", "inquiry"])
def test_a_success_is_recorded_whatever_the_providers_reference_is_like(
    outside: Outside, door: str, reference: Any, kept: str
) -> None:
    outside.kind("queryable", inquiry=True)
    if door == "answer":
        outside.sending = lambda request: Sent(outside.charge(request).response, reference)
    else:
        outside.sending = outside.charge_silently
        outside.looking = lambda request: Found({}, reference, payload=request.payload)
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (slot().status, slot().reference, the_job().status) == ("committed", kept, "succeeded")
    assert len(outside.done) == 1


@pytest.mark.parametrize("amount", ["100.0001", "-100.0001", "9999999999999999.99999"])
def test_what_is_paid_back_asks_a_person_as_what_is_paid_does(outside: Outside, amount: str) -> None:
    outside.kind("non_replayable", approval=Decimal(100))
    outside.payload = outside.payload | {"amount": amount}
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (the_job().status, the_job().wait_reason) == ("waiting", "approval")
    assert Case.objects.get().kind == "approval"
    assert not outside.done
