"""When the client sends a request again, and when a worker may not send any more."""

import json
import os
import threading
from contextlib import nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from interlock_client import Client, Context, KeyConflict, LeaseLost, NoAnswer, Problem, Worker
from interlock_client.leases import Claimed, boottime

JOB = {"id": "01a229c6-9e32-76b0-82e6-b289b2f5caef", "status": "pending", "state_version": 1}
DROP = None
"""In place of an answer: the connection is closed, and nobody knows."""


class Server(ThreadingHTTPServer):
    """A server that answers what it was told to, one after the other."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Network)
        self.answers: list[Any] = []
        self.keys: list[str | None] = []
        self.traces: list[str | None] = []
        self.ports: set[int] = set()
        """Of those who asked: one for each connection."""
        self.url = f"http://127.0.0.1:{self.server_port}"


class Network(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.ports.add(self.client_address[1])
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.server.traces.append(self.headers["traceparent"])
        answer = self.server.answers.pop(0)
        if answer is DROP:
            self.close_connection = True
            return
        status, body = answer
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_words):
        pass


class Lasting(Network):
    """One request after the other on one connection."""

    protocol_version = "HTTP/1.1"


@pytest.fixture
def network():
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def problem(code, outcome, *, retryable):
    return {"code": code, "outcome": outcome, "retryable": retryable}


BUSY = (503, problem("unavailable", "unknown", retryable=True))
NOT_YET = (429, problem("throttled", "not_started", retryable=True))


PAGE = b"<html>the proxy's own words</html>"
PROXY = [(429, PAGE), (502, PAGE), (503, PAGE), (504, PAGE), (200, PAGE)]
"""Answers of what stands in between, while the server behind it is away."""


@pytest.mark.parametrize("first", [DROP, BUSY, NOT_YET, *PROXY])
def test_an_enqueue_is_sent_again_under_its_key(network, first):
    network.answers = [first, (201, JOB)]
    with Client(network.url, "t") as client:
        assert client.enqueue("k").status == "pending"
    assert len(network.keys) == 2
    assert len(set(network.keys)) == 1


@pytest.mark.parametrize(
    ("first", "requests"), [(DROP, 1), (BUSY, 1), (NOT_YET, 2)], ids=["dropped", "unknown", "not started"]
)
def test_what_could_be_done_twice_is_sent_again_only_where_nothing_was_done(network, first, requests):
    network.answers = [first, (200, {})]
    refused = pytest.raises((NoAnswer, Problem)) if requests == 1 else nullcontext()
    with Client(network.url, "t") as client, refused:
        client.transport.send("POST", "x", {}, repeatable=False)
    assert len(network.keys) == requests


def test_a_server_that_says_to_come_again_at_once_is_not_asked_without_a_pause(network):
    network.answers = [NOT_YET] * 1000
    with Client(network.url, "t", patience=0.5) as client, pytest.raises(Problem):
        client.enqueue("k")
    assert len(network.keys) < 20


def test_what_is_refused_for_good_is_not_sent_again(network):
    network.answers = [(409, problem("key-conflict", "not_started", retryable=False))]
    with Client(network.url, "t") as client, pytest.raises(KeyConflict):
        client.enqueue("k")


def test_a_forked_process_has_connections_of_its_own(network):
    network.answers = [(200, JOB)] * 2
    network.RequestHandlerClass = Lasting
    with Client(network.url, "t") as client:
        client.enqueue("k")
        child = os.fork()
        if child == 0:
            status = 1
            with suppress(BaseException):
                client.enqueue("k")
                status = 0
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(network.ports) == 2


def test_a_key_that_is_empty_is_not_replaced_by_one_that_nobody_knows(network):
    network.answers = [(400, problem("invalid-header", "not_started", retryable=False))]
    with Client(network.url, "t") as client, pytest.raises(Problem):
        client.enqueue("k", key="")
    assert network.keys == [""]


@pytest.mark.parametrize("first", [DROP, BUSY, *PROXY])
def test_a_file_is_sent_again_as_a_whole(network, tmp_path, first):
    (tmp_path / "f").write_bytes(b"x")
    network.answers = [first, (201, {"key": "f"})]
    with Client(network.url, "t") as client:
        assert client.transport.upload("leases/a/artefacts", tmp_path / "f", {"name": "f"}) == {"key": "f"}
    assert len(network.keys) == 2


@pytest.mark.parametrize("first", [DROP, BUSY, *PROXY])
def test_a_worker_outlasts_a_server_that_is_away(network, first):
    network.answers = [first]
    with Client(network.url, "t") as client:
        worker = Worker(client, queues=["q"], kinds=[])
        worker.stop()  # so that it does not pause before it would ask again
        worker._claim()
    assert worker.ended is None


def test_a_worker_that_has_lost_a_loop_says_so_and_ends(network, monkeypatch):
    network.answers = [(200, {"leases": [], "retry_after": None, "waited": 0.0})] * 50

    def broken(_worker):
        raise KeyError("results")

    monkeypatch.setattr(Worker, "_renew", broken)
    with Client(network.url, "t") as client, pytest.raises(KeyError, match="results"):
        Worker(client, queues=["q"], kinds=[]).run()


def test_nobody_listening_is_known_to_be_not_started(network):
    network.shutdown()
    network.server_close()
    with Client(network.url, "t", patience=0) as client, pytest.raises(NoAnswer) as failed:
        client.enqueue("k")
    assert failed.value.outcome == "not_started"


@pytest.mark.parametrize("trace", [f"00-{'a' * 32}-{'b' * 16}-01", ""])
def test_what_is_said_of_one_job_is_said_in_its_trace(network, tmp_path, trace):
    (tmp_path / "f").write_bytes(b"x")
    lease, end = {"attempt_id": "a", "claim_generation": 1}, boottime() + 60
    one = Claimed(lease, "k", {}, 60, 1, 1, None, None, surely_ends=end, traceparent=trace)
    network.answers = [(200, {"status": "pending"}), (200, {}), (201, {"key": "f"})]
    with Client(network.url, "t") as client:
        worker = Worker(client, queues=["q"], kinds=[])
        worker.leases.end(one, "release")
        Context(worker, one).post("leases/a/effects", {})
        Context(worker, one).upload(tmp_path / "f")
    assert network.traces == [trace or None] * 3


def test_a_lease_that_has_surely_ended_stops_its_handler_before_anything_is_sent(network):
    lease = {"attempt_id": "a", "claim_generation": 1}
    one = Claimed(lease, "k", {}, 60, 1, 1, None, None, surely_ends=boottime() - 0.001)
    with Client(network.url, "t") as client:
        ctx = Context(Worker(client, queues=["q"], kinds=[]), one)
        with pytest.raises(LeaseLost, match="LEASE_EXPIRED"):
            ctx.checkpoint()
    assert network.keys == []
