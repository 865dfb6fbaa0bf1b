"""A request's trace goes with the job to whoever runs it, and comes back with the answer."""

import pytest

from jobs.models import Attempt, Job
from tests.api.caller import Api
from tests.api.worker import Remote, enqueued
from tests.build import KIND

MINE, OTHER = (f"00-{digit * 32}-{digit * 16}-01" for digit in "ab")

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


@pytest.mark.parametrize(
    ("path", "body"), [("/jobs", {"kind": KIND}), ("/jobs/batch", {"jobs": [{"kind": KIND}] * 2})]
)
def test_enqueue_keeps_its_trace_and_returns_it(api, path, body):
    answer = api.send(body, path, HTTP_TRACEPARENT=MINE)
    assert (answer.status_code // 100, answer["traceparent"]) == (2, MINE)
    assert set(Job.objects.values_list("traceparent", flat=True)) == {MINE}
    assert api.look(f"/jobs/{Job.objects.first().id}").json()["traceparent"] == MINE


def test_second_request_with_a_key_may_be_of_another_trace(api):
    first, second = (
        api.send({"kind": KIND}, HTTP_IDEMPOTENCY_KEY="k", HTTP_TRACEPARENT=trace) for trace in (MINE, OTHER)
    )
    assert (second.status_code, second.json()["id"], second["traceparent"]) == (
        200,
        first.json()["id"],
        OTHER,
    )
    assert Job.objects.get().traceparent == MINE


@pytest.mark.parametrize("trace", [None, "00-x", MINE + "-more", "\0", "é" * 55])
def test_malformed_trace_is_ignored(api, trace):
    answer = api.send({"kind": KIND}, **({} if trace is None else {"HTTP_TRACEPARENT": trace}))
    assert (answer.status_code, "traceparent" in answer.headers) == (201, False)
    assert Job.objects.get().traceparent == ""


def test_refusal_returns_the_trace_too(api):
    assert api.look("/jobs?x=1", HTTP_TRACEPARENT=MINE)["traceparent"] == MINE
    assert Api("none").look("/jobs", HTTP_TRACEPARENT=MINE)["traceparent"] == MINE


@pytest.mark.parametrize(("sent", "kept"), [({}, MINE), ({"HTTP_TRACEPARENT": OTHER}, OTHER)])
def test_claim_hands_out_the_jobs_trace_and_the_attempt_keeps_the_claims(api, sent, kept):
    enqueued(traceparent=MINE)
    remote = Remote()
    body = {"worker": {"id": remote.name}, "queues": ["default"], "kinds": [KIND]}
    (got,) = remote.send(body, "/claims", **sent).json()["leases"]
    assert (got["traceparent"], Attempt.objects.get().traceparent) == (MINE, kept)
    (told,) = api.look(f"/jobs/{got['lease']['job_id']}/attempts").json()["results"]
    assert told["traceparent"] == kept
