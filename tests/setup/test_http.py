"""What every answer carries, and when a session ends."""

import time

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory

from config import idle


def test_policy_forbids_inline_script_and_style(client):
    policy = client.get("/healthz").headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["script-src"] == rules["style-src"] == rules["default-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["object-src"] == "'none'"
    assert "unsafe" not in policy


def test_answer_cannot_be_framed_or_guessed_at(client):
    headers = client.get("/healthz").headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


@pytest.mark.django_db
def test_session_left_alone_is_logged_out(client, django_user_model, monkeypatch):
    client.force_login(django_user_model.objects.create_user("someone"))
    assert client.get("/healthz").wsgi_request.user.is_authenticated
    later = client.session[idle.SEEN] + settings.SESSION_IDLE_SECONDS
    monkeypatch.setattr("config.idle.time.time", lambda: later - 1)
    assert client.get("/healthz", headers={"HX-Request": "true"}).wsgi_request.user.is_authenticated
    monkeypatch.setattr("config.idle.time.time", lambda: later)
    assert not client.get("/healthz", headers={"HX-Request": "true"}).wsgi_request.user.is_authenticated


@pytest.mark.parametrize(
    ("method", "headers", "refresh"),
    [
        ("GET", {}, False),
        ("GET", {"HX-Request": "true"}, True),
        ("GET", {"HX-Request": "true", "HX-Boosted": "true"}, False),
        ("POST", {"HX-Request": "true"}, False),
    ],
)
def test_page_that_refreshes_itself_is_no_person(method, headers, refresh):
    assert idle.is_refresh(RequestFactory().generic(method, "/", headers=headers)) is refresh


@pytest.mark.parametrize("seconds", [60, 61, 119, 3600])
def test_person_who_does_something_all_the_time_stays_logged_in(
    client, django_user_model, monkeypatch, settings, seconds
):
    settings.SESSION_IDLE_SECONDS = seconds
    client.force_login(django_user_model.objects.create_user("someone"))
    begun = time.time()
    for passed in range(0, 5 * seconds, seconds * 4 // 5):
        monkeypatch.setattr("config.idle.time.time", lambda at=begun + passed: at)
        assert client.get("/healthz").wsgi_request.user.is_authenticated


def test_session_is_written_once_a_minute_at_most():
    session = SessionStore()
    idle.mark_seen(session, now=1000)
    session.modified = False
    idle.mark_seen(session, now=1059)
    assert not session.modified
    idle.mark_seen(session, now=1060)
    assert session[idle.SEEN] == 1060
