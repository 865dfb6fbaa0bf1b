"""The second factor in a browser: enrolled, asked at the log-in, and where it is required led to."""

from base64 import b32decode

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from playwright.sync_api import expect

from tests.browser.test_accessibility import grave
from tests.console.codes import code, no_wait, wrong

pytestmark = [pytest.mark.browser, pytest.mark.looks_alike]


def staff(name):
    """Return a new viewer."""
    person = get_user_model().objects.create_user(name, password="a password", is_staff=True)
    person.groups.set([Group.objects.get(name="viewer")])
    return person


def log_in(page, name):
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill("a password")
    page.get_by_role("button", name="Log in").click()


def user_menu(page):
    page.locator("summary", has_text="User menu").click()
    return page.locator("#user-tools")


def enrol(page):
    """Enrol as a person does who types the secret into an app; returns it."""
    page.get_by_role("button", name="Enrol an app").click()
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    shown = page.locator("dd code").first.inner_text().replace(" ", "")
    secret = b32decode(shown + "=" * (-len(shown) % 8))
    page.get_by_label("Code from your app").fill(wrong(secret))
    page.get_by_role("button", name="Enrol it").click()
    expect(page.get_by_role("alert")).to_contain_text("not the code")
    page.get_by_label("Code from your app").fill(code(secret))
    page.get_by_role("button", name="Enrol it").click()
    expect(page.get_by_text("Your second factor is enrolled.")).to_be_visible()
    return secret


def test_person_enrols_an_app_and_is_asked_its_code_at_the_next_log_in(window, told):
    elsewhere, page = window(who=staff("grace")), window(known=False)
    elsewhere.goto("/account/")
    expect(elsewhere.get_by_role("heading", level=1)).to_have_text("Second factor")
    page.goto("/login/")
    log_in(page, "grace")
    user_menu(page).get_by_role("link", name="Second factor").click()
    secret = enrol(page)
    elsewhere.reload()
    expect(elsewhere).to_have_title("Log in | Interlock")
    user_menu(page).get_by_role("button", name="Log out").click()
    page.get_by_role("link", name="Log in again").click()
    log_in(page, "grace")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your code")
    assert grave(page) == []
    page.get_by_label("Code from your app").fill(wrong(secret))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not the code")
    assert grave(page) == []
    no_wait()
    page.get_by_label("Code from your app").fill(code(secret, 1))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    told.clear()  # the browser tells of the 409


def test_where_it_is_required_a_person_without_one_is_led_to_enrolling_and_then_on(window, settings, told):
    settings.REQUIRE_SECOND_FACTOR = True
    staff("edsger")
    page = window(known=False, width=390, height=844)
    page.goto("/jobs/")
    log_in(page, "edsger")
    expect(page.get_by_text("This installation asks a second factor of all staff.")).to_be_visible()
    page.goto("/drills/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    enrol(page)
    page.goto("/drills/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Drills")
    told.clear()  # the browser tells of the 409
