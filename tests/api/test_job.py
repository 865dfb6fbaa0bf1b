"""GET /jobs/{id}: what is shown, to whom, and under which tag."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from rest_framework.renderers import JSONRenderer

from jobs.api.shape import receipt
from jobs.models import AuditEntry, Job
from jobs.status import JobStatus
from tests import build
from tests.api.caller import EVERY_SCOPE, ROOT, Api, person, secret
from tests.build import at, claim, enqueue

pytestmark = pytest.mark.looks_alike

CANARY = "S3CR3T-canary"
PAYLOAD = {
    "password": CANARY,
    "nested": [{"token": CANARY, "n": 1}],
    "hidden": {"deep": CANARY},
    "open": "yes",
}


def test_job_is_shown_as_it_is(api):
    lease = build.running(label="<b>&")
    job = api.look(f"/jobs/{build.id_of(lease)}").json()
    assert (job["id"], job["status"], job["label"]) == (str(build.id_of(lease)), "running", "<b>&")
    assert (job["worker_id"], job["claim_generation"], job["state_version"]) == (build.WORKER, 1, 2)
    assert job["created_at"] == "2026-03-01T12:00:00Z"
    assert job["result"] is None
    build.end(lease, JobStatus.SUCCEEDED)
    job = api.look(f"/jobs/{build.id_of(lease)}").json()
    assert (job["status"], job["result"], job["finished_at"]) == (
        "succeeded",
        {"ok": 1},
        "2026-03-01T12:00:01Z",
    )


@pytest.mark.parametrize("status", JobStatus)
def test_job_of_every_status_can_be_shown(api, status):
    assert api.look(f"/jobs/{build.id_of(build.job(status))}").json()["status"] == status


def test_payload_is_masked_everywhere_and_its_digest_withheld(api):
    lease = claim(enqueue(PAYLOAD))
    Job.objects.commit(lease, {"echo": f"it was {CANARY}!", CANARY: 1, "card": 4111}, now=at(1))
    for path in ("/jobs", f"/jobs/{build.id_of(lease)}"):
        assert CANARY.encode() not in api.look(path).content
    job = api.look(f"/jobs/{build.id_of(lease)}").json()
    assert job["arguments"] == {
        "password": "•••",
        "nested": [{"token": "•••", "n": 1}],
        "hidden": "•••",
        "open": "yes",
    }
    assert job["result"] == {"echo": "it was •••!", "•••": 1, "card": "•••"}
    assert (job["redacted"], job["input_digest"]) == (True, None)


def test_payload_without_secrets_is_shown_whole(api):
    job = api.look(f"/jobs/{enqueue({'n': 1.5})}").json()
    assert (job["arguments"], job["redacted"], len(job["input_digest"])) == ({"n": 1.5}, False, 64)


def test_person_who_may_see_payloads_sees_them(client, db):
    job_id = enqueue(PAYLOAD)
    client.force_login(person("reader", "view_job"))
    assert CANARY.encode() not in client.get(f"{ROOT}/jobs/{job_id}").content
    client.force_login(person("auditor", "view_job", "view_payload"))
    assert client.get(f"{ROOT}/jobs/{job_id}").json()["arguments"] == PAYLOAD


def test_what_a_person_is_shown_of_hidden_payloads_stands_in_the_audit(client, db):
    hidden, plain = enqueue(PAYLOAD), enqueue({"n": 1})
    client.force_login(person("auditor", "view_job", "view_payload"))
    for job_id in (hidden, plain):
        assert client.get(f"{ROOT}/jobs/{job_id}").status_code == 200
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id) == ("reveal", str(hidden))
    assert (entry.user, entry.source) == ("auditor", "api")


def test_token_never_sees_payloads_even_if_its_owner_does(db):
    api = Api(secret(*EVERY_SCOPE, owner=person("auditor", "view_job", "enqueue_job", "view_payload")))
    job_id = enqueue(PAYLOAD, unique_key="k")
    assert CANARY.encode() not in api.look(f"/jobs/{job_id}").content
    answer = api.send({"kind": build.KIND, "unique_key": "k", "arguments": {**PAYLOAD, "open": "no"}})
    assert answer.json()["differing"] == ["/arguments/open"]
    assert CANARY.encode() not in answer.content


def test_same_version_is_304_and_another_is_shown(api):
    job_id = enqueue()
    first = api.look(f"/jobs/{job_id}")
    assert first["ETag"] == '"1"'
    for tag in ('"1"', '"0", "1"', 'W/"1"', "*"):
        answer = api.look(f"/jobs/{job_id}", headers={"if-none-match": tag})
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", '"1"')
    lease = claim(job_id)
    answer = api.look(f"/jobs/{job_id}", headers={"if-none-match": '"1"'})
    assert (answer.status_code, answer["ETag"]) == (200, '"2"')
    for tag in ("1", '"11"', "", "\0"):
        assert api.look(f"/jobs/{job_id}", headers={"if-none-match": tag}).status_code == 200
    shown = answer.content
    assert Job.objects.renew(lease, now=at(30)).landed
    assert api.look(f"/jobs/{job_id}").content == shown, (
        "a renewal is no new version, so the bytes are the same"
    )


def test_answers_are_for_one_caller_only(api):
    job_id = enqueue()
    for path in ("/jobs", f"/jobs/{job_id}"):
        assert api.look(path)["Cache-Control"] == "private, no-cache"
        assert api.look(path)["X-Content-Type-Options"] == "nosniff"
    assert api.look("/jobs?x=1")["Cache-Control"] == "no-store"


def test_text_that_no_encoder_writes_leaves_an_answer_readable():
    """No door of ours lets a lone surrogate in; a row from elsewhere must not spoil its list."""
    rendered = JSONRenderer().render(receipt(Job(label="\ud83d")))
    assert json.loads(rendered)["label"] == "\ud83d"


def test_instants_keep_their_microseconds(api):
    moment = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    job_id = enqueue(now=moment)
    assert api.look(f"/jobs/{job_id}").json()["created_at"] == "2026-03-01T12:00:00.123456Z"
    later = (moment + timedelta(microseconds=1)).isoformat().replace("+00:00", "Z")
    assert api.look(f"/jobs?created_since={later}").json()["results"] == []
