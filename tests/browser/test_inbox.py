"""The inbox in a browser: nothing moves under the hand while the world does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from jobs.ledger.clock import clock
from jobs.models import Case
from tests.browser.alone import person, transactional_db  # noqa: F401
from tests.console import matters

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


def test_list_keeps_its_lines_in_place_and_says_what_is_new_until_it_is_asked(window: Any) -> None:
    page = window()
    page.clock.install()
    page.goto("/cases/")
    expect(page.get_by_role("heading", name="Nothing waits for a ruling")).to_be_visible()
    start = clock() - timedelta(hours=2)
    for n in range(3):
        matters.open_case(label=f"INV-{n}", amount=f"{90 - n}.00", opened=start)
    page.clock.run_for(4000)
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.cursor")).to_contain_text("INV-1")

    matters.open_case("contradiction", label="INV-loud", status="committed")
    matters.alter(Case.objects.get(label="INV-0"), closed_at=clock(), closed_as="resolved")
    matters.alter(
        Case.objects.get(label="INV-2"),
        amount="9000.00",
        owner="ada",
        owned_until=clock() + timedelta(minutes=9),
    )
    page.clock.run_for(4000)
    new = page.get_by_role("link", name="1 new")
    expect(new).to_be_visible()
    expect(page.locator("p.newer")).to_contain_text("1 contradiction")
    for n, said in enumerate(("settled by evidence", "nobody", "ada")):
        expect(rows.nth(n)).to_contain_text(f"INV-{n}")
        expect(rows.nth(n)).to_contain_text(said)
    # The cursor is where it was, and so is the focus.
    expect(page.locator("tr.cursor")).to_contain_text("INV-1")
    expect(page.locator("tr.cursor a").first).to_be_focused()
    page.clock.run_for(4000)
    expect(rows).to_have_count(3)

    new.click()
    expect(page.locator("tr[data-row] th a")).to_have_text(["INV-loud", "INV-2", "INV-1"])
    expect(page.locator("p.newer")).to_have_count(0)
    page.wait_for_load_state()
    page.clock.run_for(4000)
    expect(page.locator("tr[data-row] th a")).to_have_text(["INV-loud", "INV-2", "INV-1"])
