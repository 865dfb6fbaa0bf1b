"""Operations in a browser: a job taken away, a zombie refused on the live page, a cluster drained to SAFE."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse
from playwright.sync_api import expect

from jobs.ledger import worker as worker_rows
from jobs.ledger.clock import clock
from jobs.models import AuditEntry, Job, Scheduler
from tests import build
from tests.browser.alone import person, transactional_db  # noqa: F401
from tests.browser.test_accessibility import COLOURS, grave

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


@pytest.fixture
def admin(person):
    """A person of the group `admin`, whose log-in is not recent."""
    return member("admin")


def member(group):
    user, new = get_user_model().objects.get_or_create(username=f"{group}-1", is_staff=True)
    if new:
        user.set_password("the right password")
        user.save()
        user.groups.set([Group.objects.get(name=group)])
    return user


def beat(worker, epoch, *, stopped=False):
    """Let the worker be heard of now, under the epoch that it knows."""
    build.ledger(
        lambda session: worker_rows.beat(
            session, id=worker, running=1, epoch=epoch, passes={}, stopping=stopped, stopped=stopped
        ),
        now=clock(),
    )


def say_who(page, password="the right password"):
    expect(page.get_by_role("heading", name="Say once more who you are")).to_be_visible()
    page.get_by_label("Your password").fill(password)
    page.keyboard.press("Enter")


def test_running_job_is_force_cancelled_after_the_person_said_who_he_is(window, admin):
    job_id = build.id_of(build.running(now=clock(), label="DOC-1"))
    page = window(who=admin, recent=False)
    page.goto(reverse("admin:job", args=[job_id]))
    page.get_by_role("link", name="Force cancel").click()
    expect(page.get_by_text("Its code may still be running")).to_be_visible()
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    assert grave(page, None, "main") == []
    words = page.get_by_label("Why, in your own words")
    words.fill("it hangs in a loop")
    page.get_by_role("button", name="Force cancel").click()
    say_who(page, "not the right one")
    expect(page.get_by_text("This is not your password")).to_be_visible()
    assert grave(page, None, "main") == []
    say_who(page)
    expect(words).to_have_value("it hangs in a loop")
    expect(page.get_by_text("recent enough")).to_be_visible()
    assert Job.objects.get(pk=job_id).status == "running"
    page.get_by_role("button", name="Force cancel").click()
    expect(page.get_by_text("Taken away and cancelled. Its code may still be running.")).to_be_visible()
    expect(page.get_by_text("force-cancelled it")).to_be_visible()
    entry = AuditEntry.objects.latest("seq")
    assert (entry.action, entry.object_id, entry.reason) == (
        "force_cancel",
        str(job_id),
        "it hangs in a loop",
    )


def test_epoch_is_raised_a_zombie_is_seen_refused_and_the_cluster_drained_to_safe(window, admin, told):
    lease = build.running(now=clock())
    worker = Job.objects.get(pk=build.id_of(lease)).worker_id
    build.register(worker)
    old = Scheduler.objects.get().epoch
    beat(worker, old)
    page = window(who=admin, recent=False)
    page.clock.install()
    page.goto(reverse("admin:scheduler"))
    page.get_by_role("link", name="Raise the epoch").click()
    expect(page.get_by_role("heading", name="Would less do?")).to_be_visible()
    assert grave(page, None, "main") == []
    phrase = page.locator("label code").inner_text()
    page.get_by_label("Why, in your own words").fill("two owners suspected")
    page.locator("#id_typed").fill(phrase + "!")
    page.get_by_role("button", name="Raise the epoch").click()
    expect(page.get_by_text("Nothing is done before it reads exactly")).to_be_visible()
    told.clear()  # the browser tells of each 400
    page.locator("#id_typed").fill(phrase)
    page.keyboard.press("Enter")
    assert Scheduler.objects.get().epoch == old
    page.get_by_role("button", name="Raise the epoch").click()
    say_who(page)
    page.get_by_role("button", name="Raise the epoch").click()
    rules = f"Epoch {Scheduler.objects.get().epoch} rules"
    expect(page.get_by_text(rules)).to_be_visible()
    refused = page.locator("dt", has_text="Writes refused for their epoch").locator("xpath=../dd")
    expect(refused).to_have_text("0")
    beating = page.locator("dt", has_text="Old workers still beating").locator("xpath=../dd")
    expect(beating).to_have_text("1")
    assert Job.objects.commit(lease, {"by": "the zombie"}).reason == "EPOCH"
    page.clock.run_for(3000)
    expect(refused).to_have_text("1")
    assert Job.objects.get(pk=build.id_of(lease)).status == "running"

    page.get_by_role("link", name="Drain checklist").click()
    verdict = page.locator("#verdict strong")
    expect(verdict).to_have_text("BLOCKED")
    page.get_by_role("link", name="Close claims").click()
    page.get_by_label("Why, in your own words").fill("release")
    page.get_by_role("button", name="Close claims").click()
    expect(verdict).to_have_text("WAIT")
    assert grave(page, None, "main") == []
    Job.objects.runtime.recover()
    beat(worker, old, stopped=True)
    page.clock.run_for(3000)
    expect(verdict).to_have_text("SAFE")


def test_epoch_is_raised_by_two_people_in_two_browsers(window, admin, settings):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}
    old = Scheduler.objects.get().epoch
    second_person = member("approver")
    first, second = window(who=admin), window(who=second_person)
    first.goto(reverse("admin:epoch-raise"))
    first.get_by_label("Why, in your own words").fill("two owners suspected")
    first.locator("#id_typed").fill(first.locator("label code").inner_text())
    first.get_by_role("button", name="Ask another person to confirm").click()
    expect(first.get_by_text("another person must confirm")).to_be_visible()
    assert Scheduler.objects.get().epoch == old

    second.goto(reverse("admin:index"))
    second.get_by_role("link", name="Decide").click()
    expect(second.get_by_text("two owners suspected")).to_be_visible()
    assert grave(second, None, "main") == []
    second.get_by_label("Why, in your own words").fill("I see both")
    second.locator("#id_typed").fill(second.locator("label code").inner_text())
    second.get_by_role("button", name="Confirm and raise the epoch").click()
    expect(second.get_by_text(f"Epoch {old + 1} rules")).to_be_visible()


def test_page_of_an_operation_fits_a_phone_in_the_dark(window, admin):
    page = window(who=admin, scheme="dark", width=390, height=844)
    job_id = build.enqueue(label="DOC-2")
    faults = {}
    for name, url in {
        "raise": reverse("admin:epoch-raise"),
        "revise": reverse("admin:job-revise", args=[job_id]),
        "pause": reverse("admin:queue-pause") + "?queue=mail",
    }.items():
        page.goto(url)
        faults[name] = grave(page, COLOURS, "main")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    Job.objects.cancel(job_id, actor="a", reason="r")
    assert faults == {"raise": [], "revise": [], "pause": []}
