"""What people do beside ruling: take, give back, park, comment, inquire."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from jobs import audit, effect_kinds
from jobs.effect_kinds import Found, NotFound
from jobs.models import AuditEntry, EffectSlot, Evidence, Job
from jobs.models.audit import Source
from jobs.operations import cases, casework
from jobs.outcomes import Refused
from jobs.worker.reconciler import Reconciler
from tests import build
from tests.build import at
from tests.ledger.chained import faults
from tests.operations import scene
from tests.operations.scene import LATER

pytestmark = pytest.mark.django_db


def refused(use, *arguments, **more):
    with build.savepoint(), pytest.raises(Refused) as found:
        use(*arguments, **more)
    assert str(found.value) != found.value.code
    return found.value


def down(matter):
    """Have the provider answer no inquiry."""

    def look(_request):
        raise TimeoutError

    kind = effect_kinds.find(scene.PAY)
    assert kind is not None
    kind.inquire(look)


def edit_slot(matter, **columns):
    names = ", ".join(f"{name} = %s" for name in columns)
    field: Any = EffectSlot._meta.get_field
    values = [field(name).get_db_prep_save(value, connection) for name, value in columns.items()]
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE jobs_effectslot SET {names} WHERE id = %s", [*values, matter.slot.pk])


def acts(case):
    """Return what the audit tells of the case: action, actor, why, before and after."""
    entries = AuditEntry.objects.filter(object_type="case", object_id=str(case.id)).order_by("seq")
    return [(e.action, e.actor, e.reason, json.loads(e.before), json.loads(e.after)) for e in entries]


def test_every_act_beside_a_ruling_leaves_an_entry_with_before_and_after(ada):
    case = scene.unknown().case
    nobody = {"owner": "", "owned_until": None}
    adas = {"owner": "ada", "owned_until": at(660).isoformat(timespec="microseconds")}
    here = {"parked_until": None, "parked_why": ""}
    away = {"parked_until": at(900).isoformat(timespec="microseconds"), "parked_why": "wait for the bank"}
    with audit.through(Source.CONSOLE, user="ada", snapshot="s" * 64):
        casework.take(case.id, actor=ada, minutes=10, now=at(60))
        casework.park(case.id, at(900), actor=ada, why=" wait for\nthe bank ", now=at(61))
        casework.park(case.id, None, actor=ada, now=at(62))
        casework.park(case.id, None, actor=ada, now=at(63))
        casework.give_back(case.id, actor=ada, now=at(64))
        casework.ask_to_inquire(case.id, actor=ada, now=at(65))
    told = acts(case)
    assert [(action, who, why) for action, who, why, *_ in told] == [
        ("take", "ada", ""),
        ("park", "ada", "wait for the bank"),
        ("unpark", "ada", ""),
        ("give_back", "ada", ""),
        ("inquire", "ada", ""),
    ], "what changed nothing leaves none"
    assert [state for *_, before, after in told[:4] for state in (before, after)] == [
        *(nobody, adas),
        *(here, away),
        *(away, here),
        *(adas, nobody),
    ]
    entry = AuditEntry.objects.get(action="take")
    assert (entry.source, entry.user, entry.snapshot) == ("console", "ada", "s" * 64)
    assert faults() == []


def test_act_that_is_refused_leaves_no_entry(ada, bea, dan):
    case = scene.unknown().case
    casework.take(case.id, actor=ada, now=at(60))
    for use in (
        lambda: casework.take(case.id, actor=bea, now=at(61)),
        lambda: casework.give_back(case.id, actor=bea, now=at(61)),
        lambda: casework.park(case.id, at(60), actor=ada, now=at(61)),
        lambda: casework.park(case.id, at(99), actor=dan, now=at(61)),
        lambda: casework.ask_to_inquire(case.id, actor=dan, now=at(61)),
    ):
        refused(use)
    assert [told[0] for told in acts(case)] == ["take"]


def test_act_is_not_done_where_the_audit_cannot_be_written(ada, monkeypatch):
    case = scene.unknown().case
    monkeypatch.setattr("jobs.ledger.audit.lock_head", lambda _session: None)
    for use in (
        lambda: casework.take(case.id, actor=ada),
        lambda: casework.park(case.id, LATER, actor=ada, now=at(5)),
        lambda: casework.ask_to_inquire(case.id, actor=ada, now=at(5)),
    ):
        with build.savepoint(), pytest.raises(audit.HeadMissing):
            use()
    case.refresh_from_db()
    assert (case.owner, case.parked_until, case.effect.inquire_asked_at) == ("", None, None)


def test_case_is_parked_for_seven_days_at_most_and_says_why_in_few_words(ada):
    case = scene.unknown().case
    week = at(10) + timedelta(days=7)
    far = refused(casework.park, case.id, week + build.TICK, actor=ada, now=at(10))
    assert (far.code, far.params) == ("PARK_FAR", {"days": 7})
    long = refused(casework.park, case.id, week, actor=ada, why="x" * 201, now=at(10))
    assert (long.code, long.params) == ("PARK_WHY_LONG", {"limit": 200})
    casework.park(case.id, week, actor=ada, why="x" * 200, now=at(10))
    case.refresh_from_db()
    assert (case.parked_until, case.parked_why) == (week, "x" * 200)


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
    assert refused(casework.comment, case.id, "\u200b", actor=ada).code == "COMMENT_MISSING"
    assert refused(casework.comment, case.id, "x" * 2001, actor=ada).code == "COMMENT_TOO_LONG"
    assert refused(casework.take, case.id, actor=ada, minutes=0).code == "MINUTES"


def test_an_inquiry_is_evidence_and_cools_down(ada):
    matter = scene.unknown(settle_after=None)
    assert casework.inquire_now(matter.case.id, actor=ada) is None
    last = Evidence.objects.order_by("-id")[0]
    assert (last.source, last.outcome, last.actor) == ("inquiry", "not_found", "ada")
    assert refused(casework.inquire_now, matter.case.id, actor=ada).code == "COOL_DOWN"
    assert Evidence.objects.filter(source="inquiry").count() == 1
    assert [told[:2] for told in acts(matter.case)] == [("inquire", "ada")], "a refused one leaves none"


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


def test_what_a_person_wants_to_know_the_reconciler_asks_first_and_once(ada):
    matter, other = scene.unknown(), scene.unknown()
    down(matter)
    reconciler = Reconciler(
        Job.objects.runtime, worker_id="w", queues=[build.QUEUE], kinds=[build.KIND], clock=lambda: 0.0
    )
    for one in (matter, other):  # both were asked a while ago, and are not due again
        edit_slot(one, inquired_at=at(-40), inquiries=9)
    casework.ask_to_inquire(matter.case.id, actor=ada, now=at(2))
    again = refused(casework.ask_to_inquire, matter.case.id, actor=ada, now=at(3))
    assert (again.code, again.params["by"]) == ("INQUIRY_ASKED", "ada")
    assert not Evidence.objects.filter(source="inquiry").exists()
    reconciler.turn(now=at(4))
    asked = Evidence.objects.filter(source="inquiry")
    assert [(e.effect_id, e.outcome, e.actor) for e in asked] == [(matter.slot.id, "no_answer", "ada")]
    inquired_at = matter.slot.inquired_at
    assert inquired_at is not None
    soon = inquired_at + timedelta(seconds=casework.COOL_DOWN - 1)
    assert refused(casework.ask_to_inquire, matter.case.id, actor=ada, now=soon).code == "COOL_DOWN"


def test_the_same_answer_again_makes_nothing_stale_that_a_person_looks_at(ada, monkeypatch):
    monkeypatch.setattr(casework, "COOL_DOWN", 0)
    monkeypatch.setattr(cases, "EVIDENCE", 4)
    matter = scene.unknown()
    down(matter)
    casework.inquire_now(matter.case.id, actor=ada)
    seen = matter.look()
    for _ in range(5):
        casework.inquire_now(matter.case.id, actor=ada)
        assert (matter.look().snapshot, matter.case.version) == (seen.snapshot, seen.case.version)
    matter.rule("happened", ada, view=seen)


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
        assert refused(casework.ask_to_inquire, matter.case.id, actor=actor).code == "NOT_PERMITTED"
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
    assert (view.in_flight_until, view.settle_by) == (at(61), at(101))
    assert view.sender.worker is None, "its row may be pruned; the attempt still names it"
    assert view.sender.attempt is not None
