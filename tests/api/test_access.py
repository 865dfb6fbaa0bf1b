"""Who may do what: every address for every caller, and nothing changes for the wrong one."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import ApiToken, Change, Job
from tests.api.caller import EVERY_PERMISSION, EVERY_SCOPE, ROOT, Api, person, secret
from tests.build import KIND, enqueue

pytestmark = pytest.mark.looks_alike

ACTIONS = {
    "list": ("GET", "/jobs", None, "jobs:read", "view_job", 200),
    "look": ("GET", "/jobs/{id}", None, "jobs:read", "view_job", 200),
    "enqueue": ("POST", "/jobs", {"kind": KIND}, "jobs:enqueue", "enqueue_job", 201),
    "cancel": ("POST", "/jobs/{id}/cancel", {"reason": "r"}, "jobs:cancel", "cancel_job", 200),
}
SUBSETS = [c for n in range(4) for c in itertools.combinations(range(3), n)]


def act(client, name, job_id, **more):
    method, path, body, *_rest = ACTIONS[name]
    address = ROOT + path.format(id=job_id)
    return client.get(address) if method == "GET" else client.post(address, body, "application/json", **more)


def state():
    jobs = Job.objects.order_by("id").values_list("id", "status", "state_version", "cancel_requested_at")
    return list(jobs), Change.objects.count()


@pytest.mark.parametrize(
    "held", SUBSETS, ids=lambda held: "+".join(EVERY_SCOPE[i][5:] for i in held) or "none"
)
@pytest.mark.parametrize("action", ACTIONS)
def test_token_does_what_its_scopes_say_and_nothing_else(db, action, held):
    job_id, scopes = enqueue(), [EVERY_SCOPE[i] for i in held]
    before = state()
    answer = act(Api(secret(*scopes)), action, job_id)
    *_rest, scope, _permission, done = ACTIONS[action]
    assert answer.status_code == (done if scope in scopes else 403)
    if answer.status_code == 403:
        assert state() == before
        assert scope in answer.json()["detail"]


@pytest.mark.parametrize(
    "held", SUBSETS, ids=lambda held: "+".join(EVERY_PERMISSION[i] for i in held) or "none"
)
@pytest.mark.parametrize("action", ACTIONS)
def test_session_does_what_its_permissions_say_and_nothing_else(db, client, action, held):
    job_id, permissions = enqueue(), [EVERY_PERMISSION[i] for i in held]
    before = state()
    client.force_login(person("someone", *permissions))
    answer = act(client, action, job_id)
    *_rest, permission, done = ACTIONS[action]
    assert answer.status_code == (done if permission in permissions else 403)
    if answer.status_code == 403:
        assert state() == before


@pytest.mark.parametrize("action", ACTIONS)
def test_token_may_not_do_what_its_owner_may_not(db, action):
    job_id = enqueue()
    *_rest, permission, _done = ACTIONS[action]
    token = secret(*EVERY_SCOPE, owner=person("demoted", *[p for p in EVERY_PERMISSION if p != permission]))
    before = state()
    answer = act(Api(token), action, job_id)
    assert (answer.status_code, state()) == (403, before)
    assert permission in answer.json()["detail"]


@pytest.mark.parametrize("action", ACTIONS)
def test_nobody_is_refused_with_how_to_say_who(db, client, action):
    job_id = enqueue()
    before = state()
    answer = act(client, action, job_id)
    assert (answer.status_code, answer.json()["code"], state()) == (401, "not-authenticated", before)
    assert answer["WWW-Authenticate"] == 'Bearer realm="interlock"'


@pytest.mark.parametrize("action", ["enqueue", "cancel"])
def test_session_without_the_csrf_token_changes_nothing(db, action):
    job_id = enqueue()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person("someone", *EVERY_PERMISSION))
    before = state()
    assert act(strict, action, job_id).status_code == 403
    assert state() == before
    strict.cookies["csrftoken"] = "c" * 32
    assert act(strict, action, job_id, headers={"x-csrftoken": "d" * 32}).status_code == 403
    assert act(strict, action, job_id, headers={"x-csrftoken": "c" * 32}).status_code in (200, 201)


def test_token_needs_no_csrf_token(db):
    strict = Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {secret(*EVERY_SCOPE)}"})
    assert act(strict, "enqueue", None).status_code == 201


@pytest.mark.parametrize("spoil", ["revoked_at", "expires_at"])
def test_token_that_is_over_is_401_at_once(db, spoil):
    api = Api(secret("jobs:read"))
    assert api.look("/jobs").status_code == 200
    ApiToken.objects.update(**{spoil: timezone.now()})
    assert api.look("/jobs").status_code == 401


def test_token_limited_to_queues_knows_no_other(db):
    api = Api(secret(*EVERY_SCOPE, queues=("mail", "print")))
    inside, outside = enqueue(queue="mail"), enqueue(queue="default")
    before = state()
    assert [job["id"] for job in api.look("/jobs").json()["results"]] == [str(inside)]
    assert api.look("/jobs?queue=default").json()["results"] == []
    assert api.look("/jobs?count=bounded").json()["count"] == {"value": 1, "exact": True}
    assert api.look(f"/jobs/{inside}").status_code == 200
    assert api.look(f"/jobs/{outside}").status_code == 404
    assert api.send({"reason": "r"}, f"/jobs/{outside}/cancel").status_code == 404
    assert api.send({"kind": KIND, "queue": "default"}).status_code == 403
    assert api.send({"kind": KIND}).status_code == 403, "the kind's own queue counts too"
    assert api.send({"kind": KIND, "queue": "mail", "parent_id": str(outside)}).status_code == 400
    assert state() == before
    assert api.send({"kind": KIND, "queue": "print", "parent_id": str(inside)}).status_code == 201


def test_only_a_hash_of_the_secret_is_kept(db):
    token = secret("jobs:read")
    stored = " ".join(str(value) for value in ApiToken.objects.values_list().get())
    assert token not in stored
    assert token[12:] not in stored


def test_last_use_is_kept_to_the_minute(db):
    api = Api(secret("jobs:read"))
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    ApiToken.objects.update(last_used_at=long_ago)
    api.look("/jobs")
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    assert first - long_ago > timedelta(minutes=1)
    api.look("/jobs")
    assert ApiToken.objects.get().last_used_at == first


def test_new_view_is_closed_until_it_names_a_scope(db):
    from rest_framework.test import APIRequestFactory, force_authenticate

    from jobs.api.view import View

    class Forgotten(View):
        def get(self, request):
            raise AssertionError("reached")

    request = APIRequestFactory().get("/")
    force_authenticate(request, person("root", *EVERY_PERMISSION))
    assert Forgotten.as_view()(request).status_code == 403


def test_get_changes_nothing(api):
    job_id = enqueue()
    api.look("/jobs")  # the token's last use
    before = state(), ApiToken.objects.values_list().get()
    for path in ("/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/cancel", "/jobs?count=bounded"):
        expected = 405 if path.endswith("cancel") else 200
        assert (api.look(path).status_code, api.head(ROOT + path).status_code) == (expected, expected)
    assert (state(), ApiToken.objects.values_list().get()) == before
