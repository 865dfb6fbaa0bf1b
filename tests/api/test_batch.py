"""POST /jobs/batch: all or none, each answered in its place; and one key stands for the same batch again."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from django.db import OperationalError

from jobs.models import Job
from jobs.verbs.enqueue import BATCH
from tests import build
from tests.api.caller import EVERY_SCOPE, Api, secret
from tests.build import KIND


def send(api, jobs, **more):
    return api.send({"jobs": jobs}, "/jobs/batch", **more)


def item(**more):
    return {"kind": KIND, **more}


def outcomes(answer):
    assert answer.status_code == 200, answer.content
    return [result["result"] for result in answer.json()["results"]]


def test_tags_of_each_item_are_its_own_and_a_bad_one_is_named_by_its_place(api):
    answer = send(api, [item(tags=["vip"]), item(), item(tags=["vip", "eu"]), item(tags=["vip"])])
    ids = [result["id"] for result in answer.json()["results"]]
    assert [Job.objects.get(pk=i).tag_list for i in ids] == [["vip"], [], ["vip", "eu"], ["vip"]]
    refused = send(api, [item(tags=["vip"]), item(tags=["a b"])])
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/jobs/1/tags"]


def test_every_item_is_answered_in_its_place(api):
    held = build.enqueue({"n": 1}, unique_key="held", queue="mail")
    answer = send(
        api,
        [
            item(arguments={"n": 5}),
            item(arguments={"n": 1}, unique_key="held"),
            item(arguments={"n": 2}, unique_key="held"),
            item(unique_key="new"),
            item(unique_key="new"),
        ],
    )
    assert outcomes(answer) == ["created", "existing", "conflict", "created", "existing"]
    told = answer.json()["results"]
    assert [told[1]["id"], told[2]["id"]] == [str(held)] * 2
    assert told[2]["differing"] == ["/arguments/n"]
    assert told[3]["id"] == told[4]["id"]
    assert answer.json()["created"] == 2
    assert Job.objects.count() == 3
    assert Job.objects.get(pk=told[0]["id"]).arguments == {"n": 5}


def test_one_bad_item_and_nothing_is_enqueued(api):
    for bad, pointer in [
        ({"kind": 5}, "/jobs/1/kind"),
        ({"kind": "no.such"}, "/jobs/1/kind"),
        (item(priority=101), "/jobs/1/priority"),
        (item(x=1), "/jobs/1/x"),
        (item(arguments={"a": "\0"}), ""),
        (item(queue="a/b"), "/jobs/1/queue"),
        ("text", "/jobs/1"),
    ]:
        answer = send(api, [item(), bad])
        assert answer.status_code == 400, bad
        pointers = [error["pointer"] for error in answer.json()["errors"]]
        assert any(found.startswith(pointer) for found in pointers), (pointers, bad)
    assert not Job.objects.exists()


@pytest.mark.parametrize("jobs", [[], {}, None, "x", [[]]])
def test_list_that_is_none_is_refused(api, jobs):
    assert api.send({"jobs": jobs}, "/jobs/batch").status_code == 400


ITEMS = [
    item(),
    item(arguments={"n": 1.5, "é": [None, True]}, label="one"),
    item(arguments=None, priority=7, queue=None),
    item(priority=7, arguments={"n": 2}),
    item(arguments={"n": 3}, queue="mail", max_attempts=3, due_at="2030-01-01T00:00:00Z"),
    item(max_attempts=3, queue="mail", due_at="2030-01-01T01:00:00+01:00"),
    item(unique_key="a", arguments={"n": 4}),
    item(unique_key="b", unique_scope="ever", deadline_at="2031-01-01T00:00:00Z"),
    item(unique_key="c", arguments={"n": 4}),
]
BAD = [
    item(priority=101),
    item(unique_key="c", unique_scope="x", delay=-1),
    item(unique_scope="ever"),
    item(unique_key=""),
    item(unique_key="idempotency:x"),
    item(unique_key="k" * 201),
    item(delay=1, due_at="2030-01-01T00:00:00Z"),
    item(arguments=[]),
    item(arguments={"n": 2**53}),
    item(queue="a/b", label=5, other=1),
    {"kind": "no.such"},
    {"kind": ""},
    {},
]


def test_items_become_the_jobs_that_they_become_alone(api):
    told = ["id", "created_at", "ready_at", "next_attempt_at", "unique_key"]

    def rows(ids):
        kept = {str(row["id"]): row for row in Job.objects.filter(pk__in=ids).values()}
        return [{k: v for k, v in kept[one].items() if k not in told or v is None} for one in ids]

    alone = [
        api.send({**one, "unique_key": f"alone {one['unique_key']}"} if "unique_key" in one else one)
        for one in ITEMS
    ]
    batch = send(api, ITEMS)
    assert outcomes(batch) == ["created"] * len(ITEMS)
    ids = [result["id"] for result in batch.json()["results"]]
    assert rows(ids) == rows([one.json()["id"] for one in alone])
    assert [Job.objects.get(pk=one).unique_key for one in ids] == [one.get("unique_key") for one in ITEMS]


def test_bad_items_are_refused_in_the_words_in_which_they_are_refused_alone(api):
    for bad in BAD:
        alone = api.send(bad)
        batch = send(api, [*ITEMS, bad, ITEMS[0]])
        assert (batch.status_code, batch.json()["code"]) == (alone.status_code, alone.json()["code"])
        place = f"/jobs/{len(ITEMS)}"
        placed = [{**error, "pointer": place + error["pointer"]} for error in alone.json()["errors"]]
        assert batch.json()["errors"] == placed, bad
    assert not Job.objects.exists()


def test_a_thousand_go_in_at_once_and_one_more_does_not(api):
    assert send(api, [item()] * (BATCH + 1)).status_code == 400
    assert set(outcomes(send(api, [item()] * BATCH))) == {"created"}
    assert Job.objects.count() == BATCH


def test_same_key_again_gives_the_same_jobs(api):
    jobs = [item(arguments={"n": n}) for n in range(3)]
    first = send(api, jobs, HTTP_IDEMPOTENCY_KEY="batch 7")
    again = send(api, jobs, HTTP_IDEMPOTENCY_KEY="batch 7")
    assert (outcomes(first), outcomes(again)) == (["created"] * 3, ["existing"] * 3)
    assert [r["id"] for r in first.json()["results"]] == [r["id"] for r in again.json()["results"]]
    other = send(api, [jobs[0], item(arguments={"n": 9}), jobs[2]], HTTP_IDEMPOTENCY_KEY="batch 7")
    assert outcomes(other) == ["existing", "conflict", "existing"]
    assert Job.objects.count() == 3


def test_token_limited_to_queues_enqueues_and_learns_of_no_other(db):
    api = Api(secret(*EVERY_SCOPE, queues=("mail",)))
    build.enqueue({"n": 1}, unique_key="held", queue="default")
    assert send(api, [item(queue="mail"), item(queue="default")]).status_code == 403
    assert Job.objects.count() == 1
    answer = send(api, [item(queue="mail", unique_key="held", arguments={"n": 2})])
    assert answer.json()["results"] == [{"result": "conflict", "id": None}]


def test_batch_has_a_limit_of_its_own(api, settings):
    settings.INTERLOCK = settings.INTERLOCK | {"BODY_BYTES": 1024, "BATCH_BYTES": 4096}
    assert outcomes(send(api, [item(arguments={"t": "x" * 2000})])) == ["created"]
    assert send(api, [item(arguments={"t": "x" * 5000})]).status_code == 413


def test_answer_that_was_lost_after_the_insert_is_given_again_for_the_same_key(api, monkeypatch):
    """The jobs are committed and the answer is not: the client hears `unknown`, and asks again."""
    jobs = [item(arguments={"n": n}) for n in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr("jobs.api.batch.Response", Mock(side_effect=OperationalError("connection lost")))
        lost = send(api, jobs, HTTP_IDEMPOTENCY_KEY="k")
    assert (lost.status_code, lost.json()["outcome"], lost.json()["retryable"]) == (503, "unknown", True)
    assert outcomes(send(api, jobs, HTTP_IDEMPOTENCY_KEY="k")) == ["existing"] * 3
    assert Job.objects.count() == 3
