"""A ruling rests on what was seen: whatever happened since, nothing is written and the person is told."""

from __future__ import annotations

import pytest
from django.db import transaction

from jobs.models import Job, Ruling
from jobs.operations import casework, rulings
from jobs.outcomes import Refused
from jobs.status import EffectStatus
from tests import build
from tests.build import at
from tests.operations import scene
from tests.operations.scene import LATER
from tests.races.aside import Aside

AFTER = at(10_001)


def refused(matter, actor, view, **more):
    before = matter.written()
    with build.savepoint(), pytest.raises(Refused) as found:
        matter.rule("happened", actor, view=view, now=AFTER, **more)
    assert matter.written() == before
    assert found.value.code == "MOVED"
    return found.value


def _comment(matter, cyd):
    casework.comment(matter.case.id, "wait", actor=cyd, now=AFTER)


def _evidence(matter, _cyd):
    slot = scene.runtime.read(matter.slot.id, now=AFTER)
    assert slot is not None
    scene.runtime.no_answer(slot, "503", actor="worker w", now=AFTER)


def _found(matter, _cyd):
    slot = scene.runtime.read(matter.slot.id, now=AFTER)
    assert slot is not None
    scene.runtime.resolve(slot, found=True, asked=AFTER, response="{}", actor="worker w", now=AFTER)


def _asked(matter, cyd):
    matter.rule("did_not_happen", cyd, now=AFTER)


def _ruled(matter, cyd):
    matter.rule("abandon", cyd, now=AFTER)


def _cancelled(matter, _cyd):
    Job.objects.cancel(matter.job.id, actor="cyd", reason="x", now=AFTER)


def _reported(matter, _cyd):
    scene.report(matter.lease, matter.grant, EffectStatus.UNKNOWN, now=AFTER)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("move", "code", "by"),
    [
        (_comment, "MOVED_COMMENT", "cyd"),
        (_evidence, "MOVED_EVIDENCE", None),
        (_found, "MOVED_EVIDENCE", None),
        (_asked, "MOVED_ASKED", "cyd"),
        (_ruled, "MOVED_RULED", "cyd"),
        (_cancelled, "MOVED_CANCEL", "cyd"),
        (_reported, "MOVED_EVIDENCE", None),
    ],
)
def test_what_happened_since_is_told_and_nothing_is_written(ada, cyd, move, code, by):
    matter = scene.unknown(second_person="always")
    view = matter.look()
    move(matter, cyd)
    error = refused(matter, ada, view)
    assert (error.params["what_code"], error.params["at"]) == (code, AFTER)
    assert by is None or error.params["by"] == by
    assert "since you looked" in str(error)
    # The version alone is not enough, nor is the snapshot alone.
    now = matter.look(AFTER, case=view.case)
    if now.case.closed_at is None:
        refused(matter, ada, view, seen_version=now.case.version)


@pytest.mark.django_db
def test_the_version_is_asked_for_besides_the_snapshot(ada):
    matter = scene.unknown()
    refused(matter, ada, matter.look(), seen_version=matter.case.version + 1)
    refused(matter, ada, matter.look(), snapshot="0" * 64)


@pytest.mark.django_db
def test_taking_and_parking_a_case_moves_nothing(ada, cyd):
    matter = scene.unknown()
    view = matter.look()
    casework.take(view.case.id, actor=cyd, now=LATER)
    casework.park(view.case.id, AFTER, actor=cyd, now=LATER)
    assert matter.rule("happened", ada, view=view).effect_status == "committed"


@pytest.mark.django_db
def test_a_snapshot_is_the_same_for_everybody_who_sees_the_same(ada):
    matter = scene.unknown()
    assert matter.look(at(5)).snapshot == matter.look(LATER).snapshot
    assert matter.look().snapshot != scene.unknown().look().snapshot


@pytest.mark.django_db(transaction=True)
def test_of_two_rulings_at_once_one_wins_and_the_other_is_told_which():
    ada, cyd = scene.user("ada", "rule_effect"), scene.user("cyd", "rule_effect")
    matter = scene.unknown()
    view = matter.look()
    with transaction.atomic():
        matter.rule("happened", cyd, view=view, now=AFTER)
        other = Aside(lambda: matter.rule("abandon", ada, view=view, now=AFTER)).once_it_waits()
    with pytest.raises(Refused) as found:
        other.answer()
    assert (found.value.code, found.value.params["by"], found.value.params["verdict"]) == (
        "MOVED",
        "cyd",
        "happened",
    )
    assert [*Ruling.objects.values_list("verdict", flat=True)] == ["happened"]
    assert (matter.slot.status, matter.job.status, len(scene.audited())) == ("committed", "pending", 1)


@pytest.mark.django_db(transaction=True)
def test_of_two_approvals_at_once_one_wins():
    bea, eve = scene.user("bea", "approve_ruling"), scene.user("eve", "approve_ruling")
    matter = scene.approval(by="ada")
    view = matter.look()
    proposal = view.proposal
    with transaction.atomic():
        matter.approve(bea, view=view, proposal=proposal)
        other = Aside(lambda: matter.approve(eve, view=view, proposal=proposal)).once_it_waits()
    with pytest.raises(Refused) as found:
        other.answer()
    assert (found.value.code, found.value.params["by"]) == ("MOVED", "bea")
    assert [*Ruling.objects.values_list("by", flat=True)] == ["bea"]


@pytest.mark.django_db(transaction=True)
def test_every_write_of_a_person_goes_through_in_a_transaction_of_its_own():
    """Statements are prepared there, and the server must know each parameter's type."""
    cyd, bea = scene.user("cyd", "rule_effect", "approve_ruling"), scene.user("bea", "approve_ruling")
    matter = scene.unknown(second_person="always")
    case = matter.case
    casework.take(case.id, actor=cyd, now=LATER)
    casework.give_back(case.id, actor=cyd, now=LATER)
    casework.park(case.id, AFTER, actor=cyd, now=LATER)
    casework.comment(case.id, "seen", actor=cyd, now=LATER)
    asked = matter.rule("did_not_happen", cyd)
    rulings.reject(asked.proposal_id, actor=bea, snapshot=matter.look().snapshot, reason="no", now=LATER)
    matter.rule("did_not_happen", cyd)
    assert matter.approve(bea).effect_status == "absent"
    assert scene.unknown().rule("happened", cyd, reference="r").effect_status == "committed"
    assert scene.unknown().rule("abandon", cyd).job_status == "failed"
    for verdict in ("use_recorded", "rebind", "revise"):
        assert scene.conflict().rule(verdict, cyd, arguments={}).job_status == "pending"
    assert scene.approval(by="ada").approve(bea).case_open
