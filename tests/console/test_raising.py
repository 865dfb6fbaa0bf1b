"""A raise of the epoch by two people, on their pages."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from jobs.models import RaiseProposal, Scheduler
from tests import build
from tests.console.people import log_in
from tests.console.test_acts import forget_log_in, found, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


@pytest.fixture(autouse=True)
def _takes_two(settings):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}


@pytest.fixture
def admin(browse):
    return browse("admin")


@pytest.fixture
def approver(browse):
    return browse("approver")


def sent(page, **more):
    return {"epoch": 1, "reason": "two owners", "typed": found(r"(raise 1 in \w+)", page), **more}


def ask(admin, **more):
    """Ask for a raise; returns the pages on which another answers."""
    url = reverse("admin:epoch-raise")
    done = admin.post(url, sent(text_of(admin.get(url)), **more), follow=True)
    assert "Nothing is raised before another person confirms it" in text_of(done)
    key = RaiseProposal.objects.get(decision="").pk
    return [reverse(f"admin:raise-{word}", args=[key]) for word in ("confirm", "decline")]


def test_page_names_who_could_be_second_and_asks_only(admin, approver):
    page = text_of(admin.get(reverse("admin:epoch-raise")))
    assert re.search(r"Second person +approver-1", page)
    assert "Ask another person to confirm" in page
    ask(admin)
    assert Scheduler.objects.get().epoch == 1
    again = text_of(admin.get(reverse("admin:epoch-raise")))
    assert "admin-1 has asked for it already" in again
    assert "Take it back" in again
    assert "Confirm" not in again


def test_page_without_anybody_to_confirm_says_so(admin):
    page = text_of(admin.get(reverse("admin:epoch-raise")))
    assert "there is nobody else who may confirm it" in page


def test_everybody_is_told_that_a_raise_waits(admin, approver, viewer):
    confirm, _ = ask(admin)
    for address in ("admin:index", "admin:scheduler"):
        assert confirm in approver.get(reverse(address)).content.decode()
    assert "Epoch and claims asked" in text_of(viewer.get(reverse("admin:jobs")))
    page = viewer.get(reverse("admin:scheduler"))
    assert "admin-1 asks to raise the epoch 1" in text_of(page)
    assert confirm not in page.content.decode()
    assert "needs the permission" in text_of(viewer.get(confirm))
    assert viewer.post(confirm, {"epoch": 1, "reason": "r", "typed": "x"}).status_code in (400, 403)


def test_second_person_sees_both_prices_and_raises_what_was_asked(admin, approver):
    first = build.running()
    confirm, _ = ask(admin, close_claims="on", floor="7")
    build.effect(first, status="executing", amount="42.00", currency="EUR")
    page = text_of(approver.get(confirm))
    assert "two owners" in page
    assert re.search(r"when it was asked for.*Effects that become unknown 0 .*none", page)
    assert re.search(r"What it costs now.*Effects that become unknown 1 .*42.00 EUR", page)
    assert "Claims are closed with it" in page
    assert "above epoch 7 too" in page
    assert approver.post(confirm, {"epoch": 1, "reason": "r", "typed": "raise 1 in MOON"}).status_code == 400
    done = text_of(approver.post(confirm, sent(page), follow=True))
    assert "Epoch 8 rules" in done
    assert "admin-1 raised it, confirmed by approver-1" in done
    assert not Scheduler.objects.get().claims_open
    assert "approver-1 has confirmed it" in text_of(approver.get(confirm))


def test_own_raise_is_taken_back_and_not_confirmed(admin, approver):
    confirm, decline = ask(admin)
    page = text_of(admin.get(confirm))
    assert "You asked for it; another person must confirm it" in page
    asking = text_of(approver.get(confirm))
    assert admin.post(confirm, sent(asking)).status_code == 403
    assert Scheduler.objects.get().epoch == 1
    assert "It is taken back" in text_of(admin.post(decline, {"reason": "a mistake"}, follow=True))
    assert "admin-1 has declined it: a mistake" in text_of(approver.get(confirm))


def test_form_for_another_epoch_raises_nothing(admin, approver):
    confirm, _ = ask(admin)
    page = text_of(approver.get(confirm))
    place = found(r"raise 1 in (\w+)", page)
    answer = approver.post(confirm, {"epoch": 2, "reason": "r", "typed": f"raise 2 in {place}"})
    assert (answer.status_code, Scheduler.objects.get().epoch) == (409, 1)
    build.raise_epoch()
    late = approver.post(confirm, sent(page))
    assert (late.status_code, Scheduler.objects.get().epoch) == (409, 2)
    assert "The epoch is another one by now" in text_of(late)


def test_confirming_asks_a_recent_log_in_and_keeps_the_words(admin, approver):
    confirm, _ = ask(admin)
    page = text_of(approver.get(confirm))
    forget_log_in(approver)
    answer = approver.post(confirm, sent(page, reason="my own words"))
    assert "my own words" in answer.content.decode()
    assert Scheduler.objects.get().epoch == 1


def test_declining_of_what_was_answered_tells_who_was_first(admin, approver, browse, django_user_model):
    _, decline = ask(admin)
    other = type(approver)()
    log_in(other, django_user_model.objects.create_superuser("root"))
    assert other.post(decline, {"reason": "no"}).status_code == 302
    late = approver.post(decline, {"reason": "me too"})
    assert late.status_code == 409
    assert "root has declined it: no" in text_of(late)


def test_unknown_raise_is_not_found(admin):
    url = reverse("admin:raise-confirm", args=["0197aaaa-0000-7000-8000-000000000000"])
    assert admin.get(url).status_code == 404
    assert admin.post(url, {}).status_code == 404
