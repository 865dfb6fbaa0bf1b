"""A raise of the epoch by two people: one asks, another confirms, and nothing is raised in between."""

from __future__ import annotations

import json
import uuid

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection

from jobs import audit
from jobs.models import AuditEntry, Job, RaiseProposal, Scheduler
from jobs.models.audit import Source
from jobs.operations import cluster, raising
from jobs.outcomes import Refused
from tests import build
from tests.operations import scene

pytestmark = pytest.mark.django_db
AGO = "UPDATE jobs_raiseproposal SET expires_at = '2026-01-01 00:00:00+00:00'"


@pytest.fixture(autouse=True)
def _takes_two(settings):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}


@pytest.fixture
def eve(db: None) -> User:
    """Raises the epoch."""
    return scene.user("eve", "raise_epoch")


@pytest.fixture
def fay(db: None) -> User:
    """Raises the epoch too."""
    return scene.user("fay", "raise_epoch")


def ask(actor, **more):
    return raising.propose(actor=actor, reason="two owners", **{"expected": build.epoch(), **more})


def refused(code, function, *given, **more):
    """Be refused, and find the epoch, the proposals and the chain as they were."""

    def standing():
        decisions = RaiseProposal.objects.values_list("pk", "decision")
        return build.epoch(), sorted(decisions), AuditEntry.objects.count()

    before = standing()
    with build.savepoint(), pytest.raises(Refused) as found:
        function(*given, **more)
    assert found.value.code == code
    assert str(found.value) != code, "the catalogue has a sentence"
    assert standing() == before
    return found.value


def test_one_person_raises_nothing(eve):
    refused("RAISE_NEEDS_SECOND", cluster.raise_epoch, actor=eve, expected=1, reason="r")
    asked = ask(eve, floor=8, close_claims=True)
    assert (build.epoch(), asked.decision) == (1, "")


def test_second_person_raises_what_was_asked_for_and_both_are_in_the_audit(eve, bea):
    lease = build.running()
    asked = ask(eve, floor=8, close_claims=True)
    assert json.loads(asked.price)["attempts_lost"] == 1
    assert raising.approve(asked.pk, actor=bea, reason="I see two owners too") == 9
    row, entry = Scheduler.objects.get(), AuditEntry.objects.get(action="raise_epoch")
    assert (row.epoch, row.claims_open, row.changed_by, row.reason) == (9, False, "eve", "two owners")
    assert (entry.actor, entry.approver, entry.reason) == ("eve", "bea", "two owners")
    assert Job.objects.commit(lease, 1, now=build.at(1)).reason == "EPOCH"
    asked.refresh_from_db()
    assert (asked.decision, asked.decided_by, asked.note) == ("approved", "bea", "I see two owners too")


def test_nobody_confirms_what_he_asked_for_also_under_another_name(eve):
    asked = ask(eve)
    refused("SELF_APPROVAL", raising.approve, asked.pk, actor=eve, reason="r")
    User.objects.filter(pk=eve.pk).update(username="evelyn")
    refused("SELF_APPROVAL", raising.approve, asked.pk, actor=eve, reason="r")


def test_database_itself_refuses_one_person_for_two(eve):
    ask(eve)
    with pytest.raises(IntegrityError), build.savepoint(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_raiseproposal SET decision = 'approved', decided_by = 'eve', decided_at = at"
        )


@pytest.mark.parametrize("act", [raising.approve, raising.reject])
def test_second_person_needs_a_permission(act, eve, ada, dan):
    asked = ask(eve)
    for nobody in (ada, dan):
        refused("NOT_PERMITTED", act, asked.pk, actor=nobody, reason="r")


def test_who_may_not_raise_may_not_ask(bea):
    refused("NOT_PERMITTED", ask, bea)


def test_asking_and_confirming_need_a_recent_login_at_a_browser(eve, fay):
    asked = ask(eve)
    with audit.through(Source.CONSOLE):
        refused("LOGIN_NOT_RECENT", ask, fay)
        refused("LOGIN_NOT_RECENT", raising.approve, asked.pk, actor=fay, reason="r")
        raising.reject(asked.pk, actor=fay, reason="to decline raises nothing")


def test_confirmation_counts_only_while_the_asker_may_still_raise(eve, fay):
    asked = ask(eve)
    eve.user_permissions.clear()
    refused("NOT_PERMITTED", raising.approve, asked.pk, actor=fay, reason="r")
    User.objects.filter(pk=eve.pk).update(is_active=False)
    refused("USER_INACTIVE", raising.approve, asked.pk, actor=fay, reason="r")


def test_confirmation_of_another_epoch_raises_nothing(eve, fay):
    asked = ask(eve)
    Job.objects.raise_epoch(expected=1, actor="a command", reason="meanwhile")
    refused("EPOCH_MOVED", raising.approve, asked.pk, actor=fay, reason="r")
    assert ask(fay).epoch == 2, "what nobody can confirm stands in nobody's way"
    asked.refresh_from_db()
    assert asked.decision == "void"


def test_proposal_that_ran_out_raises_nothing_and_makes_room(eve, fay):
    asked = ask(eve)
    with connection.cursor() as cursor:
        cursor.execute(AGO)
    refused("RAISE_DECIDED", raising.approve, asked.pk, actor=fay, reason="r")
    refused("RAISE_DECIDED", raising.reject, asked.pk, actor=fay, reason="r")
    assert ask(eve).pk != asked.pk


def test_second_who_asks_is_told_who_was_first(eve, fay):
    ask(eve)
    assert refused("RAISE_ASKED", ask, fay).params["by"] == "eve"


def test_stale_page_asks_for_nothing(eve):
    build.raise_epoch()
    assert refused("EPOCH_MOVED", ask, eve, expected=1).params["found"] == 2


def test_proposal_is_used_once(eve, fay, bea):
    asked = ask(eve)
    raising.approve(asked.pk, actor=fay, reason="r")
    refused("RAISE_DECIDED", raising.approve, asked.pk, actor=bea, reason="r")
    assert build.epoch() == 2


def test_asker_takes_back_and_another_declines(eve, bea):
    first = ask(eve)
    raising.reject(first.pk, actor=eve, reason="a mistake")
    refused("RAISE_DECIDED", raising.approve, first.pk, actor=bea, reason="r")
    second = ask(eve)
    raising.reject(second.pk, actor=bea, reason="one worker would do")
    entry = AuditEntry.objects.filter(action="reject_raise").latest("seq")
    assert (entry.actor, entry.reason, build.epoch()) == ("bea", "one worker would do", 1)


def test_what_nobody_asked_for_is_not_confirmed(eve):
    refused("RAISE_UNKNOWN", raising.approve, uuid.uuid4(), actor=eve, reason="r")


def test_reason_of_blanks_asks_and_confirms_nothing(eve, fay):
    refused("REASON_MISSING", raising.propose, actor=eve, reason=" ", expected=1)
    asked = ask(eve)
    refused("REASON_MISSING", raising.approve, asked.pk, actor=fay, reason="\u200b")


def test_where_one_person_is_enough_nobody_is_asked(settings, eve):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 0}
    refused("RAISE_NEEDS_NOBODY", ask, eve)
    assert cluster.raise_epoch(actor=eve, expected=1, reason="r") == 2


def test_those_who_could_be_second_are_named(eve, fay, bea, dan):
    User.objects.filter(pk__in=[eve.pk, fay.pk, bea.pk, dan.pk]).update(is_staff=True)
    assert raising.others(eve) == ["bea", "fay"]
