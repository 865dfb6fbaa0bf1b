"""A console without a single job teaches how to begin."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


def test_empty_console_says_how_to_begin(window, person):
    page = window()
    page.goto("/")
    expect(page.get_by_role("heading", name="No job yet")).to_be_visible()
    expect(page.get_by_text("send.enqueue(")).to_be_visible()
    for path, words in (
        ("/jobs/", "No job yet"),
        ("/workers/", "No worker yet"),
        ("/refusals/", "No write was refused"),
    ):
        page.goto(path)
        expect(page.get_by_role("heading", name=words)).to_be_visible()
