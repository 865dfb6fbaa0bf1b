"""Claims over HTTP: who gets what, who is refused, and what a lost answer costs."""

import http.client
import json
import threading
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.utils import timezone

from jobs.api import room
from jobs.api.claims import HOUSEKEEPING
from jobs.models import ApiToken, Attempt, Job, Worker
from tests.api.caller import ROOT, Api, person, secret
from tests.api.worker import Remote, enqueued, status
from tests.build import KIND

pytestmark = pytest.mark.django_db


def test_a_claim_registers_its_worker_and_carries_all_that_it_needs():
    (job_id,) = enqueued(deadline=3600)
    remote = Remote()
    got = remote.take()
    job = Job.objects.get()
    assert (job.status, got["lease"]["job_id"], got["input"]) == ("running", str(job_id), {"n": 0})
    assert got["lease"]["worker_id"] == job.worker_id == f"far:1:a@token-{ApiToken.objects.get().pk}"
    assert (got["ttl_seconds"], got["attempt"], got["ruled"]) == (60.0, 1, None)
    worker = Worker.objects.get()
    assert (worker.id, worker.host, worker.kinds) == (job.worker_id, "far", [KIND])


def test_nothing_for_now_is_an_empty_list_and_other_queues_are_not_touched():
    enqueued(queue="other")
    answer = Remote().claim().json()
    assert (answer["leases"], answer["retry_after"]) == ([], None)


def test_queues_that_the_token_is_not_for_are_refused():
    enqueued(queue="other")
    assert Remote(queues=("default",)).claim(queues=("default", "other")).status_code == 403
    assert status(Job.objects.get().pk) == "pending"


def test_a_fenced_worker_and_a_stopped_one_are_told_to_start_anew():
    remote = Remote()
    remote.claim()
    worker = {"id": remote.name, "stopped": True}
    assert remote.send({"worker": worker, "leases": []}, "/leases/renew").status_code == 200
    assert remote.claim().json()["code"] == "worker-ended"
    other = Remote("far:2:b")
    other.claim()
    Job.objects.fence_worker(Worker.objects.exclude(stopped_at=None).get().pk, actor="ada", reason="test")
    Job.objects.fence_worker(Worker.objects.get(stopped_at=None).pk, actor="ada", reason="test")
    assert other.claim().json()["code"] == "worker-ended"


def test_what_the_answer_was_lost_of_is_given_back_and_costs_no_attempt():
    first, second = enqueued(2)
    remote = Remote()
    held = remote.take()
    remote.take()  # and never heard of
    answer = remote.claim(holding=[held["lease"]["attempt_id"]], queues=("none",))
    assert answer.json()["leases"] == []
    assert (status(first), status(second)) == ("running", "pending")
    assert Job.objects.get(pk=second).attempts_used == 0


def test_an_expired_lease_is_taken_back_by_the_next_claim():
    (job_id,) = enqueued()
    Remote().take()
    epoch = Job.objects.runtime.current_epoch()
    Job.objects.raise_epoch(expected=epoch, actor="ada", reason="test")
    HOUSEKEEPING._next = 0.0  # whoever did the duties a moment ago does not do them again at once
    got = Remote("far:2:b").take()
    assert got["lease"]["job_id"] == str(job_id)
    assert [a.status for a in Attempt.objects.order_by("generation")] == ["lost", "running"]


@pytest.mark.parametrize(
    ("scopes", "permissions", "code"),
    [(("jobs:read",), ("run_worker", "view_job"), 403), (("worker",), ("view_job",), 403)],
)
def test_scope_and_permission_are_both_needed(scopes, permissions, code):
    api = Api(secret(*scopes, owner=person("x", *permissions)))
    body = {"worker": {"id": "a:1:b"}, "queues": ["default"], "kinds": [KIND]}
    assert api.send(body, "/claims").status_code == code


def test_a_revoked_token_is_refused_at_once():
    remote = Remote()
    assert remote.claim().status_code == 200
    ApiToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert remote.claim().status_code == 401


BODY = {"worker": {"id": "a:1:b"}, "queues": ["default"], "kinds": [KIND]}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"worker": {"id": "a@token-1"}}, "/worker/id"),
        ({"worker": {"id": "x" * 151}}, "/worker/id"),
        ({"worker": None}, "/worker"),
        ({"queues": []}, "/queues"),
        ({"queues": ["a b"]}, "/queues/0"),
        ({"queues": "default"}, "/queues"),
        ({"kinds": ["k"] * 101}, "/kinds"),
        ({"kinds": [7]}, "/kinds/0"),
        ({"kinds": [KIND, "interlock.plan"]}, "/kinds"),
        ({"limit": 0}, "/limit"),
        ({"limit": 501}, "/limit"),
        ({"limit": 10**400}, ""),
        ({"limit": True}, "/limit"),
        ({"wait": 31}, "/wait"),
        ({"wait": "1"}, "/wait"),
        ({"holding": ["x"]}, "/holding/0"),
        ({"more": 1}, "/more"),
        ({"kinds": ["\ud800"]}, "/kinds/0"),
        ({"kinds": ["a\0"]}, "/kinds/0"),
    ],
)
@pytest.mark.looks_alike
def test_bad_claims_are_told_what_is_wrong_with_them(change, pointer):
    answer = Remote().send(BODY | change, "/claims")
    assert answer.status_code == 400, answer.content
    problem = answer.json()
    assert (problem["outcome"], problem["retryable"]) == ("not_started", False)
    assert problem["errors"][0]["pointer"].startswith(pointer)


def test_an_unknown_parameter_is_refused():
    assert Remote().send(BODY, "/claims?limit=3").status_code == 400


# -- waiting ----------------------------------------------------------------------------------------------


def test_a_full_room_turns_away_with_the_time_to_come_back(monkeypatch):
    monkeypatch.setattr(room.ROOM, "places", threading.Semaphore(0))
    answer = Remote().claim(wait=30)
    assert (answer.json()["retry_after"], answer["Retry-After"]) == (5, "5")


def test_one_of_each_group_is_called_and_the_next_when_it_passes_on():
    waiting = room.Room(threading.Semaphore(3))
    waiting._watch = lambda: None  # nobody else calls
    a, b = (("q",), ("k",)), (("other",), ("k",))
    with ExitStack() as first_sits, waiting.seat(b) as third:
        first = first_sits.enter_context(waiting.seat(a))
        with waiting.seat(a, "far:2") as second:
            seats = [seat for seat in (first, second, third) if seat]
            assert first_sits.enter_context(waiting.seat(b)) is None  # all are taken
            waiting.call("q")
            assert [seat.wait(0) for seat in seats] == [True, False, False]
            waiting.call()
            assert [seat.wait(0) for seat in seats] == [True, False, True]
            waiting.call_worker("far:2")
            assert [seat.wait(0) for seat in seats] == [False, True, False]
            first_sits.close()
            waiting.pass_on(a)
            assert seats[1].wait(0)


@pytest.mark.django_db(transaction=True)
def test_a_waiting_claim_holds_no_connection_and_gets_the_job_that_comes(live_server, monkeypatch):
    """Through a real server: the test's own thread enqueues while the request waits."""
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.05)
    remote = Remote()
    token = secret("worker", owner=person("robot", "run_worker"))
    address = urlsplit(live_server.url)
    body = json.dumps(BODY | {"wait": 20})
    answers = []

    def ask():
        web = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        web.request("POST", f"{ROOT}/claims", body, headers)
        answers.append(json.loads(web.getresponse().read()))
        web.close()

    asking = threading.Thread(target=ask)
    asking.start()
    pause = threading.Event()
    while not room.ROOM._seated:
        pause.wait(0.01)
    if connection.vendor == "postgresql":
        while _others() > 1:  # the one that listens for all
            pause.wait(0.02)
    (job_id,) = enqueued()
    asking.join(30)
    assert [lease["lease"]["job_id"] for lease in answers[0]["leases"]] == [str(job_id)]
    assert remote.claim().json()["leases"] == []
    for thread in threading.enumerate():
        if thread.name in ("waiting", "listener"):
            thread.join(30)  # it listens no longer than somebody waits


@pytest.mark.django_db(transaction=True)
def test_a_waiting_claim_is_refused_as_soon_as_its_token_is_revoked(monkeypatch):
    """Also where another is first in line for the same queues and kinds."""
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.05)
    answers = {}

    def ask(remote):
        answers[remote.name] = remote.claim(wait=20)
        connection.close()

    pause, asking = threading.Event(), []
    for number, name in enumerate(("far:1:a", "far:2:b"), 1):
        asking.append(threading.Thread(target=ask, args=[Remote(name)]))
        asking[-1].start()
        while room.ROOM._seated < number:
            pause.wait(0.01)
    ApiToken.objects.filter(pk=ApiToken.objects.latest("pk").pk).update(revoked_at=timezone.now())
    asking[1].join(30)
    assert (answers["far:2:b"].status_code, [*answers]) == (401, ["far:2:b"])
    enqueued()
    asking[0].join(30)
    assert len(answers["far:1:a"].json()["leases"]) == 1
    for thread in threading.enumerate():
        if thread.name in ("waiting", "listener"):
            thread.join(30)


def _others() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])
