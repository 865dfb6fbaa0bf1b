"""Accessibility: axe finds nothing serious on any page, in light and in the dark."""

import json
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from jobs.api import openapi
from tests.browser.addresses import pages

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""What can differ between light and dark."""
LOOKED_AT = [
    "index",
    "queues",
    "workers",
    "refusals",
    "scheduler",
    "drain",
    "audit",
    "password_change",
    "conversions",
    "inbox",
    "case",
    "case file",
    "handover",
    "found",
    "preferences",
    "second-factor",
    "practice case",
    "attempts",
    "attempt",
    "job uncertain",
    "job running",
    "job parent",
    "job succeeded",
]
OPEN_ALL = "all => all.forEach((details) => { details.open = true; })"


GRAVE = """async ([part, options]) => {
  const found = await axe.run(part || document, { ...options, resultTypes: ["violations"] });
  return found.violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => [violation.id, violation.nodes.slice(0, 4).map((node) => node.target)]);
}"""


def grave(page, options=None, part=None):
    """Return what axe holds for serious or critical in the page, or a part of it: rule, and the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(GRAVE, [part, options])


def grave_by_scheme(page, name, part=None):
    """The same in light and then in the dark, where only colours can differ: by name and scheme."""
    faults = {(name, "light"): grave(page, None, part)}
    page.emulate_media(color_scheme="dark")
    faults[name, "dark"] = grave(page, COLOURS, part)
    page.emulate_media(color_scheme="light")
    return faults


def test_no_page_has_a_serious_fault_in_light_or_in_the_dark(window, world):
    page = window()
    faults: dict[tuple[str, str], Any] = {}
    known = pages(world)
    # A list of the last half hour holds every status; a longer one holds nothing new.
    looked_at = {name: known[name] for name in LOOKED_AT}
    looked_at["jobs"] = "/jobs/?age=25m"
    for name, url in looked_at.items():
        page.goto(url)
        page.locator("details:not(.menu)").evaluate_all(OPEN_ALL)
        # The frame is everywhere the same, and looked at once.
        faults |= grave_by_scheme(page, name, None if name == "index" else "main")
    page.locator("summary", has_text="Filter").click()
    faults |= grave_by_scheme(page, "filter menu")
    page.locator("summary", has_text="User menu").click()
    faults |= grave_by_scheme(page, "user menu")
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_no_page_on_a_phone_has_a_serious_fault(window, world):
    page = window(width=390, height=844)
    faults = {}
    for name, url in (("index", "/"), ("jobs", "/jobs/?age=10m"), ("job", pages(world)["job uncertain"])):
        page.goto(url)
        faults[name] = grave(page)
    page.get_by_role("button", name="Menu", exact=True).click()
    faults["menu"] = grave(page)
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_page_before_the_log_in_and_page_of_an_error_have_no_serious_fault(window, person, told):
    page = window(known=False)
    page.goto("/login/")
    faults = grave_by_scheme(page, "log-in")
    page.get_by_label("User name").fill("viewer")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Log in").click()
    faults |= grave_by_scheme(page, "log-in refused")
    page = window()
    for url in ("/nowhere/", "/jobs/?statee=failed"):
        page.goto(url)
        faults |= grave_by_scheme(page, url)
    page.goto("/")
    told.clear()  # the browser tells of each 404 and 400
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_page_of_the_api_shows_each_operation_tries_one_and_has_no_serious_fault(window):
    page = window()
    page.goto("/api/v1/docs")
    methods = json.loads(openapi.JSON.read_text("utf-8"))["paths"].values()
    expect(page.locator("main details")).to_have_count(sum(map(len, methods)))
    listed = page.locator("details", has_text="GET/api/v1/jobs ").first
    listed.locator("summary").click()
    listed.get_by_role("button", name="Send").click()
    expect(listed.get_by_role("status")).to_contain_text('200\n{\n  "results": [')
    assert grave(page) == []
