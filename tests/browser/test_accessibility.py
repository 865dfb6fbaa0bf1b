"""Accessibility: axe finds nothing serious on any page, in light and in the dark."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
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


def grave(page, options=None, part=None):
    """Return what axe holds for serious or critical in the page, or a part of it: rule, and the elements."""
    found = Axe().run(page, context=part, options=options).response["violations"]
    return [
        (violation["id"], [node["target"] for node in violation["nodes"]][:4])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("scheme", "options"), [("light", None), ("dark", COLOURS)])
def test_no_page_has_a_serious_fault(window, world, scheme, options):
    page = window(scheme=scheme)
    faults = {}
    known = pages(world)
    # A list of the last half hour holds every status; a longer one holds nothing new.
    looked_at = {name: known[name] for name in LOOKED_AT}
    looked_at["jobs"] = "/jobs/?age=25m"
    for name, url in looked_at.items():
        page.goto(url)
        page.locator("details:not(.menu)").evaluate_all(OPEN_ALL)
        # The frame is everywhere the same, and looked at once.
        faults[name] = grave(page, options, None if name == "index" else "main")
    page.locator("summary", has_text="Filter").click()
    faults["filter menu"] = grave(page, options)
    page.locator("summary", has_text="User menu").click()
    faults["user menu"] = grave(page, options)
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_before_the_log_in_and_page_of_an_error_have_no_serious_fault(window, person, scheme, told):
    page = window(scheme=scheme, known=False)
    page.goto("/login/")
    faults = {"log-in": grave(page)}
    page.get_by_label("User name").fill("viewer")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Log in").click()
    faults["log-in refused"] = grave(page)
    page = window(scheme=scheme)
    for url in ("/nowhere/", "/jobs/?statee=failed"):
        page.goto(url)
        faults[url] = grave(page)
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
