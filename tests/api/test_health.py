"""/healthz, /readyz and /metrics: what machines are told, and which machines."""

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from jobs.models import ApiToken, Job
from tests.api.caller import Api, person, secret
from tests.build import enqueue

pytestmark = pytest.mark.looks_alike

OUTSIDE = {"REMOTE_ADDR": "192.0.2.7"}


@pytest.fixture
def no_database(monkeypatch):
    """Every use of the database fails, as when the server is gone."""

    def gone(*_args, **_kwargs):
        raise OperationalError('connection to "db.internal", user "secret" failed')

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", gone)
    monkeypatch.setattr(BaseDatabaseWrapper, "_cursor", gone)


def test_process_that_serves_is_alive_whatever_the_database_does(client, no_database):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]


def test_installation_without_workers_is_ready(db, client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (200, b"database: ok\nmigrations: ok\nready\n")


def test_no_database_is_not_ready_and_says_nothing_of_it(db, client, no_database):
    for path in ("/readyz", "/metrics"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert b"internal" not in answer.content
        assert b"secret" not in answer.content


def test_missing_migration_is_not_ready(db, client):
    MigrationRecorder(connection).record_unapplied("jobs", "0001_initial")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"database: ok\nmigrations: broken\nnot ready\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_read_only_and_start_no_session(db, client, path):
    enqueue()
    before = list(Job.objects.values_list())
    answer = client.get(path)
    assert not answer.cookies
    assert client.head(path).status_code == 200
    assert client.post(path).status_code == 405
    assert list(Job.objects.values_list()) == before


def test_metrics_are_for_this_machine(db, client):
    enqueue(queue="mail")
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b'interlock_queue_depth{queue="mail"} 1.0' in answer.content
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200


@pytest.mark.parametrize(
    "meta",
    [
        OUTSIDE,
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "127.0.0.1.example"},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_FORWARDED": "for=127.0.0.1"},
        {"HTTP_X_REAL_IP": "::1"},
        {"HTTP_VIA": "1.1 proxy"},
    ],
    ids=str,
)
def test_other_machines_need_a_token(db, client, meta):
    answer = client.get("/metrics", **meta)
    assert answer.status_code == 401
    assert b"interlock_" not in answer.content
    assert Api(secret("ops")).get("/metrics", **meta).status_code == 200


def test_everything_comes_from_elsewhere_behind_a_proxy(db, client, settings):
    settings.BEHIND_PROXY = True
    assert client.get("/metrics").status_code == 401


def test_token_must_have_the_scope_even_on_this_machine(db):
    assert Api(secret("jobs:read", "worker")).get("/metrics").status_code == 403
    assert Api("ilk_unknown").get("/metrics").status_code == 401
    for strange in ("Bearer \0", "Bearer é", "Bearer"):
        assert Client().get("/metrics", HTTP_AUTHORIZATION=strange).status_code == 401


def test_token_may_no_more_here_than_elsewhere(db):
    assert Api(secret("ops", queues=("mail",))).get("/metrics").status_code == 403
    assert Api(secret("ops", owner=person("nobody"))).get("/metrics").status_code == 403
    assert Api(secret("ops", owner=person("somebody", "view_job"))).get("/metrics").status_code == 200
    assert ApiToken.objects.get(user__username="somebody").last_used_at is not None


def test_log_in_is_no_way_to_the_metrics(client, admin_user):
    client.force_login(admin_user)
    assert client.get("/metrics", **OUTSIDE).status_code == 401
