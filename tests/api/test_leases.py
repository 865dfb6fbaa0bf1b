"""What a remote worker may do with its leases, and what it is told when it may not."""

import uuid

import pytest

from jobs.models import ApiToken, Attempt, FenceRefusal, Job
from tests.api.caller import Api, person, secret
from tests.api.worker import Remote, enqueued, status

pytestmark = pytest.mark.django_db


@pytest.fixture
def remote():
    enqueued(3)
    return Remote()


def refused(answer):
    """Return code, reason and outcome of a refusal."""
    problem = answer.json()
    assert answer.status_code == 409, problem
    assert problem["retryable"] is False
    return problem["code"], problem["reason"], problem["outcome"]


def test_a_result_is_committed_once_however_often_it_is_sent(remote):
    lease = remote.take()["lease"]
    answer = remote.do(lease, "commit", result={"pages": 3}, log="one\ntwo")
    assert answer.json()["code"] == "COMMITTED"
    again = remote.do(lease, "commit", result={"pages": 3})
    assert (again.status_code, again.json()["replay"]) == (200, True)
    other = remote.do(lease, "commit", result={"pages": 4})
    assert refused(other) == ("fenced", "RESULT_CONFLICT", "not_started")
    attempt = Attempt.objects.get()
    assert (attempt.value, attempt.log, Job.objects.get(pk=lease["job_id"]).result_commit_id) == (
        {"pages": 3},
        "one\ntwo",
        attempt.pk,
    )


def test_a_staged_result_is_committed_by_its_digest(remote):
    lease = remote.take()["lease"]
    assert refused(remote.do(lease, "commit", result_digest="0" * 64))[1] == "NOT_STAGED"
    digest = remote.do(lease, "stage", result=[1]).json()["result_digest"]
    assert remote.do(lease, "commit", result_digest=digest).json()["result_digest"] == digest
    assert Attempt.objects.get().value == [1]


def test_many_are_committed_in_one_request_each_judged_alone(remote):
    leases = [got["lease"] for got in remote.claim(limit=3).json()["leases"]]
    leases[1] = leases[1] | {"claim_generation": 7}
    commits = [{"lease": lease, "result": n} for n, lease in enumerate(leases)]
    results = remote.send({"commits": commits}, "/leases/commit").json()["results"]
    assert [(r["code"], r.get("reason")) for r in results] == [
        ("COMMITTED", None),
        ("FENCED", "GENERATION"),
        ("COMMITTED", None),
    ]


def test_renewals_are_answered_each_and_a_cancel_is_told_with_its_number(remote):
    leases = [got["lease"] for got in remote.claim(limit=3).json()["leases"]]
    Job.objects.cancel(uuid.UUID(leases[1]["job_id"]), actor="ada", reason="test")
    leases[2] = leases[2] | {"scheduler_epoch": 99}
    body = {"worker": {"id": remote.name, "running": 3}, "leases": leases}
    first, second, third = remote.send(body, "/leases/renew").json()["results"]
    assert first["code"] == "RENEWED"
    assert first["lease_expires_at"]
    assert (second["code"], second["cancel_generation"]) == ("CANCELLED", 1)
    assert (third["code"], third["reason"]) == ("FENCED", "EPOCH")
    told = leases[1] | {"cancel_generation": 1}
    (again,) = remote.send({"leases": [told]}, "/leases/renew").json()["results"]
    assert again["code"] == "RENEWED"
    problem = remote.do(leases[1], "commit", result=1).json()
    assert (problem["code"], problem["cancel_generation"]) == ("cancelled", 1)
    assert remote.do(leases[1], "acknowledge-cancel").json()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("verb", "body", "then"),
    [
        ("fail", {"error_code": "PAGE_VALIDATION_FAILED", "message": "no"}, "failed"),
        ("fail", {"error_code": "RENDER_SERVICE_UNAVAILABLE"}, "pending"),
        ("fail", {"error_code": "PAGE_VALIDATION_FAILED", "retry_after": 5, "traceback": "…"}, "pending"),
        ("release", {"message": "stopping"}, "pending"),
        ("wait", {"seconds": 60}, "waiting"),
        ("wait", {"until": "2030-01-01T00:00:00Z", "reason": "provider"}, "waiting"),
        ("skip", {"error_code": "REPORT_EXISTS"}, "skipped"),
        ("uncertain", {"note": "no answer", "reference": "r1"}, "uncertain"),
    ],
)
def test_every_other_ending_lands_and_answers_the_same_when_it_is_sent_again(remote, verb, body, then):
    lease = remote.take()["lease"]
    answer = remote.do(lease, verb, **body)
    assert (answer.status_code, answer.json()["status"]) == (200, then), answer.content
    again = remote.do(lease, verb, **body)
    assert (again.status_code, again.json()["status"]) == (200, then)
    assert status(lease["job_id"]) == then


def test_secrets_of_the_input_are_in_no_message_and_no_log():
    enqueued()
    Job.objects.enqueue("tests.kind", {"hidden": "hunter2"})
    remote = Remote()
    lease = remote.claim(limit=2).json()["leases"][1]["lease"]
    remote.do(lease, "fail", error_code="PAGE_VALIDATION_FAILED", message="hunter2!", log="said hunter2")
    attempt = Attempt.objects.get(pk=lease["attempt_id"])
    assert "hunter2" not in attempt.error_message + attempt.log
    assert attempt.error_message.endswith("!")


def test_a_revised_input_is_told_and_released_at_no_cost(remote):
    lease = remote.take()["lease"]
    job = Job.objects.get(pk=lease["job_id"])
    Job.objects.revise(job.pk, {"n": 5}, actor="ada", reason="test", state_version=job.state_version)
    assert refused(remote.do(lease, "commit", result=1))[0] == "stale-input"
    assert remote.do(lease, "release").json()["status"] == "pending"
    job.refresh_from_db()
    assert job.attempts_used == 0


# -- other people's leases --------------------------------------------------------------------------------

VERBS = ("stage", "commit", "fail", "release", "wait", "skip", "uncertain", "acknowledge-cancel", "effects")
EXTRA: dict[str, dict[str, object]] = {
    "fail": {"error_code": "A_FAILED"},
    "skip": {"error_code": "A_SKIP"},
    "wait": {"seconds": 1},
    "effects": {"kind": "k", "slot": "s"},
}


@pytest.mark.parametrize("verb", VERBS)
def test_another_tokens_lease_cannot_be_touched(remote, verb):
    lease = remote.take()["lease"]
    before = Job.objects.values().get(pk=lease["job_id"])
    rival = Remote("far:2:b")
    answer = rival.do(lease, verb, **EXTRA.get(verb, {}))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (403, "/lease/worker_id")
    # Its own name instead: then the fence knows.
    forged = lease | {"worker_id": lease["worker_id"].rpartition("@")[0] + "@" + _mark(rival)}
    answer = rival.do(forged, verb, **EXTRA.get(verb, {}))
    assert answer.status_code in (400, 409), answer.content
    assert Job.objects.values().get(pk=lease["job_id"]) == before


def _mark(rival):
    rival.claim(queues=("none",))
    return f"token-{ApiToken.objects.latest('pk').pk}"


def test_another_tokens_leases_are_not_renewed_nor_committed_in_a_batch(remote):
    lease = remote.take()["lease"]
    rival = Remote("far:2:b")
    assert rival.send({"leases": [lease]}, "/leases/renew").status_code == 403
    assert rival.send({"commits": [{"lease": lease}]}, "/leases/commit").status_code == 403


def test_a_local_workers_lease_is_nobodys_over_http():
    (job_id,) = enqueued()
    lease = Job.objects.claim_job(job_id, worker_id="host:1:a")
    assert lease is not None
    shown = {
        "job_id": str(job_id),
        "attempt_id": lease.attempt_id,
        "claim_generation": 1,
        "scheduler_epoch": lease.epoch,
        "worker_id": "host:1:a",
        "cancel_generation": 0,
        "revision": 1,
        "input_digest": lease.input_digest,
    }
    assert Remote().do(shown, "release").status_code == 403
    reader = Api(secret("jobs:read", owner=person("x", "run_worker", "view_job")))
    assert reader.send({"lease": shown}, f"/leases/{lease.attempt_id}/release").status_code == 403


def test_every_refusal_is_kept_for_people(remote):
    lease = remote.take()["lease"]
    remote.do(lease | {"claim_generation": 9}, "commit", result=1)
    refusal = FenceRefusal.objects.get()
    assert (refusal.point, refusal.reason, str(refusal.job_id)) == ("commit", "GENERATION", lease["job_id"])


# -- bad input --------------------------------------------------------------------------------------------

HUGE = 10**400


@pytest.mark.parametrize(
    ("verb", "change", "extra", "pointer"),
    [
        ("commit", {"claim_generation": -1}, {}, "/lease/claim_generation"),
        ("commit", {"claim_generation": 2**53}, {}, "/lease/claim_generation"),
        ("commit", {"revision": 2**31}, {}, "/lease/revision"),
        ("commit", {"cancel_generation": "0"}, {}, "/lease/cancel_generation"),
        ("commit", {"attempt_id": "00000000-0000-0000-0000-000000000000"}, {}, "/lease/attempt_id"),
        ("commit", {"job_id": None}, {}, "/lease/job_id"),
        ("commit", {"worker_id": 5}, {}, "/lease/worker_id"),
        ("commit", {"input_digest": "x" * 65}, {}, "/lease/input_digest"),
        ("commit", {"more": 1}, {}, "/lease/more"),
        ("commit", {}, {"result": "\ud800"}, "/result"),
        ("commit", {}, {"result": {"a": 2**53}}, "/result/a"),
        ("commit", {}, {"result": [HUGE]}, "/result/0"),
        ("commit", {}, {"result": 1, "result_digest": "a"}, "/result_digest"),
        ("commit", {}, {"log": 5}, "/log"),
        ("commit", {}, {"result": "x" * 300_000}, "/result"),
        ("stage", {}, {"result": "a\0"}, "/result"),
        ("fail", {}, {"error_code": "no code"}, "/error_code"),
        ("fail", {}, {}, "/error_code"),
        ("fail", {}, {"error_code": "A_FAILED", "retry_after": -1}, "/retry_after"),
        ("fail", {}, {"error_code": "A_FAILED", "retry_after": 1e300}, "/retry_after"),
        ("wait", {}, {}, "/seconds"),
        ("wait", {}, {"seconds": 1, "reason": "approval"}, "/effect_id"),
        ("wait", {}, {"reason": "approval", "effect_id": "nope"}, "/effect_id"),
        ("wait", {}, {"reason": "lunch", "seconds": 1}, "/reason"),
        ("uncertain", {}, {"payload": 1}, "/effect_id"),
        ("uncertain", {}, {"payload": 1, "effect_id": "nope"}, "/effect_id"),
        ("effects", {}, {"kind": "nobody.knows", "slot": "s"}, "/kind"),
        ("effects", {}, {"kind": "nobody.knows", "slot": "a b"}, "/slot"),
        ("effects", {}, {"kind": "k", "slot": "s", "grant_id": "x"}, "/grant_id"),
    ],
)
@pytest.mark.looks_alike
def test_bad_bodies_are_told_what_is_wrong_and_change_nothing(remote, verb, change, extra, pointer):
    lease = remote.take()["lease"]
    before = Job.objects.values().get(pk=lease["job_id"])
    body = {"lease": lease | change, **extra}
    answer = remote.send(body, f"/leases/{lease['attempt_id']}/{verb}")
    assert answer.status_code == 400, answer.content
    problem = answer.json()
    assert (problem["outcome"], problem["errors"][0]["pointer"]) == ("not_started", pointer)
    assert Job.objects.values().get(pk=lease["job_id"]) == before


@pytest.mark.parametrize("raw", [b"[" * 10_000, b"\xff", b"{}", b"[]", b"null", b'{"lease": "\\u0000"}'])
@pytest.mark.parametrize(
    "path", ["/leases/renew", "/leases/commit", "/leases/x/commit", "/effects/x/report", "/claims"]
)
@pytest.mark.looks_alike
def test_what_is_hardly_a_body_is_refused(remote, raw, path):
    assert remote.send(raw, path).status_code == 400


def test_a_batch_of_too_many_is_refused_with_the_limit(remote):
    lease = remote.take()["lease"]
    answer = remote.send({"leases": [lease] * 501}, "/leases/renew")
    assert answer.status_code == 400
    assert "500" in answer.json()["errors"][0]["detail"]


def test_a_lease_of_a_job_that_never_was_is_fenced(remote):
    lease = remote.take()["lease"] | {"job_id": "00000000-0000-0000-0000-000000000000"}
    assert refused(remote.do(lease, "commit", result=1))[1] == "NOT_FOUND"
    assert refused(remote.do(lease, "release"))[1] == "NOT_FOUND"
