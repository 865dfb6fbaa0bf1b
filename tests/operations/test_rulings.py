"""What each verdict does to its slot, job and case, and what it leaves behind."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from jobs import handlers
from jobs.models import Case, Comment, Evidence, Job, Proposal, Ruling, SearchAttribute
from jobs.operations import casework, rulings
from jobs.operations.rulings import Proposed, Ruled
from jobs.outcomes import Refused
from jobs.status import EffectStatus, JobStatus
from jobs.verbs.gate import Word
from tests import build
from tests.build import at
from tests.operations import scene
from tests.operations.scene import LATER

pytestmark = pytest.mark.django_db


def test_happened_records_the_answer_and_lets_the_job_go_on(ada):
    matter = scene.unknown()
    view = matter.look()
    done = matter.rule("happened", ada, reference="ch_1", response={"ok": True}, compensate=True)
    assert isinstance(done, Ruled)
    assert (done.effect_status, done.job_status, done.case_open) == ("committed", "pending", False)
    assert (matter.slot.status, matter.slot.reference, matter.slot.response) == (
        "committed",
        "ch_1",
        '{"ok":true}',
    )
    assert (matter.job.status, matter.job.open_effects) == ("pending", 0)
    case = Case.objects.get()
    assert (case.closed_as, case.closed_at) == ("ruled", LATER)
    ruling = Ruling.objects.get()
    assert (ruling.verdict, ruling.by, ruling.approved_by, ruling.reason) == (
        "happened",
        "ada",
        "",
        "because",
    )
    assert (ruling.snapshot, ruling.slot_version, ruling.compensate) == (
        view.snapshot,
        view.effect.version,
        True,
    )
    last = Evidence.objects.order_by("-id")[0]
    assert (last.source, last.outcome, last.decisive, last.actor) == ("person", "happened", True, "ada")


def test_a_committed_slot_answers_from_its_record_in_the_next_run(ada):
    matter = scene.unknown()
    matter.rule("happened", ada, response={"ok": True})
    lease = build.claim(build.id_of(matter.lease), now=LATER)
    gate = scene.gate(lease, now=LATER)
    assert (gate.word, json.loads(gate.slot.response)) == (Word.RECORDED, {"ok": True})


def test_did_not_happen_permits_another_sending_under_the_same_key(ada):
    matter = scene.unknown()
    done = matter.rule("did_not_happen", ada)
    assert (done.effect_status, done.job_status) == ("absent", "pending")
    lease = build.claim(build.id_of(matter.lease), now=LATER)
    gate = scene.gate(lease, now=LATER)
    assert (gate.word, gate.slot.id, gate.slot.grants) == (Word.GRANTED, matter.slot.id, 2)


def test_abandon_fails_the_job_and_no_retry_brings_it_back(ada):
    matter = scene.unknown()
    done = matter.rule("abandon", ada)
    assert (done.effect_status, done.job_status) == ("abandoned", "failed")
    assert matter.job.error_code == "EFFECT_ABANDON_FAILED"
    with pytest.raises(Refused, match="abandoned"):
        Job.objects.retry(
            matter.job.id, state_version=matter.job.state_version, actor="x", reason="y", now=LATER
        )


def test_use_recorded_ignores_what_the_job_brings_later(ada):
    matter = scene.conflict()
    done = matter.rule("use_recorded", ada)
    assert (done.job_status, matter.slot.in_conflict, matter.slot.use_recorded) == ("pending", False, True)
    scene.kind("queryable")
    lease = build.claim(build.id_of(matter.lease), now=LATER)
    gate = scene.gate(lease, scene.PAYLOAD | {"amount": "50.00"}, now=LATER)
    assert (gate.word, json.loads(gate.slot.payload)) == (Word.GRANTED, scene.PAYLOAD)


def test_use_recorded_of_one_that_may_have_been_sent_leaves_the_question_whether_it_was(ada):
    matter = scene.conflict(sent="unknown")
    done = matter.rule("use_recorded", ada)
    assert (done.effect_status, done.job_status, matter.case.kind) == ("unknown", "uncertain", "unknown")


def test_rebind_sends_the_new_payload_under_its_own_name(ada):
    matter = scene.conflict()
    done = matter.rule("rebind", ada)
    slot = matter.slot
    assert (done.job_status, slot.in_conflict, slot.label, str(slot.amount)) == (
        "pending",
        False,
        "pay umbrella",
        "50.0000",
    )
    assert json.loads(slot.payload)["to"] == "umbrella"


def test_revise_gives_the_job_a_new_input_and_its_effects_new_keys(ada):
    handlers.job(build.KIND, search=["to"])(lambda to="": None)
    matter = scene.conflict()
    done = matter.rule("revise", ada, arguments={"to": "umbrella"})
    found = SearchAttribute.objects.filter(job=matter.job).values_list("name", "value")
    assert list(found) == [("to", "umbrella")]
    assert (done.effect_status, done.job_status) == ("abandoned", "pending")
    assert (matter.job.revision, json.loads(matter.job.input)) == (2, {"to": "umbrella"})
    lease = build.claim(build.id_of(matter.lease), now=LATER)
    scene.kind("queryable")
    assert scene.gate(lease, now=LATER).slot.id != matter.slot.id


@pytest.mark.parametrize(
    ("more", "code"), [({}, "ARGUMENTS_MISSING"), ({"arguments": {"x": object()}}, "ARGUMENTS_INVALID")]
)
def test_revise_needs_arguments_that_can_be_kept(ada, more, code):
    matter = scene.conflict()
    before = matter.written()
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.rule("revise", ada, **more)
    assert (refused.value.code, matter.written()) == (code, before)


def test_revise_after_a_committed_effect_asks_whether_to_repeat_it(ada):
    matter = scene.conflict(sent="committed")
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.rule("revise", ada, arguments={})
    assert refused.value.code == "EFFECTS_COMMITTED"
    assert matter.rule("revise", ada, arguments={}, effects="keep_effects").effect_status == "committed"


def test_abandon_of_a_conflict_fails_the_job_and_keeps_a_record(ada):
    matter = scene.conflict(sent="committed")
    done = matter.rule("abandon", ada)
    assert (done.effect_status, done.job_status) == ("committed", "failed")


def test_the_audit_entry_says_who_what_why_and_on_what_was_seen(ada):
    matter = scene.unknown()
    view = matter.look()
    done = matter.rule("happened", ada, reference="ch_1")
    (entry,) = scene.audited()
    assert entry["seq"] == done.audit_seq
    assert (entry["action"], entry["actor"], entry["user"]) == ("ruling_rule", "ada", "ada")
    assert (entry["object_type"], entry["object_id"], entry["reason"]) == (
        "case",
        str(view.case.id),
        "because",
    )
    assert (entry["snapshot"], entry["approver"]) == (view.snapshot, "")
    assert (entry["before"]["slot"], entry["after"]["slot"], entry["after"]["job"]) == (
        "unknown",
        "committed",
        "pending",
    )
    assert (entry["after"]["verdict"], entry["after"]["reference"]) == ("happened", "ch_1")


def test_the_audit_entry_falls_with_the_ruling(ada):
    matter = scene.unknown()
    before = matter.written()
    with transaction.atomic():
        matter.rule("happened", ada)
        transaction.set_rollback(True)
    assert matter.written() == before


# -- two persons ------------------------------------------------------------------------------------------


def test_did_not_happen_of_what_cannot_be_asked_for_takes_two(ada, bea):
    matter = scene.unknown(replay="non_replayable", approval="never")
    done = matter.rule("did_not_happen", ada)
    assert isinstance(done, Proposed)
    assert (matter.slot.status, matter.job.status, Ruling.objects.count()) == ("unknown", "uncertain", 0)
    view = matter.look()
    assert matter.approve(bea).effect_status == "absent"
    ruling = Ruling.objects.get()
    assert (ruling.by, ruling.approved_by, ruling.reason) == ("ada", "bea", "because")
    asked, agreed = scene.audited()
    assert (asked["action"], asked["actor"]) == ("ruling_propose", "ada")
    assert (agreed["action"], agreed["actor"], agreed["approver"]) == ("ruling_approve", "bea", "bea")
    assert (agreed["snapshot"], agreed["after"]["by"], agreed["reason"]) == (view.snapshot, "ada", "agreed")


@pytest.mark.parametrize(("amount", "takes"), [(41, True), (42, False)])
def test_did_not_happen_takes_two_above_the_kinds_amount(ada, amount, takes):
    matter = scene.unknown(second_person=Decimal(amount))
    assert isinstance(matter.rule("did_not_happen", ada), Proposed) is takes


def test_ruling_is_approved_only_while_who_asked_for_it_may_still_rule(ada, bea):
    matter = scene.unknown(second_person="always")
    proposed = matter.rule("did_not_happen", ada)
    assert isinstance(proposed, Proposed)
    snapshot = matter.look().snapshot
    ada.user_permissions.clear()
    with pytest.raises(Refused) as refused:
        rulings.approve(proposed.proposal_id, actor=bea, snapshot=snapshot, reason="r", now=LATER)
    assert (refused.value.code, refused.value.params["user"]) == ("NOT_PERMITTED", "ada")
    assert (matter.slot.status, Proposal.objects.get().decision) == ("unknown", "")


def test_nobody_approves_his_own(cyd):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", cyd)
    before = matter.written()
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.approve(cyd)
    assert (refused.value.code, matter.written()) == ("SELF_APPROVAL", before)


def test_another_name_makes_nobody_another_person(cyd):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", cyd)
    type(cyd).objects.filter(pk=cyd.pk).update(username="somebody")
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.approve(cyd)
    assert refused.value.code == "SELF_APPROVAL"


def test_a_second_person_confirms_the_facts_that_the_first_one_signed(ada, bea):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    scene.report(matter.lease, uuid.uuid4(), EffectStatus.COMMITTED, now=at(10_001))
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.approve(bea)
    assert (refused.value.code, refused.value.params["what_code"]) == ("MOVED", "MOVED_EVIDENCE")
    assert Ruling.objects.count() == 0


def test_a_comment_must_be_seen_by_the_second_person_and_undoes_nothing(ada, bea):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    view = matter.look()
    casework.comment(view.case.id, "I called them", actor=ada, now=at(10_001))
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.approve(bea, view=view)
    assert refused.value.params["what_code"] == "MOVED_COMMENT"
    assert matter.approve(bea).effect_status == "absent"


def test_another_person_may_not_ask_over_an_open_question_but_the_same_may_again(ada, cyd):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.rule("did_not_happen", cyd)
    assert (refused.value.code, refused.value.params["by"]) == ("ASKED_ALREADY", "ada")
    matter.rule("did_not_happen", ada)
    assert [*Proposal.objects.order_by("at", "id").values_list("decision", flat=True)] == ["void", ""]


def test_a_question_that_nobody_answered_for_a_day_is_asked_anew(ada, bea, cyd):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    tomorrow = LATER + scene.DAY
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.approve(bea, now=tomorrow)
    assert refused.value.code == "PROPOSAL_EXPIRED"
    assert isinstance(matter.rule("did_not_happen", cyd, now=tomorrow), Proposed)


def test_another_ruling_voids_what_was_asked(ada, bea, cyd):
    matter = scene.unknown(second_person="always")
    asked = matter.rule("did_not_happen", ada)
    view = matter.look()
    matter.rule("happened", cyd)
    assert Proposal.objects.get().decision == "void"
    with build.savepoint(), pytest.raises(Refused) as refused:
        rulings.approve(asked.proposal_id, actor=bea, snapshot=view.snapshot, reason="yes", now=LATER)
    assert (refused.value.params["what_code"], refused.value.params["by"]) == ("MOVED_RULED", "cyd")


def test_a_rejected_question_changes_nothing_else(ada, bea):
    matter = scene.unknown(second_person="always")
    asked = matter.rule("did_not_happen", ada)
    rulings.reject(asked.proposal_id, actor=bea, snapshot=matter.look().snapshot, reason="no", now=LATER)
    proposal = Proposal.objects.get()
    assert (proposal.decision, proposal.decided_by, proposal.note) == ("rejected", "bea", "no")
    assert (matter.slot.status, matter.case.closed_at, Ruling.objects.count()) == ("unknown", None, 0)
    assert scene.audited()[-1]["action"] == "ruling_reject"


def test_the_first_person_takes_his_own_question_back_and_nobody_elses(ada, cyd):
    eve = scene.user("eve", "rule_effect")
    matter = scene.unknown(second_person="always")
    asked = matter.rule("did_not_happen", ada)
    snapshot = matter.look().snapshot
    with build.savepoint(), pytest.raises(Refused) as refused:
        rulings.reject(asked.proposal_id, actor=eve, snapshot=snapshot, reason="no", now=LATER)
    assert refused.value.code == "NOT_PERMITTED"
    rulings.reject(asked.proposal_id, actor=ada, snapshot=snapshot, reason="wrong one", now=LATER)
    assert Proposal.objects.get().decision == "rejected"


# -- approvals of a sending -------------------------------------------------------------------------------


def test_an_approved_sending_lets_the_job_run_and_is_used_up_by_one_grant(bea):
    matter = scene.approval(by="ada")
    done = matter.approve(bea, now=at(50))
    assert (done.job_status, done.case_open) == ("waiting", True)
    lease = build.claim(build.id_of(matter.lease), now=at(51))
    gate = scene.gate(lease, now=at(52))
    assert gate.word == Word.GRANTED
    proposal = Proposal.objects.get()
    assert (proposal.decision, proposal.decided_by, str(proposal.grant_id)) == (
        "approved",
        "bea",
        str(uuid.UUID(gate.slot.grant_id)),
    )
    assert Case.objects.get().closed_as == "ruled"
    assert (Ruling.objects.get().verdict, Ruling.objects.get().by) == ("send", "bea")
    assert scene.audited()[-1]["approver"] == "bea"
    # Proven absent, the slot may be sent again, but the approval is used up.
    scene.runtime.report(
        gate.slot.id,
        attempt_id=lease.attempt_id,
        grant_id=gate.slot.grant_id,
        status=EffectStatus.ABSENT,
        now=at(53),
    )
    assert scene.gate(lease, now=at(54)).word == Word.APPROVAL


@pytest.mark.parametrize(("seconds", "word"), [(86_399, Word.GRANTED), (86_400, Word.APPROVAL)])
def test_an_approval_lasts_for_a_day(bea, seconds, word):
    matter = scene.approval(by="ada")
    matter.approve(bea, now=at(50))
    then = at(50 + seconds)
    lease = build.claim(build.id_of(matter.lease), now=then)
    assert scene.gate(lease, now=then).word == word


@pytest.mark.parametrize("recorded", ["bea", "bea by token nightly", "bea (shell: root)"])
def test_who_asked_for_the_job_approves_no_sending_of_it(bea, recorded):
    matter = scene.approval(by=recorded)
    before = matter.written()
    for attempt in (matter.approve, lambda actor: matter.rule("send", actor)):
        with build.savepoint(), pytest.raises(Refused) as refused:
            attempt(bea)
        assert (refused.value.code, matter.written()) == ("SELF_APPROVAL", before)


def test_send_ruled_on_the_case_is_the_same_approval(bea):
    matter = scene.approval(by="ada")
    done = matter.rule("send", bea, now=at(50))
    assert (done.job_status, Proposal.objects.get().decision) == ("waiting", "approved")
    assert matter.job.next_attempt_at == at(50)
    with build.savepoint(), pytest.raises(Refused) as refused:
        matter.rule("send", bea, now=at(51))
    assert (refused.value.code, refused.value.params["by"]) == ("APPROVED_ALREADY", "bea")


def test_an_abandoned_sending_lets_the_job_run_into_the_closed_slot(bea):
    matter = scene.approval(by="ada")
    done = matter.rule("abandon", bea, now=at(50))
    assert (done.effect_status, done.job_status, done.case_open) == ("abandoned", "waiting", False)
    lease = build.claim(build.id_of(matter.lease), now=at(51))
    assert scene.gate(lease, now=at(52)).word == Word.ABANDONED
    assert Proposal.objects.get().decision == "void"


def test_a_sending_is_not_rejected_but_abandoned(bea):
    matter = scene.approval(by="ada")
    with build.savepoint(), pytest.raises(Refused) as refused:
        rulings.reject(
            Proposal.objects.get().id, actor=bea, snapshot=matter.look().snapshot, reason="no", now=LATER
        )
    assert refused.value.code == "SEND_IS_ABANDONED"


# -- contradictions ---------------------------------------------------------------------------------------


def test_late_word_that_it_happened_freezes_what_was_ruled_not_to_have(ada):
    matter = scene.unknown()
    matter.rule("did_not_happen", ada)
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="{}")
    slot = matter.slot
    assert (slot.status, slot.granted_attempt_id, matter.job.status) == ("unknown", None, "uncertain")
    assert {c.kind for c in Case.objects.filter(closed_at=None)} == {"unknown", "contradiction"}
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="{}")
    assert matter.slot.status == "unknown", "no later report decides it"


@pytest.mark.parametrize("sent", [True, False], ids=["after the second has been sent", "while it is sent"])
@pytest.mark.parametrize(("replay", "opened"), [("queryable", 1), ("idempotent", 0)])
def test_late_word_of_the_first_sending_is_not_lost_behind_the_second(ada, replay, opened, sent):
    matter = scene.unknown(replay=replay)
    matter.rule("did_not_happen", ada)
    again, grant = build.claim(matter.job.id, now=LATER), uuid.uuid4()
    assert scene.gate(again, grant=grant, now=LATER).word == Word.GRANTED
    for _ in range(2 * sent):  # the first answer to it was lost
        scene.report(again, grant, EffectStatus.COMMITTED, now=LATER, response="2")
    before = matter.slot.status
    assert not Case.objects.filter(kind="contradiction").exists(), "what it says twice contradicts nothing"
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="1")
    assert matter.slot.status == before, "late word decides nothing"
    assert Case.objects.filter(kind="contradiction", closed_at=None).count() == opened


def test_acknowledge_closes_the_contradiction_and_leaves_the_record(ada):
    matter = scene.unknown()
    matter.rule("did_not_happen", ada)
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="{}")
    view = matter.look(case=matter.of("contradiction"))
    done = matter.rule("acknowledge", ada, view=view)
    assert (done.effect_status, done.job_status, done.case_open) == ("unknown", "uncertain", False)
    assert scene.audited()[-1]["after"]["verdict"] == "acknowledge"


def test_no_operator_retries_a_job_while_a_contradiction_is_open(ada):
    matter = scene.unknown()
    matter.rule("did_not_happen", ada)
    Job.objects.cancel(matter.job.id, actor="x", reason="y", now=LATER)
    scene.report(matter.lease, matter.grant, EffectStatus.COMMITTED, now=LATER, response="{}")
    assert (matter.job.status, matter.slot.status) == (JobStatus.CANCELLED, "committed")
    again: dict[str, Any] = {
        "state_version": matter.job.state_version,
        "actor": "x",
        "reason": "y",
        "now": LATER,
    }
    with build.savepoint(), pytest.raises(Refused) as refused:
        Job.objects.retry(matter.job.id, **again)
    assert refused.value.code == "CONTRADICTION"
    matter.rule("acknowledge", ada, view=matter.look(case=matter.of("contradiction")))
    assert Job.objects.retry(matter.job.id, **again) == "pending"


# -- the implicit slot ------------------------------------------------------------------------------------


def test_a_job_that_gave_itself_up_is_ruled_on_as_one_effect(ada, bea):
    lease = build.job(JobStatus.UNCERTAIN)
    matter = scene.Matter(lease)
    assert matter.slot.kind == "job"
    assert matter.case.label == matter.job.kind
    assert matter.look().kind_known
    assert isinstance(matter.rule("did_not_happen", ada), Proposed)
    assert matter.approve(bea).job_status == "pending"


def test_comments_are_kept(ada):
    matter = scene.unknown()
    casework.comment(matter.case.id, "called them", actor=ada, now=LATER)
    assert [(c.by, c.text) for c in Comment.objects.all()] == [("ada", "called them")]
