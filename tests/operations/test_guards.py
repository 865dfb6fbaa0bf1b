"""What stands against a verdict: every guard, alone; and that nothing is written where one does not hold."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from jobs import effect_kinds
from jobs.models import Proposal
from jobs.models.case import VERDICTS, CaseKind, Verdict
from jobs.operations import cases, rulings
from jobs.outcomes import Refused
from jobs.status import EffectStatus, JobStatus
from tests import build
from tests.build import TICK, at
from tests.operations import scene
from tests.operations.scene import LATER

pytestmark = pytest.mark.django_db


def refused(matter, verdict, actor, **more):
    """Rule, be refused, and find nothing written."""
    before = matter.written()
    with build.savepoint(), pytest.raises(Refused) as found:
        matter.rule(verdict, actor, **more)
    assert matter.written() == before
    assert str(found.value) != found.value.code, "the catalogue has a sentence"
    return found.value


# -- did_not_happen permits a second execution ------------------------------------------------------------


def test_what_may_still_be_under_way_is_not_ruled_absent(ada):
    matter = scene.unknown(settle_after=None)
    error = refused(matter, "did_not_happen", ada, now=at(61) - TICK)
    assert (error.code, error.params["until"]) == ("IN_FLIGHT", at(61))
    assert matter.rule("did_not_happen", ada, now=at(61)).effect_status == "absent"


def test_an_attestation_stands_in_for_the_time_in_flight_only(ada):
    matter = scene.unknown(settle_after=None)
    assert matter.rule("did_not_happen", ada, now=at(2), attested=True).effect_status == "absent"
    matter = scene.unknown(settle_after=100)
    assert refused(matter, "did_not_happen", ada, now=at(2), attested=True).code == "NOT_SETTLED"


def test_what_the_provider_may_still_come_to_know_is_not_ruled_absent(ada):
    matter = scene.unknown(settle_after=100)
    error = refused(matter, "did_not_happen", ada, now=at(101) - TICK)
    assert (error.code, error.params["until"]) == ("NOT_SETTLED", at(101))
    assert matter.rule("did_not_happen", ada, now=at(101)).effect_status == "absent"


def test_a_sender_that_was_only_lost_counts_from_the_end_of_its_attempt(ada):
    matter = scene.lost()
    view = matter.look(at(100))
    assert (view.sender.running, view.sender.proven_gone, view.sender.ended_at) == (False, False, at(90))
    error = refused(matter, "did_not_happen", ada, now=at(150) - TICK)
    assert (error.code, error.params["until"]) == ("IN_FLIGHT", at(150))


def test_a_sender_that_runs_stands_against_it_whatever_is_attested(ada):
    view = scene.unknown().look()
    sender = replace(view.sender, running=True, lease_ends_at=LATER + scene.DAY)
    offer = cases.offer(replace(view, sender=sender), Verdict.DID_NOT_HAPPEN, ada, attested=True)
    assert (offer.why and offer.why[0], offer.opens_at) == ("SENDER_RUNNING", LATER + scene.DAY)


def test_of_a_slot_without_a_grantee_every_attempt_of_the_job_may_have_sent(ada):
    matter = scene.unknown()
    matter.rule("did_not_happen", ada)
    lease = build.claim(build.id_of(matter.lease), now=LATER)
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="{}")
    view = matter.look(case=matter.of("contradiction"))
    assert matter.slot.granted_attempt_id is None
    assert (view.sender.running, str(view.sender.attempt and view.sender.attempt.id.hex)) == (
        True,
        lease.attempt_id,
    )


def test_a_kind_that_nobody_here_knows_takes_an_attestation_and_a_second_person(ada):
    matter = scene.unknown()
    effect_kinds.forget(scene.PAY)
    view = matter.look()
    assert not view.kind_known
    assert refused(matter, "did_not_happen", ada).code == "IN_FLIGHT_UNKNOWN"
    assert isinstance(matter.rule("did_not_happen", ada, attested=True), rulings.Proposed)


def test_a_key_that_the_provider_has_forgotten_takes_a_second_person(ada):
    matter = scene.unknown(replay="idempotent", key_valid=1000)
    assert not cases.takes_second(matter.look(at(500)), Verdict.DID_NOT_HAPPEN)
    assert cases.takes_second(matter.look(at(1000)), Verdict.DID_NOT_HAPPEN)


def test_guards_must_hold_when_the_second_person_agrees_too(ada, bea):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    before = matter.written()
    with build.savepoint(), pytest.raises(Refused) as found:
        matter.approve(bea, now=at(50))
    assert (found.value.code, matter.written()) == ("IN_FLIGHT", before)


# -- all of them, each with its time ----------------------------------------------------------------------


def told(view, verdict, user, **more):
    """Return each guard's code, whether it holds, and its time."""
    return [(g.code, g.met, g.at) for g in cases.offer(view, Verdict(verdict), user, **more).guards]


def test_every_guard_is_told_with_its_time_whether_it_holds_or_not(ada):
    matter = scene.unknown(settle_after=100)
    before = [
        ("GUARD_PERMITTED", True, None),
        ("GUARD_UNKNOWN", True, at(1)),
        ("GUARD_SENDER_OVER", True, at(1)),
        ("GUARD_IN_FLIGHT", False, at(61)),
        ("GUARD_SETTLED", False, at(101)),
    ]
    assert told(matter.look(at(2)), "did_not_happen", ada) == before
    held = [(code, met or when == at(61), when) for code, met, when in before]
    assert told(matter.look(at(61)), "did_not_happen", ada) == held
    assert all(met for _, met, _ in told(matter.look(at(101)), "did_not_happen", ada))
    assert told(matter.look(at(2)), "happened", ada) == before[:2]


def test_verdict_opens_when_the_last_of_its_guards_does_and_never_while_one_has_no_time(ada, dan):
    matter = scene.unknown(settle_after=100)
    view = matter.look(at(2))
    assert cases.offer(view, Verdict.DID_NOT_HAPPEN, ada).free_at == at(101)
    assert cases.offer(view, Verdict.DID_NOT_HAPPEN, dan).free_at is None, "a permission does not come"
    assert cases.offer(view, Verdict.HAPPENED, ada).free_at is None
    sender = replace(view.sender, running=True, lease_ends_at=at(30), ended_at=None)
    runs = replace(view, sender=sender, in_flight_until=None, settle_by=None)
    assert cases.offer(runs, Verdict.DID_NOT_HAPPEN, ada).free_at is None
    assert [(code, when) for code, met, when in told(runs, "did_not_happen", ada) if not met] == [
        ("GUARD_SENDER_OVER", at(30)),
        ("GUARD_IN_FLIGHT", None),
        ("GUARD_SETTLED", None),
    ]


def test_who_vouches_stands_in_for_the_time_in_flight_and_for_nothing_else(ada):
    view = scene.unknown(settle_after=100).look(at(2))
    found = told(view, "did_not_happen", ada, attested=True)
    assert found[3:] == [("GUARD_ATTESTED", True, None), ("GUARD_SETTLED", False, at(101))]


def test_person_who_asked_finds_that_among_the_guards(ada, bea):
    view = scene.approval(by=bea.username).look(at(50))
    codes = {g.code: g.met for g in cases.offer(view, Verdict.SEND, bea).guards}
    assert codes == {
        "GUARD_PERMITTED": True,
        "GUARD_ANOTHER": False,
        "GUARD_SENDABLE": True,
        "GUARD_NOT_APPROVED": True,
        "GUARD_ASKED": True,
        "GUARD_AS_ASKED": True,
    }


@pytest.mark.parametrize("made", [scene.unknown, scene.lost, scene.conflict, scene.approval])
def test_every_refusal_of_a_ruling_is_the_first_guard_that_does_not_hold(ada, made):
    view = made().look(at(91))
    for offer in cases.offers(view, ada):
        failing = [guard for guard in offer.guards if not guard.met]
        assert offer.allowed == (not failing)
        assert offer.why == (failing[0].why if failing else None)
        assert offer.opens_at == (failing[0].at if failing else None)
        for guard in offer.guards:
            assert not guard.text.startswith("GUARD_")
            assert "%(" not in guard.text + guard.why_text


# -- the other verdicts -----------------------------------------------------------------------------------


def test_happened_needs_a_reference_that_looks_like_the_providers(ada):
    matter = scene.unknown(reference=r"ch_\d+")
    for reference in ("", "pi_7", "ch_7x"):
        assert refused(matter, "happened", ada, reference=reference).code == "REFERENCE_FORMAT"
    assert matter.rule("happened", ada, reference=" ch_7 ").effect_status == "committed"
    assert matter.slot.reference == "ch_7"


@pytest.mark.parametrize("verdict", ["happened", "did_not_happen", "abandon"])
def test_only_an_unknown_slot_is_ruled_on(ada, verdict):
    view = scene.unknown().look()
    for status, code in ((EffectStatus.EXECUTING, "EFFECT_EXECUTING"), (EffectStatus.ABSENT, "SLOT_STATUS")):
        view.effect.status = status
        offer = cases.offer(view, Verdict(verdict), ada)
        assert not offer.allowed
        assert offer.why
        assert offer.why[0] == code


def test_a_key_that_may_have_been_sent_is_never_rebound(ada):
    matter = scene.conflict(sent="unknown")
    assert refused(matter, "rebind", ada).code == "KEY_WAS_GRANTED"


def test_a_rebinding_needs_the_kind_that_reads_the_payload(ada):
    matter = scene.conflict()
    effect_kinds.forget(scene.PAY)
    assert refused(matter, "rebind", ada).code == "EFFECT_KIND_UNKNOWN"


def test_no_revision_while_an_effect_is_open(ada):
    matter = scene.conflict(sent="unknown")
    assert refused(matter, "revise", ada, arguments={}).code == "EFFECT_OPEN"


def test_no_sending_is_approved_that_nobody_asks_for(bea):
    matter = scene.approval()
    with build.savepoint():
        matter.approve(bea, now=at(50))
        then = at(51) + timedelta(days=1)
        assert refused(matter, "send", bea, now=then).code == "NOTHING_ASKED"


@pytest.mark.parametrize("case_kind", list(CaseKind))
def test_each_kind_of_case_offers_its_own_list(ada, case_kind):
    view = scene.unknown().look()
    view.case.kind = case_kind
    assert [offer.verdict for offer in cases.offers(view, ada)] == list(VERDICTS[case_kind])
    for offer in cases.offers(view, ada):
        assert "%(" not in offer.consequence_text
        assert not offer.consequence_text.startswith("WILL_")


def test_a_verdict_of_another_kind_of_case_is_refused(ada):
    matter = scene.unknown()
    for verdict in ("send", "rebind", "acknowledge"):
        assert refused(matter, verdict, ada).code == "NOT_OFFERED"
    assert refused(matter, "retry", ada).code == "VERDICT_UNKNOWN"


def test_a_closed_case_offers_nothing(ada):
    matter = scene.unknown()
    case = matter.case
    matter.rule("happened", ada)
    offers = cases.offers(matter.look(case=case), ada)
    assert {offer.why and offer.why[0] for offer in offers} == {"CASE_CLOSED"}


# -- reasons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"reason": "  "}, "REASON_MISSING"),
        ({"reason": "x" * 1001}, "REASON_TOO_LONG"),
        ({"reason_code": "never_left"}, "REASON_CODE"),
        ({"reason_code": ""}, "REASON_CODE"),
        ({"reference": "x" * 201}, "REFERENCE_TOO_LONG"),
        ({"response": {"x": float("nan")}}, "RESPONSE_INVALID"),
    ],
)
def test_a_ruling_says_why_and_what_in_terms_that_can_be_kept(ada, more, code):
    assert refused(scene.unknown(), "happened", ada, **more).code == code


def test_every_verdict_has_its_reasons():
    assert set(rulings.REASON_CODES) == set(Verdict)
    assert all(codes for codes in rulings.REASON_CODES.values())


# -- who may ----------------------------------------------------------------------------------------------


def test_who_may_not_rule_is_refused_and_nothing_is_written(bea, dan):
    matter = scene.unknown()
    for actor in (bea, dan):
        error = refused(matter, "happened", actor)
        assert (error.code, error.params["permission"]) == ("NOT_PERMITTED", "jobs.rule_effect")


def test_who_may_not_approve_is_refused_and_nothing_is_written(ada, dan):
    matter = scene.unknown(second_person="always")
    asked = matter.rule("did_not_happen", ada)
    sending = scene.approval()
    before = matter.written()
    for actor in (ada, dan):
        for use in (matter.approve, sending.approve):
            with build.savepoint(), pytest.raises(Refused) as found:
                use(actor)
            assert (found.value.code, found.value.params["permission"]) == (
                "NOT_PERMITTED",
                "jobs.approve_ruling",
            )
        for verdict in ("send", "abandon"):
            assert refused(sending, verdict, actor).code == "NOT_PERMITTED"
    snapshot = matter.look().snapshot
    with build.savepoint(), pytest.raises(Refused) as found:
        rulings.reject(asked.proposal_id, actor=dan, snapshot=snapshot, reason="no", now=LATER)
    assert (found.value.code, matter.written()) == ("NOT_PERMITTED", before)


def test_the_permission_counts_as_it_is_now_not_as_it_was_when_the_page_was_opened(ada):
    matter = scene.unknown()
    assert ada.has_perm("jobs.rule_effect")
    ada.user_permissions.clear()
    assert refused(matter, "happened", ada).code == "NOT_PERMITTED"


def test_a_closed_account_rules_nothing(ada):
    matter = scene.unknown()
    type(ada).objects.filter(pk=ada.pk).update(is_active=False)
    assert refused(matter, "happened", ada).code == "USER_INACTIVE"
    type(ada).objects.filter(pk=ada.pk).delete()
    assert refused(matter, "happened", ada).code == "USER_UNKNOWN"


def test_what_is_not_there_is_told(ada, bea):
    nothing = uuid.uuid4()
    with build.savepoint(), pytest.raises(Refused) as found:
        rulings.rule(
            nothing, "happened", actor=ada, reason_code="other", reason="x", seen_version=1, snapshot=""
        )
    assert found.value.code == "CASE_NOT_FOUND"
    with build.savepoint(), pytest.raises(Refused) as found:
        rulings.approve(nothing, actor=bea, snapshot="", reason="x")
    assert found.value.code == "PROPOSAL_NOT_FOUND"
    assert Proposal.objects.count() == 0


def test_an_offer_says_who_may_not(dan, bea):
    matter = scene.approval(by="bea")
    assert {o.why and o.why[0] for o in cases.offers(matter.look(), dan)} == {"NOT_PERMITTED"}
    send, abandon = cases.offers(matter.look(), bea)
    assert (send.why and send.why[0], abandon.allowed) == ("SELF_APPROVAL", True)
    assert matter.job.status == JobStatus.WAITING
