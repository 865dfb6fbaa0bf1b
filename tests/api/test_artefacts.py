"""Files of an attempt: who may store them, how large, and when they are gone."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.test import Client

from jobs.ledger.clock import clock
from jobs.management.commands import artefacts
from jobs.models import Job
from tests.api.caller import ROOT, anybody
from tests.api.worker import Remote, enqueued
from tests.build import KIND

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path)


@pytest.fixture
def remote():
    enqueued(2)
    return Remote()


def upload(remote, lease, raw=b"three pages", name="letter.txt", kind="application/octet-stream", **more):
    path = f"{ROOT}/leases/{lease['attempt_id']}/artefacts?name={name}"
    return remote.post(path, raw, content_type=kind, **more)


def test_a_person_who_is_logged_in_stores_a_file_with_the_token_of_his_page():
    enqueued()
    browser = Client(enforce_csrf_checks=True)
    sent: Any = {"headers": {"x-csrftoken": "c" * 32}}
    browser.force_login(anybody("someone"))
    browser.cookies["csrftoken"] = "c" * 32
    body = {"worker": {"id": "far:1:a"}, "queues": ["default"], "kinds": [KIND]}
    (got,) = browser.post(f"{ROOT}/claims", body, "application/json", **sent).json()["leases"]
    assert upload(browser, got["lease"]).status_code == 403
    assert upload(browser, got["lease"], **sent).status_code == 201


def test_a_file_lies_under_its_attempt_and_the_same_name_replaces_it(remote):
    lease = remote.take()["lease"]
    upload(remote, lease, b"first")
    answer = upload(remote, lease)
    key = f"attempts/{uuid.UUID(lease['attempt_id']).hex}/letter.txt"
    assert (answer.status_code, answer.json()["key"], answer.json()["bytes"]) == (201, key, 11)
    with default_storage.open(key) as stored:
        assert stored.read() == b"three pages"


def test_an_attempt_that_lost_its_lease_stores_nothing(remote):
    lease = remote.take()["lease"]
    epoch = Job.objects.runtime.current_epoch()
    Job.objects.raise_epoch(expected=epoch, actor="ada", reason="test")
    answer = upload(remote, lease)
    assert (answer.status_code, answer.json()["reason"]) == (409, "EPOCH")
    assert not default_storage.exists("attempts")


def test_a_folder_that_cannot_be_read_is_named_by_the_command(tmp_path):
    (tmp_path / "attempts").write_text("a file")
    with pytest.raises(CommandError, match=rf"^{tmp_path}/attempts: Not a directory\.$"):
        call_command("artefacts")


def test_another_callers_attempt_is_not_there(remote):
    lease = remote.take()["lease"]
    assert upload(Remote("far:2:b"), lease).status_code == 404
    assert upload(remote, {"attempt_id": uuid.uuid4()}).status_code == 404
    assert upload(remote, {"attempt_id": "nope"}).status_code == 404


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a%00", "x" * 101, "%ED%A0%80"])
def test_a_name_that_leads_elsewhere_is_refused(remote, name):
    answer = upload(remote, remote.take()["lease"], name=name)
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, "name")


def test_too_long_a_file_another_type_and_an_unknown_length_are_refused(remote, settings):
    settings.INTERLOCK = {**configured.INTERLOCK, "ARTEFACT_BYTES": 10}
    lease = remote.take()["lease"]
    assert upload(remote, lease).status_code == 413
    assert upload(remote, lease, b"short", kind="text/plain").status_code == 415
    assert upload(remote, lease, b"short", HTTP_CONTENT_ENCODING="gzip").status_code == 415
    assert upload(remote, lease, b"short", CONTENT_LENGTH="").status_code == 411
    assert not default_storage.exists("attempts")


def test_files_of_attempts_that_came_to_nothing_are_removed_a_day_later(remote, monkeypatch):
    winner, loser = (remote.take()["lease"] for _ in range(2))
    upload(remote, winner)
    upload(remote, loser)
    remote.do(winner, "commit", result={"file": "letter.txt"})
    remote.do(loser, "release")
    default_storage.save("attempts/of-nobody/keep.txt", default_storage.open(_key(winner)))
    call_command("artefacts")
    assert default_storage.exists(_key(loser))  # too fresh: somebody may look why it failed
    later = clock() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(artefacts, "clock", lambda: later)
    call_command("artefacts")
    assert (default_storage.exists(_key(winner)), default_storage.exists(_key(loser))) == (True, False)
    assert default_storage.exists("attempts/of-nobody/keep.txt")  # not ours: its name is no attempt's


def _key(lease):
    return f"attempts/{uuid.UUID(lease['attempt_id']).hex}/letter.txt"
