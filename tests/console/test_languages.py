"""The language of a person: asked of the browser, chosen in the bar, kept in a cookie."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from jobs.sentences import sentence

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


def test_language_is_the_browsers_until_a_person_chooses(browse):
    client, inbox = browse("viewer"), reverse("admin:inbox")

    def page(asked):
        return client.get(inbox, headers={"accept-language": asked}).content.decode()

    assert "<h1>Inbox" in page("de, fr")
    assert "<h1>收件箱" in page("zh-CN, en;q=0.5")
    answer = client.post(reverse("language"), {"language": "zh-hans", "next": inbox})
    assert answer["Location"] == inbox
    assert "<h1>收件箱" in page("en")
    assert client.cookies[settings.LANGUAGE_COOKIE_NAME]["httponly"]
    client.post(reverse("language"), {"language": "tlh", "next": inbox})
    assert "<h1>收件箱" in page("en"), "a language that is not there changes nothing"


def test_who_is_not_logged_in_chooses_too(client):
    client.post(reverse("language"), {"language": "zh-hans"})
    assert "登录" in client.get(reverse("admin:login")).content.decode()


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_choice_of_a_language_leads_nowhere_else(client, elsewhere):
    answer = client.post(reverse("language"), {"language": "zh-hans", "next": elsewhere})
    assert answer["Location"] == "/"


def test_choice_of_a_language_takes_the_token_of_a_form():
    refused = Client(enforce_csrf_checks=True).post(reverse("language"), {"language": "zh-hans"})
    assert refused.status_code == 403
    assert settings.LANGUAGE_COOKIE_NAME not in refused.cookies


@pytest.mark.parametrize(
    ("code", "name", "one", "two"),
    [
        ("KEY_WAS_GRANTED", "grants", "(permitted 1 time)", "(permitted 2 times)"),
        ("WHY_FAILED_SPENT", "max_attempts", "its only attempt used", "all 2 attempts used"),
    ],
)
def test_one_of_a_thing_is_said_in_the_singular(code, name, one, two):
    rest = {"error_code": "E", "error_message": "m"}
    assert one in sentence(code, {name: 1} | rest)
    assert two in sentence(code, {name: 2} | rest)


def test_what_is_wrong_with_a_field_is_said_in_the_language_of_the_person(browse):
    sent = {"queue": "mail", "seen": "", "reason": "夜间维护", "length": "until", "until": "2001-01-02T03:04"}
    url = reverse("admin:queue-pause") + "?queue=mail"
    page = browse("operator").post(url, sent, headers={"accept-language": "zh-CN"}).content.decode()
    assert "需要将来的时刻" in page
    assert "until: " not in page
