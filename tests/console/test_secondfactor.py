"""The second factor: enrolled by a code, asked after the password and again for what is dear; recoverable."""

import html
import re
import time

import pytest
from django.contrib import auth
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_totp.models import TOTPDevice

from jobs.models import AuditEntry
from jobs.operations import factors, sessions
from tests import build
from tests.commands.conftest import manage
from tests.console import urltable
from tests.console.codes import code, no_wait, wrong
from tests.console.people import log_in

pytestmark = pytest.mark.django_db
LOG_IN, PAGE = "/login/", "/account/"


@pytest.fixture
def ada(django_user_model):
    return django_user_model.objects.create_user("ada", password="right", is_staff=True)


@pytest.fixture
def device(ada):
    """A device of ada's whose last code was used long ago."""
    return TOTPDevice.objects.create(user=ada, name="app", confirmed=True)


def password(client, **more):
    return client.post(LOG_IN, {"username": "ada", "password": "right", **more})


def logged_in(client):
    return "_auth_user_id" in client.session


def test_person_with_a_device_is_logged_in_by_password_and_code_and_not_by_one_of_them(client, device):
    answer = password(client, next="/jobs/")
    assert answer.status_code == 200
    assert 'name="code_of_device"' in answer.content.decode()
    assert not logged_in(client)
    assert client.get("/").status_code == 302
    shown = code(device.bin_key)
    answer = client.post(LOG_IN, {"code_of_device": f"{shown[:3]} {shown[3:]}", "next": "/jobs/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/jobs/")
    assert logged_in(client)
    other = Client()
    assert other.post(LOG_IN, {"code_of_device": code(device.bin_key, 1)}).status_code == 200
    assert not logged_in(other)
    password(other)
    assert "each is good once" in other.post(LOG_IN, {"code_of_device": shown}).content.decode()
    assert not logged_in(other)


@pytest.mark.parametrize("change", ["late", "password", "closed", "removed"])
def test_password_that_was_right_is_forgotten_when_time_passes_or_the_account_changes(
    client, ada, device, change
):
    password(client)
    if change == "late":
        session = client.session
        session["password_was_right"] |= {"at": int(time.time()) - 301}
        session.save()
    elif change == "password":
        ada.set_password("another")
        ada.save()
    elif change == "closed":
        type(ada).objects.filter(pk=ada.pk).update(is_active=False)
    else:
        device.delete()
    answer = client.post(LOG_IN, {"code_of_device": code(device.bin_key)})
    assert "begin with the password again" in answer.content.decode()
    assert not logged_in(client)


def test_wrong_codes_make_the_device_wait_and_lock_the_name_out_like_wrong_passwords(
    client, device, settings
):
    password(client)
    bad = wrong(device.bin_key)
    assert "not the code" in client.post(LOG_IN, {"code_of_device": bad}).content.decode()
    waits = client.post(LOG_IN, {"code_of_device": code(device.bin_key)})
    assert "the next one is looked at in 1 s" in waits.content.decode()
    answers = []
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        no_wait()
        answers.append(client.post(LOG_IN, {"code_of_device": bad}).status_code)
    assert answers[-1] == 429
    no_wait()
    assert client.post(LOG_IN, {"code_of_device": code(device.bin_key)}).status_code == 429
    assert password(Client()).status_code == 429
    assert not logged_in(client)


def test_enrolling_takes_a_right_code_and_is_audited_without_the_secret(client, ada):
    password(client)
    assert client.post(PAGE, {"do": "confirm", "code": "123456"}).status_code == 302
    client.post(PAGE, {"do": "begin"})
    page = html.unescape(client.get(PAGE).content.decode())
    found = re.search(r"otpauth://totp/Interlock%3Aada\?secret=(\w+)&", page)
    assert found
    assert found[1] in page.replace(" ", "")
    assert '<path class="qr-dark" d="M4 4h1v1h-1z' in page
    begun = factors.new_device(ada, client.session["second_factor_begun"])
    refused = client.post(PAGE, {"do": "confirm", "code": wrong(begun.bin_key)})
    assert refused.status_code == 409
    assert not TOTPDevice.objects.exists()
    assert client.post(PAGE, {"do": "confirm", "code": code(begun.bin_key)}).status_code == 302
    device = TOTPDevice.objects.get()
    assert (device.user, device.key, device.confirmed) == (ada, begun.key, True)
    page = client.get(PAGE).content.decode()
    assert begun.key not in page
    assert found[1] not in page.replace(" ", "")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.object_id) == ("enrol_second_factor", "ada", "ada")
    assert begun.key not in f"{entry.before}{entry.after}"
    client.post(PAGE, {"do": "begin"})
    client.post(PAGE, {"do": "confirm", "code": code(begun.bin_key, 1)})
    assert TOTPDevice.objects.count() == 1


def test_removing_asks_a_recent_log_in_with_password_and_code(client, ada, device):
    client.force_login(ada)
    assert "Your password" in client.post(PAGE, {"do": "remove"}).content.decode()
    sent = {"do": "remove", "who": "1", "password": "right"}
    for given in (wrong(device.bin_key), ""):
        answer = client.post(PAGE, {**sent, "code_of_device": given})
        assert "not the code" in answer.content.decode()
        no_wait()
    assert TOTPDevice.objects.exists()
    answer = client.post(PAGE, {**sent, "password": "no", "code_of_device": code(device.bin_key)})
    assert "not your password" in answer.content.decode()
    assert client.post(PAGE, {**sent, "code_of_device": code(device.bin_key)}).status_code == 302
    assert not TOTPDevice.objects.exists()
    assert AuditEntry.objects.get().action == "remove_second_factor"


def test_code_is_asked_once_more_in_the_middle_of_a_form_and_its_words_are_kept(browse, django_user_model):
    client = browse("admin")
    user = django_user_model.objects.get(username="admin-1")
    user.set_password("right")
    user.save()
    device = TOTPDevice.objects.create(user=user, name="app", confirmed=True)
    client.force_login(user)
    url = reverse("admin:job-force-cancel", args=[build.id_of(build.running())])
    seen = re.search(r'name="version" value="(\d+)"', client.get(url).content.decode())
    assert seen
    sent = {"version": seen[1], "reason": "my own words", "confirmed": "1"}
    asked = client.post(url, sent).content.decode()
    assert 'name="code_of_device"' in asked
    back = client.post(url, {**sent, "who": "1", "password": "right", "code_of_device": code(device.bin_key)})
    assert "my own words" in back.content.decode()
    assert "proved_at" in client.session


def test_where_a_second_factor_is_required_staff_without_one_get_no_further_than_enrolling(
    client, ada, settings
):
    settings.REQUIRE_SECOND_FACTOR = True
    password(client)
    reached = {}
    for name in urltable.names():
        if name in ("language", "admin:login", "admin:logout", "admin:second-factor"):
            continue
        try:
            url = reverse(name) if name != "admin:" else "/no/such/"
        except Exception:  # noqa: BLE001  # one with arguments
            continue
        answer = client.get(url)
        if (answer.status_code, answer.headers.get("Location")) != (302, PAGE):
            reached[name] = answer.status_code
    assert reached == {}
    assert client.get("/", headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"
    assert client.get("/api/v1/jobs").status_code == 403
    assert "asks a second factor of all staff" in client.get(PAGE).content.decode()
    client.post(PAGE, {"do": "begin"})
    begun = factors.new_device(ada, client.session["second_factor_begun"])
    client.post(PAGE, {"do": "confirm", "code": code(begun.bin_key)})
    assert client.get(reverse("admin:password_change")).status_code == 200
    assert client.post(reverse("admin:logout")).status_code == 200
    password(client)
    client.post(LOG_IN, {"code_of_device": code(TOTPDevice.objects.get().bin_key, 1)})
    assert client.get(reverse("admin:password_change")).status_code == 200


@pytest.mark.parametrize("change", ["enrolled", "removed", "reset", "password"])
def test_changed_log_in_ends_the_other_sessions_of_that_person_and_no_others(
    client, ada, django_user_model, change
):
    if change != "enrolled":
        TOTPDevice.objects.create(user=ada, name="app", confirmed=True)
    here, there, bob = client, Client(), Client()
    log_in(here, ada)
    log_in(there, ada)
    log_in(bob, django_user_model.objects.create_user("bob", is_staff=True))
    if change == "enrolled":
        here.post(PAGE, {"do": "begin"})
        begun = factors.new_device(ada, here.session["second_factor_begun"])
        here.post(PAGE, {"do": "confirm", "code": wrong(begun.bin_key)})
        assert there.get(PAGE).status_code == 200
        answer = here.post(PAGE, {"do": "confirm", "code": code(begun.bin_key)})
    elif change == "removed":
        answer = here.post(PAGE, {"do": "remove"})
    elif change == "reset":
        django_user_model.objects.create_superuser("root")
        manage("second_factor", "reset", "ada", "--as", "root", "--reason", "lost the telephone")
        assert here.get(PAGE).status_code == 302
        log_in(here, ada)
        answer = here.get(PAGE)
    else:
        words = {
            "old_password": "right",
            "new_password1": "quite-another-1",
            "new_password2": "quite-another-1",
        }
        answer = here.post(reverse("admin:password_change"), words)
    assert answer.status_code in (200, 302)
    assert [c.get(PAGE).status_code for c in (here, there, bob)] == [200, 302, 200]


def test_lost_device_is_taken_away_by_who_may_change_accounts_and_nobody_else(ada, device, django_user_model):
    django_user_model.objects.create_user("eve", is_staff=True)
    django_user_model.objects.create_superuser("root")

    def reset(who, name="ada", why="lost the telephone"):
        return manage("second_factor", "reset", name, "--as", who, "--reason", why, "--json")

    assert (reset("eve").code, reset("ada").code) == (1, 1)
    assert reset("root", "nobody").document["error"]["code"] == "USER_UNKNOWN"
    assert reset("root", why=" ").code == 2
    assert TOTPDevice.objects.exists()
    assert reset("root").document == {"user": "ada", "second_factor": False}
    assert not TOTPDevice.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.user, entry.reason) == ("reset_second_factor", "root", "lost the telephone")
    assert reset("root").document["error"]["code"] == "SECOND_FACTOR_NONE"


def test_no_window_shows_a_device():
    assert [name for name in urltable.names() if "otp" in name] == []


def test_session_that_ends_while_its_person_says_who_he_is_stays_ended(ada, monkeypatch):
    client = Client()
    password(client)
    judged = auth.authenticate

    def authenticate(*given, **more):
        found = judged(*given, **more)
        with transaction.atomic():
            factors.lock(ada)
            sessions.end(ada, keep=None, using="default")
        return found

    monkeypatch.setattr("console.stepup.authenticate", authenticate)
    answer = client.post(PAGE, {"who": "1", "password": "right", "do": "begin"})
    assert "This session has ended" in answer.content.decode()
    assert not Session.objects.exists()
    assert client.get(PAGE).status_code == 302
