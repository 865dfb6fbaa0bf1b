"""One key from many clients at once, through a real server: one job, and no error that is ours."""

import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from jobs.models import Job
from tests.api.caller import EVERY_SCOPE, ROOT, secret
from tests.build import KIND

CLIENTS = 20


class Server:
    """Sends requests to a live server, each over a connection of its own."""

    def __init__(self, url, token):
        self.address = urlsplit(url)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path, body, **headers):
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=60)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST", ROOT + path, json.dumps(body), self.headers | sent)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def together(self, calls):
        """Send all at the same moment; returns the answers in the order of the calls."""
        gate = threading.Barrier(len(calls))
        answers = [None] * len(calls)

        def send(number, call):
            gate.wait()
            answers[number] = self.post(*call[0], **call[1])

        threads = [threading.Thread(target=send, args=pair) for pair in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers


@pytest.fixture
def server(transactional_db, live_server):
    return Server(live_server.url, secret(*EVERY_SCOPE))


def test_parallel_requests_with_one_key_make_one_job(server):
    calls = [(("/jobs", {"kind": KIND, "arguments": {"n": 1}}), {"Idempotency_Key": "same"})] * CLIENTS
    answers = server.together(calls)
    assert sorted(status for status, _ in answers) == [200] * (CLIENTS - 1) + [201]
    assert {body["id"] for _, body in answers} == {str(Job.objects.get().id)}


def test_parallel_requests_with_one_key_and_other_inputs_make_one_job(server):
    calls = [
        (("/jobs", {"kind": KIND, "arguments": {"n": n % 4}}), {"Idempotency_Key": "same"})
        for n in range(CLIENTS)
    ]
    answers = server.together(calls)
    job = Job.objects.get()
    for (status, body), call in zip(answers, calls, strict=True):
        if call[0][1]["arguments"] == job.arguments:
            assert status in (200, 201)
            assert body["id"] == str(job.id)
        else:
            assert status == 409
            assert (body["job_id"], body["differing"]) == (str(job.id), ["/arguments/n"])
    assert [status for status, _ in answers].count(201) == 1


def test_two_clicks_on_cancel_are_one_request(server):
    _, job = server.post("/jobs", {"kind": KIND})
    answers = server.together([((f"/jobs/{job['id']}/cancel", {"reason": "r"}), {})] * 4)
    assert [(status, body["cancel"]) for status, body in answers] == [(200, "cancelled")] * 4
    assert Job.objects.get().state_version == 2


def test_parallel_batches_with_one_key_make_each_job_once(server):
    jobs = [{"kind": KIND, "arguments": {"n": n}} for n in range(20)]
    answers = server.together([(("/jobs/batch", {"jobs": jobs}), {"Idempotency_Key": "same"})] * 6)
    assert [status for status, _ in answers] == [200] * 6
    told = [[result["id"] for result in body["results"]] for _, body in answers]
    assert all(ids == told[0] for ids in told)
    assert sum(body["created"] for _, body in answers) == Job.objects.count() == len(jobs)
