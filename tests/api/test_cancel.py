"""POST /jobs/{id}/cancel: says what is true, and writes nothing where it is refused."""

import pytest

from jobs.models import Change, Job
from jobs.status import JobStatus
from tests import build
from tests.build import enqueue

DONE = {JobStatus.PENDING, JobStatus.BLOCKED, JobStatus.WAITING, JobStatus.CANCELLED}
REQUESTED = {JobStatus.RUNNING, JobStatus.UNCERTAIN}


@pytest.mark.parametrize("status", JobStatus)
def test_answer_is_the_true_state(api, status):
    job_id = build.id_of(build.job(status))
    before = build.row(job_id), Change.objects.count()
    answer = api.send({"reason": "wrong letter"}, f"/jobs/{job_id}/cancel")
    after = build.row(job_id)
    if status in DONE:
        assert (answer.status_code, answer.json()["cancel"]) == (200, "cancelled")
        assert after["status"] == answer.json()["status"] == "cancelled"
    elif status in REQUESTED:
        assert (answer.status_code, answer.json()["cancel"]) == (202, "requested")
        assert after["status"] == answer.json()["status"] == status
        assert (after["cancel_generation"], after["cancel_reason"]) == (1, "wrong letter")
        assert after["cancel_requested_by"] == "owner by token ci"
    else:
        assert (answer.status_code, answer.json()["code"]) == (409, "already-ended")
        assert answer.json()["params"]["status"] == status
        assert (after, Change.objects.count()) == before


def test_second_request_changes_nothing_more(api):
    lease = build.running()
    path = f"/jobs/{build.id_of(lease)}/cancel"
    api.send({"reason": "one"}, path)
    once = build.row(lease)
    assert api.send({"reason": "two"}, path).status_code == 202
    assert build.row(lease) == once


def test_cancel_reaches_the_children(api):
    parent = enqueue()
    child = enqueue(parent_id=parent)
    api.send({"reason": "r"}, f"/jobs/{parent}/cancel")
    assert build.row(child)["status"] == "cancelled"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": " \n"},
        {"reason": "r" * 1001},
        {"reason": 1},
        {"reason": None},
        {"reason": "\0"},
    ],
    ids=str,
)
def test_reason_must_be_given(api, body):
    job_id = enqueue()
    answer = api.send(body, f"/jobs/{job_id}/cancel")
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/reason"]
    assert build.row(job_id)["status"] == "pending"


def test_longest_reason_is_kept(api):
    job_id = enqueue()
    assert api.send({"reason": "é" * 1000}, f"/jobs/{job_id}/cancel").status_code == 200
    assert Change.objects.latest("id").reason == "é" * 1000


def test_force_is_not_to_be_had_by_a_misspelt_member(api):
    lease = build.running()
    assert api.send({"reason": "r", "force": True}, f"/jobs/{build.id_of(lease)}/cancel").status_code == 400
    assert Job.objects.get(pk=build.id_of(lease)).cancel_requested_at is None
