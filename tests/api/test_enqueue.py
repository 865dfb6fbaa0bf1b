"""POST /jobs: a job from outside, once for each key."""

import uuid
from datetime import UTC, datetime

import pytest

from jobs import handlers
from jobs.models import Job
from tests.api.caller import EVERY_SCOPE, ROOT, Api, secret
from tests.build import KIND, at, claim, enqueue


def pointers(answer):
    return [error["pointer"] for error in answer.json()["errors"]]


def test_job_is_created_as_asked(api):
    parent = enqueue()
    answer = api.send(
        {
            "kind": KIND,
            "arguments": {"n": 1},
            "queue": "mail",
            "priority": 7,
            "due_at": "2030-01-01T01:00:00+01:00",
            "deadline_at": "2031-01-01T00:00:00Z",
            "unique_key": "k",
            "unique_scope": "ever",
            "label": "Ünïcode",
            "parent_id": str(parent),
            "max_attempts": 3,
        }
    )
    assert answer.status_code == 201
    body = answer.json()
    assert answer["Location"] == f"{ROOT}/jobs/{body['id']}"
    job = Job.objects.get(pk=body["id"])
    assert (job.kind, job.arguments, job.queue, job.priority) == (KIND, {"n": 1}, "mail", 7)
    assert (job.unique_key, job.unique_scope, job.label, job.parent_id) == ("k", "ever", "Ünïcode", parent)
    assert (job.next_attempt_at, job.deadline_at, job.max_attempts) == (
        datetime(2030, 1, 1, tzinfo=UTC),
        datetime(2031, 1, 1, tzinfo=UTC),
        3,
    )
    assert job.enqueued_by == "owner by token ci"
    assert body["status"] == "pending"
    assert body["created"] is True


def test_tags_are_kept_and_told(api):
    answer = api.send({"kind": KIND, "tags": ["vip", "eu", "vip"]})
    assert answer.json()["tags"] == ["vip", "eu"]
    assert api.look(f"/jobs/{answer.json()['id']}").json()["tags"] == ["vip", "eu"]
    assert api.look("/jobs?tag=eu").json()["results"][0]["tags"] == ["vip", "eu"]
    assert api.send({"kind": KIND}).json()["tags"] == []


def test_same_key_with_other_tags_is_the_same_job(api):
    body = {"kind": KIND, "unique_key": "k"}
    first = api.send(body | {"tags": ["vip"]})
    again = api.send(body | {"tags": ["eu"]})
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert again.json()["tags"] == ["vip"]


@pytest.mark.parametrize(
    ("tags", "pointer"),
    [
        ("vip", "/tags"),
        (["a b"], "/tags"),
        (["a,b"], "/tags"),
        ([""], "/tags"),
        (["x" * 51], "/tags/0"),
        (["x", 1], "/tags/1"),
        ([f"t{n}" for n in range(21)], "/tags"),
    ],
)
def test_bad_tags_are_named(api, tags, pointer):
    answer = api.send({"kind": KIND, "tags": tags})
    assert (answer.status_code, pointers(answer)) == (422, [pointer]) or answer.status_code == 400
    assert pointers(answer) == [pointer]
    assert not Job.objects.exists()


def test_delay_and_deadline_count_from_now(api):
    job = Job.objects.get(pk=api.send({"kind": KIND, "delay": 60, "deadline": 90.5}).json()["id"])
    assert (job.next_attempt_at - job.created_at).total_seconds() == pytest.approx(60)
    assert (job.deadline_at - job.created_at).total_seconds() == pytest.approx(90.5)


def test_null_is_the_same_as_not_given(api):
    assert api.send({"kind": KIND, "queue": None, "arguments": None}).json()["queue"] == "default"


@pytest.mark.parametrize("send", ["header", "body"])
def test_second_request_with_a_key_finds_the_job_of_the_first(api, send):
    def ask(arguments):
        key = {"headers": {"idempotency-key": "a-key"}} if send == "header" else {}
        return api.send(
            {"kind": KIND, "arguments": arguments} | ({} if key else {"unique_key": "a-key"}), **key
        )

    first, second = ask({"a": 1, "b": [1, 2]}), ask({"b": [1, 2], "a": 1})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["created"] is False
    assert first.json()["id"] == second.json()["id"]
    third = ask({"a": 1, "b": [1, 3], "c/d": None})
    assert third.status_code == 409
    problem = third.json()
    assert problem["code"] == "key-conflict"
    assert problem["job_id"] == first.json()["id"]
    assert problem["differing"] == ["/arguments/b/1", "/arguments/c~1d"]
    assert (problem["retryable"], problem["outcome"]) == (False, "not_started")
    assert Job.objects.count() == 1


def test_idempotency_key_holds_after_the_job_has_ended(api):
    def ask():
        return api.send({"kind": KIND}, headers={"idempotency-key": "a-key"}).json()["id"]

    first = ask()
    Job.objects.cancel(uuid.UUID(first), actor="me")
    assert ask() == first


def test_idempotency_keys_of_two_tokens_are_two_keys(api):
    other = Api(secret(*EVERY_SCOPE))
    ids = {
        caller.send({"kind": KIND}, headers={"idempotency-key": "k"}).json()["id"] for caller in (api, other)
    }
    assert len(ids) == 2


def test_key_in_header_and_body_must_be_the_same(api):
    def ask(key):
        return api.send({"kind": KIND, "unique_key": key}, headers={"idempotency-key": "k"})

    assert ask("other").json()["errors"][0]["header"] == "Idempotency-Key"
    assert ask("k").json()["unique_key"] == "k"


def test_body_cannot_take_a_key_of_another_callers_header(api):
    api.send({"kind": KIND}, headers={"idempotency-key": "k"})
    taken = Job.objects.get().unique_key
    assert pointers(api.send({"kind": KIND, "unique_key": taken})) == ["/unique_key"]


def test_conflict_shows_nothing_of_a_job_beyond_the_tokens_queues(api):
    api.send({"kind": KIND, "queue": "secret", "unique_key": "k", "arguments": {"n": 1}})
    narrow = Api(secret(*EVERY_SCOPE, queues=("default",)))
    for arguments in ({"n": 1}, {"n": 2}):
        answer = narrow.send({"kind": KIND, "unique_key": "k", "arguments": arguments})
        assert answer.status_code == 409
        assert "job_id" not in answer.json()
        assert "differing" not in answer.json()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/kind"),
        ({"kind": 5}, "/kind"),
        ({"kind": ""}, "/kind"),
        ({"kind": "not known"}, "/kind"),
        ({"kind": "tests.stranger"}, "/kind"),
        ({"kind": KIND, "argumens": {}}, "/argumens"),
        ({"kind": KIND, "arguments": []}, "/arguments"),
        ({"kind": KIND, "arguments": {"a": {"b": 2**53}}}, "/arguments/a/b"),
        ({"kind": KIND, "queue": "a/b"}, "/queue"),
        ({"kind": KIND, "queue": ""}, "/queue"),
        ({"kind": KIND, "queue": "q" * 101}, "/queue"),
        ({"kind": KIND, "priority": "5"}, "/priority"),
        ({"kind": KIND, "priority": True}, "/priority"),
        ({"kind": KIND, "priority": 1.0}, "/priority"),
        ({"kind": KIND, "priority": 101}, "/priority"),
        ({"kind": KIND, "priority": 10**30}, "/priority"),
        ({"kind": KIND, "max_attempts": 0}, "/max_attempts"),
        ({"kind": KIND, "delay": -1}, "/delay"),
        ({"kind": KIND, "delay": 10**12}, "/delay"),
        ({"kind": KIND, "delay": 1, "due_at": "2030-01-01T00:00:00Z"}, "/delay"),
        ({"kind": KIND, "due_at": "2030-01-01"}, "/due_at"),
        ({"kind": KIND, "due_at": "2030-01-01T00:00:00"}, "/due_at"),
        ({"kind": KIND, "due_at": "2026-02-30T00:00:00Z"}, "/due_at"),
        ({"kind": KIND, "due_at": "0001-01-01T00:00:00+14:00"}, "/due_at"),
        ({"kind": KIND, "due_at": "9999-12-31T23:59:59-12:00"}, "/due_at"),
        ({"kind": KIND, "deadline_at": 1893456000}, "/deadline_at"),
        ({"kind": KIND, "unique_key": ""}, "/unique_key"),
        ({"kind": KIND, "unique_key": "k" * 201}, "/unique_key"),
        ({"kind": KIND, "unique_key": "k", "unique_scope": "always"}, "/unique_scope"),
        ({"kind": KIND, "unique_scope": "ever"}, "/unique_scope"),
        ({"kind": KIND, "label": "l" * 201}, "/label"),
        ({"kind": KIND, "parent_id": "{" + "0" * 32 + "}"}, "/parent_id"),
        ({"kind": KIND, "parent_id": str(uuid.UUID(int=0))}, "/parent_id"),
    ],
    ids=lambda value: str(value)[:60],
)
@pytest.mark.looks_alike
def test_wrong_member_is_named(api, body, pointer):
    answer = api.send(body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert pointers(answer) == [pointer]
    assert not Job.objects.exists()


def test_every_wrong_member_is_named_at_once(api):
    assert sorted(pointers(api.send({"kind": 1, "priority": "x", "delay": "x"}))) == [
        "/delay",
        "/kind",
        "/priority",
    ]


def test_longest_values_round_trip(api):
    body = {"kind": KIND, "queue": "q" * 100, "unique_key": "é" * 200, "label": "𝄞" * 200}
    answer = api.send(body)
    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in body} == body


def test_arguments_must_fit_the_signature_even_when_they_are_named_as_ours(api):
    @handlers.job("tests.strict")
    def strict(ctx, n):
        pass

    for arguments in ({}, {"m": 1}, {"n": 1, "self": 1}, {"n": 1, "args": 1}):
        answer = api.send({"kind": "tests.strict", "arguments": arguments})
        assert (answer.status_code, pointers(answer)) == (400, ["/arguments"])


def test_label_that_cannot_be_made_is_left_empty(api):
    @handlers.job("tests.labelled", label="{n:>10}")
    def labelled(n):
        pass

    assert api.send({"kind": "tests.labelled", "arguments": {"n": None}}).json()["label"] == ""


def test_kind_of_a_live_worker_elsewhere_is_known(api):
    from jobs.ledger import worker
    from jobs.ledger.session import transact
    from jobs.vocabulary import JOB

    def register(now):
        values = {
            "host": "h",
            "pid": 1,
            "boot_id": "",
            "pid_namespace": "",
            "pid_started": None,
            "version": "",
            "concurrency": 1,
            "epoch": 1,
        }
        transact(
            lambda s: worker.register(
                s, id=f"h:1:{now}", queues=["default"], kinds=["elsewhere.kind"], **values
            ),
            using="default",
            vocabulary=JOB,
            now=now,
            durable=False,
        )

    assert api.send({"kind": "elsewhere.kind"}).status_code == 400
    register(at(0))  # long silent
    assert api.send({"kind": "elsewhere.kind"}).status_code == 400
    register(None)
    assert api.send({"kind": "elsewhere.kind"}).status_code == 201


def test_job_that_was_added_while_its_kind_was_known_is_told_of_again_by_its_key(api):
    @handlers.job("tests.leaving")
    def leaving(**arguments):
        pass

    body, key = {"kind": "tests.leaving", "arguments": {"n": 1}}, {"HTTP_IDEMPOTENCY_KEY": "k"}
    first = api.send(body, **key)
    many = api.send({"jobs": [body, body]}, "/jobs/batch", **key).json()["results"]
    handlers.forget("tests.leaving")
    again = api.send(body, **key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    told = api.send({"jobs": [body, body]}, "/jobs/batch", **key).json()["results"]
    assert told == [{"result": "existing", "id": one["id"]} for one in many]
    # What is new is refused as before, also in one batch with what is not.
    assert api.send(body).status_code == 400
    assert api.send(body, HTTP_IDEMPOTENCY_KEY="other").status_code == 400
    more = api.send({"jobs": [body, body, body, body]}, "/jobs/batch", **key)
    assert [error["pointer"] for error in more.json()["errors"]] == ["/jobs/2/kind", "/jobs/3/kind"]
    assert Job.objects.count() == 3


def test_child_of_a_cancelled_parent_is_refused(api):
    parent = enqueue()
    Job.objects.cancel(parent, actor="me")
    answer = api.send({"kind": KIND, "parent_id": str(parent)})
    assert (answer.status_code, answer.json()["code"]) == (409, "parent-cancelled")


def test_claimed_job_came_through_the_same_door(api):
    job_id = uuid.UUID(api.send({"kind": KIND, "arguments": {"n": 1}}).json()["id"])
    assert claim(job_id, now=datetime.now(UTC)).input == '{"n":1}'
