"""The console in a browser: reading it, in the dark, on a phone, in Chinese, live."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from jobs.models import Job
from tests import catalogue
from tests.browser.addresses import pages

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]

SAID_IN_CHINESE = (
    *(
        "index",
        "inbox",
        "closed cases",
        "case",
        "case file",
        "handover",
        "jobs",
        "job uncertain",
        "job running",
        "found",
    ),
    *("queues", "workers", "refusals", "scheduler", "drain", "audit", "drills", "conversions", "preferences"),
)
SEEN = """() => [document.body.innerText, ...Array.from(
    document.querySelectorAll("[title], [aria-label], [placeholder]"),
    (e) => [e.title, e.ariaLabel, e.placeholder].join("\\n"),
)].join("\\n")"""
"""What a page says to the eye, and what it says to who hears it."""


def test_viewer_logs_in_finds_a_job_and_reads_why_it_is_where_it_is(window, world):
    page = window(known=False)
    page.goto("/jobs/")
    expect(page).to_have_title(re.compile("Log in"))
    page.get_by_label("User name").fill("viewer")
    page.get_by_label("Password", exact=True).fill("a password")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    page.get_by_role("navigation", name="Status").get_by_role("link", name="uncertain").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(2)
    page.get_by_role("row").filter(has_text="INV-2026-11873").get_by_role(
        "link", name="invoices.settle"
    ).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("invoices.settle, INV-2026-11873")
    expect(page.get_by_text("The outcome of INV-2026-11873 is unknown")).to_be_visible()
    expect(page.get_by_role("img", name="Timeline of the attempts")).to_be_visible()
    expect(page.get_by_text("2 writes refused").first).to_be_visible()
    expect(page.get_by_text("4111111111111111")).to_have_count(0)
    page.locator("summary", has_text="User menu").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Logged out")).to_be_visible()


def test_search_finds_a_job_by_its_id_and_by_its_label(window, world):
    page = window()
    page.goto("/")
    page.get_by_label("Search by id, key or label").fill("INV-2026-11902")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Jobs").locator("tbody tr")).to_have_count(1)
    page.get_by_label("Search by id, key or label").fill(str(world.jobs["running"]))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("documents.render, DOC-55120")


def test_filter_is_made_from_its_menu_and_taken_away_again(window, world):
    page = window()
    page.goto("/jobs/")
    page.locator("summary", has_text="Filter").click()
    page.locator("#id_error_code").fill("RENDER_DEADLINE_EXCEEDED")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Remove filter Error code").click()
    expect(page).to_have_url(re.compile(r"/jobs/\?$"))
    expect(page.locator("#result_list tbody tr").nth(10)).to_be_visible()


def test_tag_filters_by_a_click_and_leads_back(window, world):
    page = window()
    page.goto("/jobs/?status=failed")
    page.get_by_role("link", name="farm-b").first.click()
    expect(page).to_have_url(re.compile(r"status=failed&tag=farm-b$"))
    expect(page.locator("#result_list tbody tr")).to_have_count(4)
    page.get_by_role("link", name="Remove filter Tag").click()
    page.locator("summary", has_text="Filter").click()
    expect(page.get_by_label("Argument")).to_have_attribute("list", "arguments")
    page.get_by_label("Tag", exact=True).fill("no-such-tag")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="No job matches")).to_be_visible()
    page.locator("summary", has_text="Filter").click()
    # The menu is taller than a list without rows.
    page.get_by_label("Tag", exact=True).fill("letters")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(4)


def test_console_is_dark_where_the_system_is_and_as_its_reader_says(window, world):
    def ground(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    page = window(scheme="dark")
    page.goto("/")
    assert ground(page) == "rgb(14, 19, 24)"
    page.locator("summary", has_text="User menu").click()
    page.locator(".theme-toggle").click()
    expect(page.locator(".theme-toggle")).to_contain_text("light")
    assert ground(page) == "rgb(245, 246, 248)"
    page.goto("/jobs/")
    assert ground(page) == "rgb(245, 246, 248)"


@pytest.mark.parametrize("width", [390, 768, 1920])
def test_no_page_scrolls_sideways(window, world, width):
    page = window(width=width)
    wide = {}
    for name, url in pages(world).items():
        if name not in ("bad filter", "not found"):
            page.goto(url)
            reach = page.evaluate("document.documentElement.scrollWidth")
            if reach > width:
                wide[name] = reach
    assert wide == {}


def test_chinese_page_has_no_english_message_left_and_fits_a_phone(window, world):
    # Messages of two words or more: a single one may be a name, a column's or a code.
    english = [
        message.english
        for message in catalogue.read()[1:]
        if " " in message.english.strip() and not {"%", "{"} & set(message.english)
    ]
    assert len(english) > 800
    known, wrong = pages(world), {}
    page = window(width=390, height=844, locale="zh-CN")
    for name in SAID_IN_CHINESE:
        page.goto(known[name])
        seen = page.evaluate(SEEN)
        left = [text for text in english if text in seen]
        wide = page.evaluate("document.documentElement.scrollWidth") > 390
        if left or wide or page.locator("html").get_attribute("lang") != "zh-hans":
            wrong[name] = (left, wide)
    assert wrong == {}


def test_person_changes_the_language_and_stays_on_the_page(window, world):
    page = window()
    page.goto("/jobs/?status=uncertain")
    page.locator("summary", has_text="User menu").click()
    page.get_by_role("button", name="简体中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("任务")
    expect(page).to_have_url(re.compile(r"/jobs/\?status=uncertain$"))
    # Commands and addresses say the code, so it goes with the word.
    expect(page.locator("#result_list [title=uncertain]").first).to_have_text("结果未知")
    page.locator("summary", has_text="用户菜单").click()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_menu_of_a_phone_opens_and_leads_on(window, world):
    page = window(width=390, height=844)
    page.goto("/")
    expect(page.locator("#nav-sidebar")).to_be_hidden()
    page.get_by_role("button", name="Menu", exact=True).click()
    page.locator("#nav-sidebar").get_by_role("link", name="Workers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workers")


def test_list_tells_of_what_is_new_and_holds_still_when_paused_or_selected(window, world):
    page = window()
    page.clock.install()
    page.goto("/jobs/")
    rows = page.locator("#result_list tbody tr")
    first = Job.objects.enqueue("reports.monthly", {}).job_id
    top = rows.first.inner_text()
    page.clock.run_for(4000)
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    assert rows.first.get_by_role("link").first.inner_text() in top
    rows.first.get_by_role("checkbox").check()
    expect(page.locator("#selbar")).to_contain_text("1 selected")
    Job.objects.enqueue("ledger.post", {})
    page.clock.run_for(8000)
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    page.get_by_role("button", name="Clear the selection").click()
    expect(page.locator("#selbar")).to_be_hidden()
    page.clock.run_for(4000)
    page.get_by_role("link", name="2 new").click()
    expect(rows.nth(1)).to_contain_text("reports.monthly")
    page.get_by_role("button", name="Pause updates").click()
    expect(page.get_by_role("button", name="Updates paused")).to_have_attribute("aria-pressed", "true")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    Job.objects.enqueue("ledger.post", {})
    page.clock.run_for(20_000)
    assert asked == []
    page.get_by_role("button", name="Updates paused").click()
    page.clock.run_for(4000)
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    assert str(first)[-4:] in rows.nth(1).inner_text()


def test_what_a_reader_opened_stays_open_when_the_page_refreshes(window, world):
    page = window()
    page.clock.install()
    page.goto(reverse("admin:job", args=[world.jobs["uncertain"]]))
    card = page.locator("details.att").nth(2)
    card.locator("summary").first.click()
    expect(card).to_have_attribute("open", "")
    job = Job.objects.get(pk=world.jobs["uncertain"])
    Job.objects.cancel(job.id, actor="operator-9", reason="not needed any more")
    page.clock.run_for(4000)
    expect(page.get_by_text("cancel requested").first).to_be_visible()
    expect(page.locator("details.att").nth(2)).to_have_attribute("open", "")


def test_ages_count_on_without_asking_the_server(window, world):
    page = window()
    page.clock.install()
    page.goto(reverse("admin:job", args=[world.jobs["succeeded"]]))
    page.get_by_role("button", name="Pause updates").click()
    page.clock.run_for(3_600_000)
    expect(page.locator(".facts dd").first).to_contain_text("1 h ago")


def test_page_says_when_it_could_not_refresh(window, world, told):
    page = window()
    page.clock.install()
    page.goto("/workers/")
    expect(page.locator("#live-stale")).to_be_hidden()
    page.context.set_offline(True)
    page.clock.run_for(6000)
    expect(page.locator("#live-stale")).to_be_visible()
    page.context.set_offline(False)
    page.clock.run_for(6000)
    expect(page.locator("#live-stale")).to_be_hidden()
    assert any("ERR_INTERNET_DISCONNECTED" in text for text in told)
    told.clear()
