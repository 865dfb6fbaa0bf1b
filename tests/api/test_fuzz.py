"""Any input gets a 4xx or a correct answer: a quarter of a minute of inputs that nobody thought of."""

import json
import uuid
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobs.api.enqueue import EnqueueBody
from jobs.api.filters import JobFilter
from jobs.api.paging import PARAMETERS
from jobs.models import Job
from tests import build
from tests.api.caller import ROOT
from tests.build import KIND

EXAMPLES = settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
NASTY = st.sampled_from(
    [
        "\0",
        "\ud800",
        "\udfff\ud800",
        "١٢",
        "1e400",
        "9" * 30,
        "-1",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "2026-01-01T00:00:00Z",
        str(uuid.UUID(int=0)),
        "' OR 1=1 --",
        "<script>",
        "%00",
        "pending",
        "-id",
        KIND,
        "default",
        "",
        " ",
    ]
)
TEXT = NASTY | st.text(max_size=12)
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**53, 2**63, -(2**63), 10**400])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from(sorted(EnqueueBody().fields))
NAMES = st.sampled_from([*JobFilter.base_filters, *PARAMETERS]) | TEXT


def send(api, raw, path="/jobs", **more):
    """POST and check the answer, whatever it is."""
    return check(api.send(raw, path, **more))


def check(answer):
    assert answer.status_code < 500, answer.content
    body = answer.json() if answer.content else {}
    if answer.status_code >= 400:
        assert answer["Content-Type"] == "application/problem+json"
        assert body["outcome"] == "not_started"
        assert all(("pointer" in e) or ("parameter" in e) or ("header" in e) for e in body["errors"])
    return answer


@pytest.fixture
def fuzzed(api):
    """A client whose list holds a job of each kind of trouble, so that a spoiled row would be seen."""
    build.enqueue({"a": [1.5, "é"]}, label="é")
    yield api
    assert check(api.look("/jobs?limit=200")).status_code == 200


@EXAMPLES
@given(body=st.dictionaries(MEMBERS | TEXT, VALUES, max_size=6), key=st.none() | TEXT)
def test_bodies_of_enqueue(fuzzed, body, key):
    raw = json.dumps({"kind": KIND, **body}).encode()
    before = Job.objects.count()
    # A header is latin-1 by the time that it is ours.
    headers = (
        {} if key is None else {"HTTP_IDEMPOTENCY_KEY": key.encode("utf-8", "replace").decode("latin-1")}
    )
    answer = send(fuzzed, raw, **headers)
    assert Job.objects.count() - before == (answer.status_code == 201)
    if answer.status_code == 201:
        assert check(fuzzed.look(f"/jobs/{answer.json()['id']}")).status_code == 200


@EXAMPLES
@given(raw=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_bodies_that_are_hardly_any(fuzzed, raw):
    job_id = Job.objects.first().id
    for path in ("/jobs", f"/jobs/{job_id}/cancel"):
        send(fuzzed, raw, path)


@EXAMPLES
@given(query=st.lists(st.tuples(NAMES, TEXT), max_size=4))
def test_queries(fuzzed, query):
    encoded = urlencode([(k.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for k, v in query])
    check(fuzzed.look(f"/jobs?{encoded}"))
    raw = "&".join(f"{k}={v}" for k, v in query).encode("utf-8", "replace").decode("latin-1")
    check(fuzzed.get(f"{ROOT}/jobs", QUERY_STRING=raw))


@EXAMPLES
@given(part=st.binary(max_size=40) | TEXT.map(lambda text: text.encode("utf-8", "replace")))
def test_paths_and_conditions(fuzzed, part):
    assert check(fuzzed.look("/jobs/" + quote(part))).status_code in (200, 404)
    tag = part.decode("latin-1")
    check(fuzzed.look(f"/jobs/{Job.objects.first().id}", HTTP_IF_NONE_MATCH=tag))
    check(fuzzed.get(f"{ROOT}/jobs", HTTP_AUTHORIZATION=f"Bearer {tag}"))
    check(fuzzed.get(f"{ROOT}/jobs", HTTP_ACCEPT=tag, HTTP_ACCEPT_LANGUAGE=tag))
