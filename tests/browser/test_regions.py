"""Regions that cannot be refreshed, and regions that are asked for: each tells of it in its own place."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import COLOURS, grave

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]

ERROR = "Failed to load resource|Response Status Error|htmx:(afterRequest|sendError|sendAbort|timeout)"


class Provider:
    """Stands before the server for one region: `answer` is a status, or None for no answer."""

    def __init__(self, page, region):
        self.answer, self.asked, self.waiting = 200, [], []
        page.route(
            lambda url: True,
            lambda route: (
                self._hear(route) if route.request.headers.get("hx-target") == region else route.fallback()
            ),
        )

    def _hear(self, route):
        self.asked.append(route.request)
        if self.answer == 200:
            route.fallback()
        elif self.answer is None:
            self.waiting.append(route)
        else:
            route.fulfill(status=self.answer, body="<h1>broken</h1>")


def forget(told):
    """Take out what the browser itself tells of answers that the test spoilt."""
    assert all(re.search(ERROR, text) for text in told), told
    told.clear()


@pytest.fixture
def overview(window, world):
    """The overview with its time in the test's hand."""
    page = window()
    page.clock.install()
    page.goto("/")
    return page


def values_of(page, region):
    return page.locator(f"#{region}").first.evaluate("(e) => e.innerText.replace(/\\d+ (s|min)\\b/g, '')")


def test_region_that_cannot_be_refreshed_says_so_in_its_place_and_recovers_by_itself(overview, told):
    page, proof, needs = overview, overview.locator("#proof"), overview.locator("#needs")
    server, was = Provider(page, "proof"), values_of(page, "proof .card")
    server.answer = 500
    page.clock.run_for(31_000)
    note = proof.locator(".unfresh-note")
    expect(note).to_contain_text(
        re.compile(r"Could not refresh: values of \d\d:\d\d UTC, not refreshed since\.")
    )
    expect(proof).to_have_class(re.compile(r"\bunfresh\b"))
    assert values_of(page, "proof .card") == was
    expect(page.locator("#told")).to_have_text("Could not refresh: Fence coverage")
    expect(page.locator("#live-stale")).to_be_visible()
    expect(needs).not_to_have_class(re.compile("unfresh"))
    assert needs.locator(".unfresh-note").count() == 0
    since = note.inner_text()
    page.clock.run_for(31_000)
    expect(note).to_have_count(1)
    assert note.inner_text() == since
    server.answer = 200
    page.clock.run_for(31_000)
    expect(note).to_have_count(0)
    expect(proof).not_to_have_class(re.compile("unfresh"))
    expect(page.locator("#told")).to_have_text("Refreshed again.")
    expect(page.locator("#live-stale")).to_be_hidden()
    forget(told)


def test_nothing_new_is_a_good_answer_and_takes_the_note_away(overview, told):
    server = Provider(overview, "flow")
    overview.clock.run_for(31_000)
    expect(overview.locator("#flow")).to_be_visible()
    server.answer = 503
    overview.clock.run_for(31_000)
    expect(overview.locator("#flow .unfresh-note")).to_be_visible()
    server.answer = 304
    overview.clock.run_for(31_000)
    expect(overview.locator("#flow .unfresh-note")).to_have_count(0)
    expect(overview.get_by_role("heading", name="Commits per minute")).to_be_visible()
    forget(told)


def test_server_that_does_not_answer_is_told_after_ten_seconds(overview, told):
    server = Provider(overview, "flow")
    server.answer = None
    overview.clock.run_for(31_000)
    expect(overview.locator("#flow")).not_to_have_class(re.compile("unfresh"))
    # The browser ends the request itself, by its own clock.
    expect(overview.locator("#flow .unfresh-note")).to_be_visible()
    forget(told)


def test_try_again_asks_at_once_also_while_updates_are_paused_and_gives_the_focus_back(overview, told):
    page, server = overview, Provider(overview, "proof")
    server.answer = 500
    page.clock.run_for(31_000)
    again = page.locator("#proof").get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    page.get_by_role("button", name="Pause updates").click()
    before = len(server.asked)
    again.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_have_text("Could not refresh: Fence coverage")
    assert len(server.asked) == before + 1
    assert server.asked[-1].headers["hx-boosted"] == "true"
    assert again.evaluate("(e) => e === document.activeElement")
    server.answer = 200
    page.keyboard.press("Enter")
    expect(again).to_have_count(0)
    assert page.locator("#proof").evaluate("(e) => e === document.activeElement")
    assert len(server.asked) == before + 2
    forget(told)


def test_refresh_by_itself_moves_no_focus(overview, told):
    page, server = overview, Provider(overview, "proof")
    server.answer = 500
    page.clock.run_for(31_000)
    expect(page.locator("#proof .unfresh-note")).to_be_visible()
    server.answer = 200
    page.clock.run_for(31_000)
    expect(page.locator("#proof .unfresh-note")).to_have_count(0)
    assert page.evaluate("document.activeElement === document.body")
    assert "hx-boosted" not in server.asked[-1].headers
    forget(told)


def test_range_that_is_asked_for_loads_its_charts_alone_and_keeps_them(overview):
    page, server = overview, Provider(overview, "flow")
    link = page.get_by_role("link", name="24 h", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/\?range=24h$"))
    expect(page.locator("#flow-24h")).to_have_attribute("aria-current", "true")
    assert page.evaluate("document.activeElement.id") == "flow-24h"
    assert page.locator("#needs").count() == 1
    page.clock.run_for(31_000)
    expect(page.locator("#flow-24h")).to_have_attribute("aria-current", "true")
    assert {request.url.rpartition("/")[2] for request in server.asked} == {"?range=24h"}


def test_region_that_takes_its_time_says_that_it_loads_but_not_at_once(overview):
    page, server, flow = overview, Provider(overview, "flow"), overview.locator("#flow")
    server.answer = None
    page.get_by_role("link", name="7 d", exact=True).click()
    expect(flow).to_have_attribute("aria-busy", "true")
    page.clock.run_for(200)
    expect(flow.locator(".skeleton")).to_have_count(0)
    page.clock.run_for(200)
    expect(flow.locator(".skeleton")).to_have_count(1)
    expect(page.locator("#told")).to_have_text("Loading: Flow")
    expect(page.get_by_role("heading", name="Commits per minute")).to_be_visible()
    server.answer = 200
    server.waiting.pop().fallback()
    expect(flow.locator(".skeleton")).to_have_count(0)
    assert flow.get_attribute("aria-busy") is None
    expect(page.locator("#flow-7d")).to_have_attribute("aria-current", "true")


def test_slow_refresh_that_is_under_way_does_not_undo_what_is_asked_for(overview, told):
    page, server = overview, Provider(overview, "flow")
    server.answer = None
    page.clock.run_for(31_000)
    page.clock.run_for(31_000)
    assert len(server.waiting) == 1
    page.get_by_role("button", name="Pause updates").click()
    server.answer = 200
    page.get_by_role("link", name="7 d", exact=True).click()
    expect(page.locator("#flow-7d")).to_have_attribute("aria-current", "true")
    expect(page.locator("#flow .unfresh-note")).to_have_count(0)
    assert page.locator("#flow").get_attribute("aria-busy") is None
    forget(told)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_values_that_are_old_can_still_be_read(window, world, told, scheme):
    page = window(scheme=scheme, width=390, height=844)
    page.clock.install()
    page.goto("/")
    for region in ("needs", "proof", "flow"):
        Provider(page, region).answer = 500
    page.clock.run_for(31_000)
    expect(page.locator(".unfresh-note")).to_have_count(3)
    assert grave(page, COLOURS, "main") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    forget(told)


def test_phrase_names_every_region_that_is_not_fresh(overview, told):
    for region in ("proof", "flow"):
        Provider(overview, region).answer = 500
    overview.clock.run_for(31_000)
    expect(overview.locator("#told")).to_have_text("Could not refresh: Fence coverage, Flow")
    assert overview.locator("#told").get_attribute("role") == "status"
    forget(told)
