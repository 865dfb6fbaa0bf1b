"""The whole story in browsers: an answer is lost, people decide, the job goes on, the money moved once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connections
from playwright.sync_api import Page, expect

from demo.billing.kinds import charge
from jobs import effect_kinds
from jobs.handlers import Options
from jobs.models import AuditEntry, Case, EffectSlot, Job
from jobs.operations import casework
from jobs.worker.loop import Worker
from tests.browser.alone import person, transactional_db  # noqa: F401
from tests.provider import Provider

pytestmark = pytest.mark.browser

ROLES = ("viewer", "operator", "adjudicator", "approver")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """A payment service that honours keys."""
    with Provider.running(tmp_path) as running:
        yield running


@pytest.fixture
def street(provider: Provider, person: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A person of each role, and a provider that needs no time to settle: what it does not know is not so."""
    settings.DEMO_PROVIDER_URL = provider.url
    kind = effect_kinds.find("payments.charge")
    assert kind is not None
    quick = dataclasses.replace(kind, settle_after=0, in_flight=0)
    quick.inquire(kind.look)  # type: ignore[arg-type]
    monkeypatch.setitem(effect_kinds._kinds, kind.name, quick)
    monkeypatch.setattr(casework, "COOL_DOWN", 0)
    for role in ROLES:
        user, _ = get_user_model().objects.get_or_create(username=role, defaults={"is_staff": True})
        user.set_password("a password")
        user.save()
        user.groups.set([Group.objects.get(name=role)])
    return provider


def work() -> None:
    """Let a worker take one turn."""
    beside(lambda worker: worker.step())


def reconcile() -> None:
    """Let a worker ask providers."""
    beside(lambda worker: worker.reconciler.turn())


def beside(does: Callable[[Worker], Any]) -> None:
    """Do it off this thread, which the browser's loop has."""

    def turn() -> None:
        try:
            does(Worker(queues=["billing"], kinds=["billing.charge"], concurrency=4))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as aside:
        aside.submit(turn).result()


def lose_an_answer(provider: Provider, invoice: str, amount: str = "420.00") -> Case:
    """Charge an invoice, lose the provider's answer, and have it answer no inquiry about it."""
    provider.fault("error", on="inquire", times=1000, invoice=invoice)
    provider.fault("drop", invoice=invoice)
    order = {"invoice": invoice, "account": "acme", "amount": amount, "currency": "EUR"}
    job_id = Job.objects.enqueue(charge.name, order, options=Options(enqueued_by="operator")).job_id
    work()
    return Case.objects.get(job_id=job_id)


def enter(window: Callable[..., Page], who: str, url: str) -> Page:
    """Log in through the form, as everybody does, and come out at `url`."""
    page = window(known=False)
    page.goto(url)
    page.get_by_label("User name").fill(who)
    page.get_by_label("Password", exact=True).fill("a password")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(re.escape(url) + "$"))
    page.wait_for_load_state()  # the scripts too: keys are heard from then on
    return page


def decide(page: Page, verdict: str, why: str) -> None:
    """Fill the ruling in and send it; a verdict that asks twice is confirmed."""
    page.get_by_label(verdict, exact=True).check()
    page.locator("#rule-reason_code").select_option(label="The provider denies it")
    page.locator("#rule-reason").fill(why)
    page.get_by_role("button", name="Rule", exact=True).click()


def test_lost_answer_becomes_a_ruling_by_two_people_and_one_charge(
    window: Any, street: Provider, told: list[str]
) -> None:
    case = lose_an_answer(street, "INV-7001")
    url = f"/cases/{case.pk}/"
    key = case.effect_id

    # Who only looks sees everything and is offered nothing.
    viewer = enter(window, "viewer", url)
    expect(viewer.get_by_role("heading", level=1)).to_have_text("INV-7001 to acme, 420.00 EUR")
    expect(viewer.get_by_role("heading", name="What can be ruled")).to_be_visible()
    expect(viewer.locator("#ruling form")).to_have_count(0)

    # One takes it from the inbox and asks the provider again, which cannot say.
    one = enter(window, "adjudicator", "/cases/")
    one.get_by_role("link", name="INV-7001 to acme").click()
    one.get_by_role("button", name="Take").click()
    expect(one.get_by_text("The case is yours.")).to_be_visible()
    one.get_by_role("button", name="Inquire now").click()
    expect(one.get_by_text("adjudicator asked for an inquiry")).to_be_visible()
    reconcile()
    # The page has asked for itself meanwhile; nobody has loaded it again.
    expect(one.get_by_text("adjudicator asked for an inquiry")).to_have_count(0)
    asked = one.locator("#evidence tr", has_text="inquiry").filter(has_text="adjudicator")
    expect(asked).to_contain_text("no answer")

    # Another speaks up meanwhile: what the first has open is stale, and nothing is written.
    two = enter(window, "approver", url)
    two.locator("#comment-text").fill("Their statement of today does not show it.")
    two.get_by_role("button", name="Comment").click()
    expect(two.get_by_text("Your comment is there.")).to_be_visible()
    decide(one, "It did not happen", "Not in the statement of today.")
    refusal = one.locator("#refusal")
    expect(refusal).to_contain_text("the case moved while you were deciding")
    expect(refusal).to_contain_text("approver")
    told.clear()  # the browser tells of the 409
    assert not AuditEntry.objects.filter(action="rule").exists()

    # The words are kept; having read what is new, they ask, which takes a second person.
    expect(one.locator("#rule-reason")).to_have_value("Not in the statement of today.")
    decide(one, "It did not happen", "Not in the statement of today; approver saw it too.")
    expect(one.get_by_role("heading", name="What will happen")).to_be_visible()
    one.get_by_role("button", name="Ask the second person").click()
    expect(one.get_by_text("waits for a second person; nothing has taken effect yet")).to_be_visible()
    expect(one.get_by_text("another person must approve")).to_be_visible()
    expect(one.get_by_role("button", name="Approve")).to_have_count(0)
    assert EffectSlot.objects.get(pk=key).status == "unknown"

    two.goto(url)
    two.locator("#approve-reason").fill("I have read the same statement.")
    two.get_by_role("button", name="Approve").click()
    expect(two.get_by_text("Approved: “It did not happen”.")).to_be_visible()

    # The job goes on under the same key; the provider knows the key, so the money has moved once.
    street.lift()
    work()
    viewer.goto(f"/jobs/{case.job_id}/")
    expect(viewer.locator("main").get_by_text("succeeded").first).to_be_visible()
    ledger = street.ledger()
    assert [(c["key"], c["invoice"]) for c in ledger["charges"]] == [(key, "INV-7001")]
    slot = EffectSlot.objects.get(pk=key)
    assert (slot.status, slot.grants) == ("committed", 2)
    assert list(AuditEntry.objects.order_by("seq").values_list("action", flat=True)) == [
        "take",
        "inquire",
        "ruling_propose",
        "ruling_approve",
    ]


def test_second_person_is_led_from_the_overview_to_what_the_first_one_holds_and_asks(
    window: Any, street: Provider
) -> None:
    case = lose_an_answer(street, "INV-7301", "310.00")
    lose_an_answer(street, "INV-7302", "99000.00")
    one = enter(window, "adjudicator", f"/cases/{case.pk}/")
    one.get_by_role("button", name="Take").click()
    expect(one.get_by_text("The case is yours.")).to_be_visible()
    decide(one, "It did not happen", "Not in the statement of today.")
    one.get_by_role("button", name="Ask the second person").click()
    expect(one.get_by_text("waits for a second person; nothing has taken effect yet")).to_be_visible()
    # Who asked is led on to what else there is, and is shown no tab of approvals.
    one.get_by_role("link", name="Next case").click()
    expect(one.get_by_role("heading", level=1)).to_contain_text("INV-7302")
    one.goto("/cases/")
    expect(one.get_by_role("link", name="Approvals")).to_have_count(0)
    expect(one.locator("tr", has_text="INV-7301")).to_contain_text("you ask for “It did not happen”")

    two = enter(window, "approver", "/")
    asked = two.locator("#needs tr", has_text="approval waits")
    expect(asked).to_contain_text("1 ruling")
    asked.get_by_role("link", name="Open 1").click()
    expect(two.locator(".tabs [aria-current]")).to_have_text("For my approval1")
    expect(two.locator("#nav-sidebar [aria-current]")).to_have_text("Approvals1")
    row = two.locator("tr[data-row]")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("adjudicator asks for “It did not happen”")
    two.get_by_role("link", name="Next case").click()
    expect(two.get_by_role("heading", level=1)).to_contain_text("INV-7301")
    two.locator("#approve-reason").fill("I have read the same statement.")
    two.get_by_role("button", name="Approve").click()
    expect(two.get_by_text("Approved: “It did not happen”.")).to_be_visible()
    two.get_by_role("link", name="Approvals").click()
    expect(two.get_by_role("heading", name="Nothing waits for your approval")).to_be_visible()


def test_of_two_who_rule_at_once_one_is_told_what_the_other_did(
    window: Any, street: Provider, told: list[str]
) -> None:
    case = lose_an_answer(street, "INV-7002", "42.00")
    url = f"/cases/{case.pk}/"
    pages = [enter(window, "adjudicator", url), enter(window, "adjudicator", url)]
    for page in pages:
        page.get_by_label("It happened", exact=True).check()
        page.locator("#rule-reference").fill("ch_" + "0" * 24)
        page.locator("#rule-reason_code").select_option(label="It stands in a statement")
        page.locator("#rule-reason").fill("It is in the statement.")
    # Both are under way before either is answered.
    for page in pages:
        page.evaluate("document.querySelector('form[action$=\"/rule/\"] button.default').click()")
    expect(pages[0].locator(".messagelist, #refusal")).to_be_visible()
    expect(pages[1].locator(".messagelist, #refusal")).to_be_visible()
    answers = sorted(page.locator(".messagelist, #refusal").inner_text() for page in pages)
    assert "Nothing was written" in answers[0]
    assert "adjudicator ruled" in answers[0]
    assert "The case is closed" in answers[1]
    assert case.rulings.count() == 1
    told.clear()  # the browser tells of the 409


def test_keys_lead_from_the_inbox_to_a_ruling_and_decide_nothing_by_themselves(
    window: Any, street: Provider
) -> None:
    for n, amount in enumerate(("90.00", "80.00")):
        lose_an_answer(street, f"INV-710{n}", amount)
    case = Case.objects.get(label="INV-7101 to acme")
    page = enter(window, "adjudicator", "/jobs/")
    keys = page.keyboard
    keys.press("g")
    keys.press("i")
    expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    page.wait_for_load_state()
    # The help says what there is, and closing it gives the focus back.
    keys.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    keys.press("j")
    expect(page.locator("tr.cursor")).to_have_count(0)
    keys.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()
    keys.press("j")
    row = page.locator("tr.cursor")
    expect(row).to_contain_text("INV-7100")
    keys.press("j")
    expect(row.get_by_role("link").first).to_be_focused()
    expect(row).to_contain_text("INV-7101")
    keys.press("t")
    expect(page.get_by_text("The case is yours.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/cases/$"))
    page.wait_for_load_state()
    # Who types is typing.
    keys.press("/")
    keys.type("tjk?")
    expect(page.locator("select#id_kind")).to_be_focused()
    page.keyboard.press("Escape")
    for _ in range(2):
        keys.press("j")
    keys.press("m")
    page.locator("#comment-text").press_sequentially("I look into it.")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_text("Your comment is there.")).to_be_visible()
    page.wait_for_load_state()
    for _ in range(2):
        keys.press("j")
    keys.press("o")
    expect(page).to_have_url(re.compile(f"/cases/{case.pk}/$"))
    page.wait_for_load_state()
    # r opens the ruling at its evidence; from there Tab leads to it. No key has ruled.
    keys.press("r")
    expect(page.get_by_role("heading", name="What we know we did")).to_be_focused()
    for key in "rtjkox":
        keys.press(key)
    assert case.rulings.count() == 0
    choice = page.get_by_label("It happened", exact=True)
    for _ in range(60):
        keys.press("Tab")
        if choice.evaluate("radio => radio === document.activeElement"):
            break
    keys.press("Space")
    keys.press("Tab")
    keys.type("ch_" + "1" * 24)
    page.locator("#rule-reason_code").focus()
    keys.type("It stands")
    page.locator("#rule-reason").focus()
    keys.type("Read in the statement.")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_text("Ruled: “It happened”. The case is closed.")).to_be_visible()
    assert case.rulings.count() == 1
    page.get_by_role("link", name="Next case").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("INV-7100")
