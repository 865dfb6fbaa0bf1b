"""What people do beside ruling: take, give back, park, comment, inquire."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import effect_kinds
from jobs.effect_kinds import Found, NotFound
from jobs.models import AuditEntry, Evidence
from jobs.operations import casework
from jobs.outcomes import Refused
from tests import build
from tests.build import at
from tests.operations import scene
from tests.operations.scene import LATER

pytestmark = pytest.mark.django_db


def refused(use, *arguments, **more):
    with build.savepoint(), pytest.raises(Refused) as found:
        use(*arguments, **more)
    assert str(found.value) != found.value.code
    return found.value


def test_a_taken_case_is_somebodys_until_it_is_given_back_or_time_runs_out(ada, bea):
    matter = scene.unknown()
    case = matter.case
    casework.take(case.id, actor=ada, minutes=10, now=at(0))
    assert (matter.case.owner, matter.case.owned_until) == ("ada", at(600))
    error = refused(casework.take, case.id, actor=bea, now=at(599))
    assert (error.code, error.params["by"]) == ("CASE_TAKEN", "ada")
    assert refused(casework.give_back, case.id, actor=bea, now=at(599)).code == "CASE_NOT_YOURS"
    casework.take(case.id, actor=bea, now=at(600))
    assert matter.case.owner == "bea"
    casework.give_back(case.id, actor=bea, now=at(601))
    assert (matter.case.owner, matter.case.owned_until) == ("", None)


def test_parking_hides_a_case_and_leaves_its_time_limit(ada):
    matter = scene.unknown(sla=3600)
    due = matter.case.sla_due_at
    casework.park(matter.case.id, at(900), actor=ada, now=at(10))
    assert (matter.case.parked_until, matter.case.sla_due_at) == (at(900), due)
    assert refused(casework.park, matter.case.id, at(10), actor=ada, now=at(10)).code == "PARK_PAST"
    casework.park(matter.case.id, None, actor=ada, now=at(11))
    assert matter.case.parked_until is None


def test_what_is_no_ruling_takes_a_permission_an_open_case_and_the_version_that_was_seen(ada, dan):
    matter = scene.unknown()
    case = matter.case
    uses = [
        lambda **by: casework.take(case.id, **by),
        lambda **by: casework.give_back(case.id, **by),
        lambda **by: casework.park(case.id, LATER, **by),
        lambda **by: casework.comment(case.id, "x", **by),
    ]
    before = matter.written()
    for use in uses:
        assert refused(use, actor=dan, now=at(9)).code == "NOT_PERMITTED"
        assert refused(use, actor=ada, now=at(9), seen_version=case.version + 1).code == "MOVED"
    assert matter.written() == before
    matter.rule("happened", ada)
    for use in uses:
        assert refused(use, actor=ada, now=at(9)).code == "CASE_CLOSED"


def test_comments_have_words_and_an_end(ada):
    case = scene.unknown().case
    assert refused(casework.comment, case.id, " ", actor=ada).code == "COMMENT_MISSING"
    assert refused(casework.comment, case.id, "x" * 2001, actor=ada).code == "COMMENT_TOO_LONG"
    assert refused(casework.take, case.id, actor=ada, minutes=0).code == "MINUTES"


def test_an_inquiry_is_evidence_and_cools_down(ada):
    matter = scene.unknown(settle_after=None)
    assert casework.inquire_now(matter.case.id, actor=ada) is None
    last = Evidence.objects.order_by("-id")[0]
    assert (last.source, last.outcome, last.actor) == ("inquiry", "not_found", "ada")
    assert refused(casework.inquire_now, matter.case.id, actor=ada).code == "COOL_DOWN"
    assert Evidence.objects.filter(source="inquiry").count() == 1
    assert AuditEntry.objects.filter(object_type="case").count() == 0


def test_an_inquiry_that_finds_it_settles_the_case(ada):
    matter = scene.unknown()
    case = matter.case
    kind = effect_kinds.find(scene.PAY)
    assert kind is not None
    kind.inquire(lambda request: Found({"ok": 1}, "ch_1", payload=request.payload))
    assert casework.inquire_now(case.id, actor=ada) == "committed"
    case.refresh_from_db()
    assert (case.closed_as, matter.job.status) == ("resolved", "pending")
    assert refused(casework.inquire_now, case.id, actor=ada).code == "SLOT_STATUS"


def test_who_may_not_rule_asks_no_provider(bea, dan):
    matter = scene.unknown()
    kind = effect_kinds.find(scene.PAY)
    assert kind is not None
    asked: list[Any] = []

    def look(request: Any) -> NotFound:
        asked.append(request)
        return NotFound()

    kind.inquire(look)
    for actor in (bea, dan):
        assert refused(casework.inquire_now, matter.case.id, actor=actor).code == "NOT_PERMITTED"
    assert asked == []


def test_what_cannot_be_asked_for_says_so(ada):
    matter = scene.unknown()
    effect_kinds.forget(scene.PAY)
    assert refused(casework.inquire_now, matter.case.id, actor=ada).code == "EFFECT_KIND_UNKNOWN"


def test_a_case_is_shown_with_everything_that_is_known(ada):
    matter = scene.unknown(second_person="always")
    matter.rule("did_not_happen", ada)
    view = matter.look()
    assert view.proposal is not None
    assert view.proposal.by == "ada"
    assert [e.outcome for e in view.evidence] == ["unknown"]
    assert (view.sender.ended_at, view.sender.proven_gone) == (at(1), True)
    assert (view.in_flight_until, view.settle_by, view.in_flight_over) == (at(61), at(101), True)
    assert view.sender.worker is None, "its row may be pruned; the attempt still names it"
    assert view.sender.attempt is not None
