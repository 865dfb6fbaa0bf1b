"""A log-in that ends while a person writes takes no words."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import expect

from tests.console import matters

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]
WORDS = "the provider's list of Tuesday has it twice"


@pytest.fixture
def case(world):
    return reverse("admin:case", args=[matters.open_case().pk])


def somebody(name):
    user = User.objects.create_user(name, password="a password", is_staff=True)
    user.groups.add(Group.objects.get(name="adjudicator"))
    return user


def log_in(page, name):
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill("a password")
    page.get_by_role("button", name="Log in").click()


def written(page, case):
    """Write the reason of a ruling, and lose the log-in."""
    page.goto(case)
    page.get_by_role("radio", name="Close it, send nothing").check()
    page.get_by_label("In your own words").fill(WORDS)
    Session.objects.all().delete()


@pytest.mark.parametrize("sends", [True, False], ids=["by sending", "by the page that refreshes itself"])
def test_reason_is_back_after_the_log_in_and_nothing_is_chosen(window, case, sends, told):
    name = f"writer-{sends}"
    page = window(who=somebody(name))
    page.clock.install()
    written(page, case)
    if sends:
        page.get_by_label("Reason", exact=True).select_option(index=1)
        page.get_by_role("button", name="Rule").click()
    else:
        page.get_by_role("heading", level=1).click()  # who is in a field is not interrupted
        page.clock.run_for(8_000)
    expect(page).to_have_title(re.compile("Log in"))
    log_in(page, name)
    expect(page.get_by_label("In your own words")).to_have_value(WORDS)
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    told[:] = [line for line in told if "403" not in line]  # the refresh that found no log-in


def test_words_are_another_persons_neither_in_the_same_tab_nor_after_they_were_left(window, case):
    first = somebody("first")
    somebody("second")
    page = window(who=first)
    written(page, case)
    page.goto(case)
    log_in(page, "second")
    expect(page.get_by_label("In your own words")).to_have_value("")
    page.get_by_label("In your own words").fill(WORDS)
    page.goto("/cases/")
    page.goto(case)
    expect(page.get_by_label("In your own words")).to_have_value("")
