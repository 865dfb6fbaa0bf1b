"""What the payment service does with what it should never have been sent."""

import json
import os
import select
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from demo.provider.charge import Order
from demo.provider.message import Refused, Request
from tests.provider import ROOT, Provider

ORDER = {"account": "acme", "amount": "12.50", "currency": "EUR", "invoice": "INV-1"}


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """One service for all of them: none may harm the next."""
    with Provider.running(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture(autouse=True)
def _unharmed(provider):
    yield
    assert provider.ledger()["count"] == 0


def spoken(provider, sent: bytes) -> bytes:
    """Send bytes as they are and hang up; return what was answered."""
    address = urlsplit(provider.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answered = b""
        try:
            while part := connection.recv(65536):
                answered += part
        except ConnectionResetError:
            pass
        return answered


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"account": ""}, "account"),
        ({"account": 7}, "account"),
        ({"account": "a\0b"}, "account"),
        ({"invoice": "\ud800"}, "invoice"),
        ({"invoice": "x" * 201}, "invoice"),
        ({"amount": 12.5}, "amount"),
        ({"amount": "0.00"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "1e9"}, "amount"),
        ({"amount": "NaN"}, "amount"),
        ({"amount": "١"}, "amount"),
        ({"currency": "eur"}, "currency"),
        ({"currency": None}, "currency"),
        ({"digest": ["x"]}, "digest"),
        ({"tip": "1"}, "tip"),
    ],
)
def test_invalid_field_is_named(change, field):
    body = json.dumps(ORDER | change).encode()
    with pytest.raises(Refused) as refusal:
        Order.read(Request("POST", "/charges", {}, {}, body))
    assert refusal.value.status == 422
    assert json.loads(refusal.value.answer.encoded())["field"] == field


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"amount": NaN}', b"[" * 60_000, b"9" * 9000])
def test_body_that_is_no_object_is_refused(provider, body):
    reply = provider.call("POST", "charges", body, {"Idempotency-Key": "k-1"})
    assert (reply.status, reply.json["field"]) == (422, "body")


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "\u00e9"])
def test_charge_without_a_usable_key_is_refused(provider, key):
    assert provider.charge(key).code == "key_required"


@pytest.mark.parametrize("token", ["-1", "1.5", "x", "9" * 19])
def test_token_that_is_no_integer_is_refused(provider, token):
    reply = provider.call("POST", "charges", ORDER, {"Idempotency-Key": "k", "Fencing-Token": token})
    assert reply.code == "token_invalid"


def test_body_beyond_the_limit_is_refused_with_a_sentence(provider):
    reply = provider.call("POST", "charges", b" " * (64 * 1024 + 1), {"Idempotency-Key": "k-1"})
    assert (reply.status, reply.code) == (413, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nowhere", 404),
        ("GET", "charges", 400),
        ("GET", "charges/", 404),
        ("GET", "charges/ch_0", 404),
        ("GET", "charges?key=%00", 404),
        ("GET", "charges?key=%ff", 404),
        ("GET", "charges?" + "&".join(["a=b"] * 50), 400),
        ("GET", "faults?wait=-1", 400),
        ("GET", "resources/nothing", 404),
        ("DELETE", "charges", 405),
        ("PATCH", "charges", 501),
        ("POST", "faults", 422),
    ],
)
def test_wrong_address_or_method_is_answered_in_json(provider, method, path, status):
    reply = provider.call(method, path, b"")
    assert reply.status == status
    assert reply.code


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\0\xff\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
        (b"POST /charges HTTP/1.1\r\n\r\n", b"411"),
        (b"POST /charges HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (b"POST /charges HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /charges HTTP/1.1\r\nContent-Length: 9999999999999999999999\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_http_is_refused(provider, sent, status):
    answered = spoken(provider, sent)
    # The kernel may discard the answer when more was sent than was read.
    assert not answered or answered.split()[1] == status
    assert b"Traceback" not in answered


def test_half_a_body_charges_nothing(provider):
    body = json.dumps(ORDER).encode()
    head = b"POST /charges HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1)
    assert spoken(provider, head + body) == b""


def test_silent_connections_do_not_stop_it(provider):
    address = urlsplit(provider.url)
    silent = [socket.create_connection((address.hostname, address.port), timeout=30) for _ in range(50)]
    try:
        assert provider.ledger()["count"] == 0
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--mode", "keys=maybe"], "is no mode"),
        (["--fault", "dorp"], "kind must be one of"),
        (["--port", "70000"], "invalid choice"),
        (["--host", "192.0.2.1"], "cannot be listened on"),
        (["--ledger", "/nowhere/at/all"], "cannot be opened"),
    ],
)
def test_wrong_option_ends_it_with_a_sentence(tmp_path, option, sentence):
    command = [sys.executable, "-m", "demo.provider", "--ledger", str(tmp_path / "l"), *option]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_it_ends_with_its_parent(tmp_path):
    """A parent starts it, waits for its first line, tells us its number and is killed."""
    script = (
        "import subprocess, sys;"
        "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True);"
        "p.stdout.readline(); print(p.pid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-m", "demo.provider", "--ledger", str(tmp_path / "l"), "--with-parent"]
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout
    service = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    ended, _, _ = select.select([service], [], [], 30)
    os.close(service)
    assert ended


def test_it_does_not_start_when_its_parent_has_ended_already(tmp_path):
    command = [sys.executable, "-m", "demo.provider", "--ledger", str(tmp_path / "l"), "--with-parent", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")
