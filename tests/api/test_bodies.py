"""What a request may bring: bodies, headers and addresses that no sane client sends get a 4xx."""

import io
import json

import pytest
from django.conf import settings

from jobs.models import Job
from tests.api.caller import ROOT, Api, secret
from tests.build import KIND

pytestmark = pytest.mark.looks_alike

LIMIT = settings.INTERLOCK["BODY_BYTES"]


def refused(answer, status, code):
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), (
        answer.content
    )
    body = answer.json()
    assert (body["code"], body["status"], body["type"]) == (code, status, f"urn:interlock:problem:{code}")
    assert body["outcome"] == "not_started"
    assert not Job.objects.exists()
    return body


def test_body_beyond_the_limit_is_413_before_it_is_read_or_asked_who_sent_it(api, client):
    for caller in (api, client):
        stream = NeverRead()
        answer = caller.generic(
            "POST",
            f"{ROOT}/jobs",
            b"",
            "application/json",
            CONTENT_LENGTH=str(LIMIT + 1),
            **{"wsgi.input": stream},
        )
        refused(answer, 413, "body-too-large")


class NeverRead:
    def read(self, *_size):
        raise AssertionError("the body was read")

    readline = read


@pytest.mark.parametrize("stream", [io.BytesIO(b'{"kind":"tests.kind"}  '), None])
def test_body_that_ends_early_is_refused_even_if_it_reads_well(api, stream):
    raw = b'{"kind":"tests.kind"}'
    answer = api.generic(
        "POST",
        f"{ROOT}/jobs",
        raw,
        "application/json",
        CONTENT_LENGTH=str(len(raw) + 9),
        **{"wsgi.input": stream or BrokenOff()},
    )
    refused(answer, 400, "invalid-body")


class BrokenOff:
    def read(self, *_size):
        raise OSError("connection reset")

    readline = read


def test_body_at_the_limit_is_read(api):
    room = LIMIT - len(json.dumps({"kind": KIND, "unknown": ""}))
    answer = api.send({"kind": KIND, "unknown": "x" * room})
    assert refused(answer, 400, "invalid-body")["errors"][0]["pointer"] == "/unknown"


def test_arguments_beyond_their_limit_are_named(api):
    answer = api.send({"kind": KIND, "arguments": {"a": "é" * (settings.INTERLOCK["ARGUMENT_BYTES"] // 2)}})
    assert refused(answer, 400, "invalid-body")["errors"][0]["pointer"] == "/arguments"


@pytest.mark.parametrize("depth", [32, 900, 10_000, 100_000])
def test_arguments_nested_too_deeply_are_refused(api, depth):
    raw = b'{"kind":"%s","arguments":{"a":%s%s}}' % (KIND.encode(), b"[" * depth, b"]" * depth)
    refused(api.send(raw), 400, "invalid-body")


def test_arguments_at_the_deepest_nesting_can_be_shown_afterwards(api):
    deepest = {"a": json.loads("[" * 31 + "]" * 31)}
    job_id = api.send({"kind": KIND, "arguments": deepest}).json()["id"]
    assert api.look(f"/jobs/{job_id}").json()["arguments"] == deepest


@pytest.mark.parametrize(
    "value", ["NaN", "1e999", "1" + "0" * 400, "1" + "0" * 5000, '"\\u0000"', '"\\ud800"']
)
def test_what_no_database_holds_is_refused_at_the_door(api, value):
    refused(
        api.send(b'{"kind":"%s","arguments":{"a":%s}}' % (KIND.encode(), value.encode())), 400, "invalid-body"
    )


@pytest.mark.parametrize("value", ["[]", "null", '"text"', "5", "true", "", " "])
def test_body_that_is_no_object_is_refused(api, value):
    refused(api.send(value.encode()), 400, "invalid-body")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"CONTENT_TYPE": "application/x-www-form-urlencoded"}, 415),
        ({"CONTENT_TYPE": "multipart/form-data; boundary=x"}, 415),
        ({"CONTENT_TYPE": "multipart/form-data"}, 415),
        ({"CONTENT_TYPE": "text/json"}, 415),
        ({"CONTENT_TYPE": "application/json; charset=latin-1"}, 415),
        ({"CONTENT_TYPE": "application/json; charset=utf-16"}, 415),
        ({"CONTENT_TYPE": "application/json\0"}, 415),
        ({"CONTENT_TYPE": "*/*"}, 415),
        ({"CONTENT_TYPE": ""}, 415),
        ({"HTTP_CONTENT_ENCODING": "gzip"}, 415),
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, 411),
        ({"CONTENT_LENGTH": "-1"}, 411),
        ({"CONTENT_LENGTH": "1e3"}, 411),
        ({"CONTENT_LENGTH": "9" * 400}, 413),
        ({"HTTP_ACCEPT": "text/html"}, 406),
        ({"HTTP_IDEMPOTENCY_KEY": "a\0b"}, 400),
        ({"HTTP_IDEMPOTENCY_KEY": "\u00e9"}, 400),
        ({"HTTP_IDEMPOTENCY_KEY": ""}, 400),
        ({"HTTP_IDEMPOTENCY_KEY": " k "}, 400),
        ({"HTTP_IDEMPOTENCY_KEY": "k" * 201}, 400),
    ],
    ids=lambda value: str(value)[:50],
)
def test_header_that_cannot_be_honoured_is_refused(api, headers, status):
    raw = json.dumps({"kind": KIND}).encode()
    answer = api.generic(
        "POST", f"{ROOT}/jobs", raw, headers.pop("CONTENT_TYPE", "application/json"), **headers
    )
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert not Job.objects.exists()


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", 'Application/JSON ;charset="utf-8"'])
def test_utf8_may_be_said(api, kind):
    assert api.generic("POST", f"{ROOT}/jobs", json.dumps({"kind": KIND}).encode(), kind).status_code == 201


def test_longest_idempotency_key_is_kept(api):
    job = Job.objects.get(pk=api.send({"kind": KIND}, headers={"idempotency-key": "k" * 170}).json()["id"])
    assert job.unique_key.endswith(":" + "k" * 170)


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/%00",
        "/jobs/%ff",
        "/jobs/%ed%a0%80",
        "/jobs/{%7B00000000-0000-0000-0000-000000000000%7D",
        "/jobs/urn:uuid:00000000-0000-0000-0000-000000000000",
        "/jobs/00000000-0000-0000-0000-000000000000",
        "/jobs/0000-0000000000000000000000000000-0000",
        "/jobs/9223372036854775808",
        "/jobs/" + "1" * 10_000,
        "/jobs/",
        "/nothing",
        "/",
        "/%00",
    ],
    ids=lambda path: path[:30],
)
def test_address_of_nothing_is_404(api, path):
    refused(api.look(path), 404, "not-found")
    answer = api.send({"reason": "r"}, path + "/cancel")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "authorization", ["Bearer", "Bearer ", "Bearer \0", "Bearer \u00e9", "Bearer " + "x" * 9000]
)
def test_token_that_is_none_is_401(db, authorization):
    answer = Api("x").look("/jobs", HTTP_AUTHORIZATION=authorization)
    assert refused(answer, 401, "not-authenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_cookie_with_nul_is_no_session(client, db):
    """Cookies are unquoted, so that \\000 becomes a character which PostgreSQL refuses in a look-up."""
    client.cookies.load('sessionid="aaaaaaaaaaaa\\000bbb"')
    assert client.get(f"{ROOT}/jobs").status_code == 401


def test_too_many_parameters_are_refused(api):
    assert api.look("/jobs?" + "&".join(f"a{n}=1" for n in range(2000))).status_code == 400


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_method_that_is_not_offered_is_refused(api, method):
    for path in ("/jobs", "/jobs/00000000-0000-0000-0000-000000000000"):
        answer = getattr(api, method)(ROOT + path)
        assert answer.status_code in (403, 405)
        assert answer["Content-Type"] == "application/problem+json"


def test_owner_of_a_token_that_is_inactive_is_401(db):
    token = secret("jobs:read")
    from jobs.models import ApiToken

    owner = ApiToken.objects.get().user
    owner.is_active = False
    owner.save()
    refused(Api(token).look("/jobs"), 401, "not-authenticated")
