"""The longest names and the smallest screens: a page fits, and what is pressed is as high as a finger."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse

from jobs.handlers import Options
from jobs.ledger.clock import clock
from jobs.models import Job
from jobs.operations import tokens
from tests.console import matters

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]

UNBROKEN = "L" * 120
REACH = """() => [document.documentElement, ...document.querySelectorAll(".results")]
  .map((part) => part.scrollWidth - part.clientWidth)
  .filter((beyond) => beyond > 1)"""
"""By how much the page, or a table in it, is wider than there is room."""
LOW = """() => Array.from(document.querySelectorAll(
    "button, .button, summary.chip, a.chip, select, .tabs a, input:not([type=checkbox], [type=radio])"))
  .filter((part) => part.checkVisibility() && part.getBoundingClientRect().height > 2
    && !part.matches(".plain"))
  .filter((part) => part.getBoundingClientRect().height < 44)
  .map((part) => `${part.tagName} ${part.className} ${part.innerText}`)"""


@pytest.fixture(scope="module")
def admin(person):
    """Who may do everything, and so sees every button."""
    user, new = get_user_model().objects.get_or_create(username="admin-1", is_staff=True)
    if new:
        user.groups.set([Group.objects.get(name="admin")])
    return user


@pytest.fixture(scope="module")
def known(admin):
    """Pages about things with names as long as they may be, by a name for the page."""
    now = clock()
    kind = "documents.reconcile_what_a_team_that_likes_words_has_to_say_of_it"
    options = Options(queue="a-queue-with-a-rather-long-name-for-a-queue", label=UNBROKEN)
    job = Job.objects.enqueue(kind, {"n": 1}, options=options, now=now).job_id
    case = matters.open_case(label="INV-4402 to baltic-lines", amount="1240000.00", opened=now, sla=-4000)
    matters.alter(case, effect_kind=kind)
    tokens.issue(
        UNBROKEN[: tokens.LONGEST_NAME],
        owner=admin,
        actor=admin,
        scopes=["jobs:read"],
        days=9,
        reason="r",
    )
    return {
        "overview": reverse("admin:index"),
        "inbox": reverse("admin:inbox"),
        "jobs": reverse("admin:jobs"),
        "job": reverse("admin:job", args=[job]),
        "case": reverse("admin:case", args=[case.pk]),
        "case file": reverse("admin:casefile", args=[case.pk]),
        "effect": reverse("admin:jobs_effectslot_change", args=[case.effect_id]),
        "drain": reverse("admin:drain"),
        "queues": reverse("admin:queues"),
        "raise": reverse("admin:epoch-raise"),
        "tokens": reverse("admin:tokens"),
    }


def _wrong(page, known, look):
    """Return what a look finds at each page, by the page's name, where it finds anything."""
    found = {}
    for name, url in known.items():
        page.goto(url)
        if seen := page.evaluate(look):
            found[name] = seen
    return found


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_longest_names_fit_a_phone_and_a_laptop(window, admin, known, width, locale):
    assert _wrong(window(who=admin, width=width, locale=locale), known, REACH) == {}


def test_what_is_pressed_on_a_phone_is_as_high_as_a_finger(window, admin, known):
    assert _wrong(window(who=admin, width=390, height=844), known, LOW) == {}


def test_facts_of_a_printed_case_file_stand_side_by_side_and_not_on_one_another(window, admin, known):
    page = window(who=admin, width=720)
    page.emulate_media(media="print")
    page.goto(known["case file"])
    wide = page.locator(".facts dd, .facts small").evaluate_all(
        "all => all.filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.innerText)"
    )
    assert page.locator(".facts dd").count() >= 5
    assert wide == []


def test_what_stands_in_a_menu_does_not_stand_on_one_another(window, admin):
    page = window(who=admin)
    page.goto(reverse("admin:jobs"))
    page.locator("summary", has_text="Views").click()
    fields = page.locator(".keep input:not([type=hidden]), .keep button").evaluate_all(
        "all => all.map((part) => part.getBoundingClientRect()).map((box) => [box.top, box.bottom])"
    )
    name, shared, keep = fields[:3]
    assert name[1] + 4 <= shared[0]
    assert shared[1] + 4 <= keep[0]
