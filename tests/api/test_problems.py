"""What a client is told when it is not its fault: whether to ask again, and what became of the request."""

import logging

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from jobs.models import Job
from jobs.outcomes import Refused
from tests.api.caller import EVERY_SCOPE, ROOT, Api, person, secret
from tests.build import KIND, enqueue

pytestmark = pytest.mark.looks_alike


@pytest.fixture
def api(transactional_db):
    return Api(secret(*EVERY_SCOPE))


def lose_connection(*_args, **_kwargs):
    raise OperationalError('connection to "db.internal" lost')


def test_connection_lost_during_commit_is_an_unknown_outcome_that_a_key_resolves(api, monkeypatch):
    key = {"headers": {"idempotency-key": "k"}}
    api.send({"kind": KIND, "unique_key": "warm"})  # the token's last use
    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def commit_and_lose(self):
        commit(self)
        lose_connection()

    with monkeypatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "_commit", commit_and_lose)
        answer = api.send({"kind": KIND}, **key)
    body = answer.json()
    assert (answer.status_code, body["code"]) == (503, "unavailable")
    assert (body["outcome"], body["retryable"], answer["Retry-After"]) == ("unknown", True, "1")
    assert b"internal" not in answer.content
    assert api.send({"kind": KIND}, **key).status_code == 200
    assert Job.objects.count() == 2


def test_read_that_fails_has_started_nothing(api, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "_cursor", lose_connection)
        answer = api.look("/jobs")
    assert (answer.status_code, answer.json()["outcome"]) == (503, "not_started")


def test_error_of_ours_says_nothing_of_itself_and_is_logged(db, monkeypatch, caplog):
    # Api would complain of it: no error of ours is described.
    client = Client(headers={"authorization": f"Bearer {secret(*EVERY_SCOPE)}"})

    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("secret detail")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "interlock.api"):
        patch.setattr(BaseDatabaseWrapper, "_cursor", broken)
        answer = client.post(f"{ROOT}/jobs", {"kind": KIND}, content_type="application/json")
    body = answer.json()
    assert (answer.status_code, body["code"], body["outcome"], body["retryable"]) == (
        500,
        "internal",
        "unknown",
        False,
    )
    assert "secret" not in answer.content.decode()
    assert "secret detail" in caplog.text


def test_contended_key_may_be_asked_for_again():
    from jobs.api.problems import refused

    problem = refused(Refused("KEY_CONTENDED", key="k"))
    assert (problem.status_code, problem.more["refusal"]) == (503, "KEY_CONTENDED")


def test_texts_are_in_the_readers_language_and_codes_are_not(api):
    answer = api.look("/jobs?x=1", headers={"accept-language": "zh-hans"})
    assert answer.json()["code"] == "invalid-query"
    assert "Accept-Language" in answer["Vary"]


def test_forbidden_names_what_is_missing(db):
    job_id = enqueue()
    answer = Api(secret("jobs:read", owner=person("ann", "view_job"))).send(
        {"reason": "r"}, f"/jobs/{job_id}/cancel"
    )
    assert answer.json()["detail"] == "The token lacks the scope jobs:cancel."
