"""Long polls: told as soon as something happens, without a connection each, and never at the others' cost."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from jobs.api import waiting
from jobs.api.problems import Problem
from jobs.models import ApiToken, Job
from tests import build
from tests.api.caller import Api, secret


class Asking(threading.Thread):
    """A request that waits, in a thread as a server's."""

    def __init__(self, token, path, **more):
        super().__init__()
        self.client, self.path, self.more = Api(token), path, more
        self.answer: Any = None
        self.start()

    def run(self):
        self.answer = self.client.look(self.path, **self.more)
        connection.close()


@pytest.fixture
def patient(transactional_db, settings, monkeypatch):
    """Waiting may take longer than any test, and four may wait at a time."""
    settings.INTERLOCK = settings.INTERLOCK | {"WAIT_SECONDS": 50}
    monkeypatch.setattr(waiting, "PLACES", threading.BoundedSemaphore(4))
    before = waiting._waiters
    waiting._waiters = waiting.Waiters()
    yield waiting._waiters
    waiting._waiters = before


def until(condition):
    """Look until it is so: a thread has to come as far."""
    gate = threading.Event()
    for _ in range(3000):
        if condition():
            return
        gate.wait(0.01)
    raise AssertionError("never so")


def test_job_is_told_of_as_soon_as_it_changes(patient):
    job_id, token = build.enqueue(), secret("jobs:read")
    asking = Asking(token, f"/jobs/{job_id}?wait=50", HTTP_IF_NONE_MATCH='"1"')
    until(lambda: patient._waiting)
    Job.objects.cancel(job_id, actor="someone", reason="r")
    asking.join()
    assert (asking.answer.status_code, asking.answer["ETag"]) == (200, '"2"')
    assert asking.answer.json()["status"] == "cancelled"
    assert not patient._waiting


def test_job_that_has_changed_since_is_told_at_once_and_no_news_is_304(patient):
    job_id, api = build.enqueue(), Api(secret("jobs:read"))
    assert api.look(f"/jobs/{job_id}?wait=50", HTTP_IF_NONE_MATCH='"7"').status_code == 200
    assert api.look(f"/jobs/{job_id}?wait=1", HTTP_IF_NONE_MATCH='"1"').status_code == 304


def test_feed_is_told_of_as_soon_as_there_is_news_for_this_caller(patient):
    mine, other, token = build.enqueue(queue="mail"), build.enqueue(), secret("jobs:read", queues=("mail",))
    asking = Asking(token, "/events?wait=50")
    until(lambda: patient._waiting)
    Job.objects.cancel(other, actor="someone", reason="r")
    Job.objects.cancel(mine, actor="someone", reason="r")
    asking.join()
    (change,) = asking.answer.json()["results"]
    assert change["jobs"] == [{"id": str(mine), "status": "cancelled"}]


def test_whoever_waits_holds_no_connection(patient):
    held = []

    def wait():
        waiting.wait_for(lambda: None, 0)
        connection.ensure_connection()
        thread = threading.Timer(0.2, lambda: held.append([c.connection for c in mine]))
        mine = list(connections.all(initialized_only=True))
        thread.start()
        waiting.wait_for(lambda: None, 1)
        thread.join()

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert held == [[None]]


def test_too_many_who_wait_are_sent_away_and_others_are_served(patient):
    job_id, token = build.enqueue(), secret("jobs:read")
    asking = [Asking(token, f"/jobs/{job_id}?wait=50") for _ in range(4)]
    until(lambda: len(patient._waiting) == 4)
    api = Api(token)
    full = api.look(f"/jobs/{job_id}?wait=50")
    assert (full.status_code, full.json()["retryable"]) == (503, True)
    assert int(full["Retry-After"]) >= 1
    assert api.look(f"/jobs/{job_id}").status_code == 200
    Job.objects.cancel(job_id, actor="someone", reason="r")
    for one in asking:
        one.join()
    assert [one.answer.json()["state_version"] for one in asking] == [2] * 4


@pytest.mark.parametrize("path", ["/jobs/{}?wait=50", "/events?wait=50"])
def test_who_waits_is_refused_as_soon_as_his_token_is_revoked(patient, path):
    job_id, token = build.enqueue(queue="mail"), secret("jobs:read", queues=("mail",))
    cursor = Api(token).look("/events").json()["next"]
    path = path.format(job_id) + f"&after={cursor}" * path.startswith("/events")
    asking = Asking(token, path, HTTP_IF_NONE_MATCH='"1"')
    until(lambda: patient._waiting)
    ApiToken.objects.update(revoked_at=timezone.now())
    asking.join(30)
    assert (asking.answer.status_code, asking.answer.json()["code"]) == (401, "not-authenticated")


@pytest.mark.parametrize("path", ["/jobs/{}?wait=50", "/events?wait=50&after=latest"])
def test_a_server_that_stops_keeps_nobody_waiting(patient, monkeypatch, path):
    job_id, token = build.enqueue(), secret("jobs:read")
    asking = Asking(token, path.format(job_id))
    until(lambda: patient._waiting)
    monkeypatch.setattr(waiting, "is_closing", lambda: True)
    asking.join(30)
    assert asking.answer.status_code == 200
    late = Asking(token, path.format(job_id))
    late.join(30)
    assert late.answer.status_code == 200


@pytest.mark.parametrize("path", ["/jobs/{}?wait=50", "/events?wait=50&after=latest"])
def test_the_place_of_a_client_that_has_hung_up_is_free_again(patient, path):
    job_id, token = build.enqueue(), secret("jobs:read")
    client, server = socket.socketpair()
    with server:
        asking = Asking(token, path.format(job_id), **{"gunicorn.socket": server})
        until(lambda: patient._waiting)
        assert not asking.answer
        client.close()
        until(lambda: not patient._waiting)
        asking.join()


def test_what_a_look_raises_is_raised_to_who_waits(patient):
    looks = iter([None])

    def changed():
        if next(looks, "over") == "over":
            raise Problem("cursor-gone")

    with pytest.raises(Problem, match="another life"):
        waiting.wait_for(changed, 50)


@pytest.mark.parametrize("wait", ["-1", "51", "1.5", "x", "", "١", "9" * 30])
def test_wait_that_is_no_number_of_seconds_is_refused(db, wait):
    api, job_id = Api(secret("jobs:read")), build.enqueue()
    for path in (f"/jobs/{job_id}", "/events"):
        answer = api.look(path, data={"wait": wait})
        assert (answer.status_code, [e["parameter"] for e in answer.json()["errors"]]) == (400, ["wait"])
