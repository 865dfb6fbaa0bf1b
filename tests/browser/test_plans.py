"""A mass action in a browser: from the filtered list to what was left out, and from picked rows."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connections
from django.urls import reverse
from playwright.sync_api import expect

from jobs.models import Plan
from tests import build
from tests.browser.test_accessibility import COLOURS, grave
from tests.operations.test_plans import failed, work

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


@pytest.fixture
def operator(person):
    """A person of the group `operator`."""
    user = get_user_model().objects.create_user("operator-1", password="a password", is_staff=True)
    user.groups.set([Group.objects.get(name="operator")])
    return user


def work_beside():
    """Let a worker take a step in a thread: where a browser is driven, no event loop can be begun."""

    def turn():
        try:
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(turn).result()


def test_250_filtered_jobs_are_planned_confirmed_and_gone_through_and_picked_ones_too(window, operator):
    ids = failed(250)
    page = window(who=operator)
    page.clock.install()
    page.goto("/jobs/?status=failed")
    page.get_by_role("link", name="Plan for this filter").click()
    expect(page.locator("dt", has_text="Retry").locator("xpath=../dd")).to_have_text("250")
    assert grave(page, None, "main") == []
    page.get_by_label("Retry").check()
    page.get_by_label("Why, in your own words").fill("the ledger answers again")
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_text("Nothing is done yet.")).to_be_visible()
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    assert grave(page, None, "main") == []
    page.get_by_label("Type the number of jobs").fill("250")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("0 of 250")).to_be_visible()
    for moved in ids[7::100]:
        build.edit(moved, label="moved")
    work_beside()
    page.clock.run_for(3000)
    expect(page.get_by_text("250 of 250")).to_be_visible()
    expect(page.get_by_role("row", name="The job has changed since you looked")).to_have_count(3)
    assert grave(page, None, "main") == []

    page.goto("/jobs/?status=failed")
    page.locator("#result_list tbody").get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Plan for the selected jobs").click()
    expect(page.get_by_text("1 job picked")).to_be_visible()
    page.get_by_label("Retry").check()
    page.get_by_label("Why, in your own words").fill("this one too")
    page.get_by_role("button", name="Make the plan").click()
    page.get_by_role("button", name="Leave it").click()
    expect(page.get_by_text("Stopped. 1 job was not touched.")).to_be_visible()

    phone = window(who=operator, scheme="dark", width=390, height=844)
    latest = [Plan.objects.latest("id").pk]
    for url in (
        reverse("admin:plans"),
        reverse("admin:plan", args=latest),
        reverse("admin:plan-rows", args=latest),
    ):
        phone.goto(url)
        assert grave(phone, COLOURS, "main") == []
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, url
