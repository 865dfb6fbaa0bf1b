"""How the web server treats connections, before any request of ours."""

import socket

import pytest

from config import web


@pytest.fixture
def pair():
    """A client and the server's side of its connection, whose every wait is bounded."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web.bound(listener, 0.05)
        with socket.create_connection(listener.getsockname()) as client:
            server, _address = listener.accept()
            with server:
                yield client, server


def test_client_that_says_nothing_more_is_not_waited_for_for_ever(pair):
    client, server = pair
    client.sendall(b"PO")
    assert server.recv(10) == b"PO"
    with pytest.raises(BlockingIOError):
        server.recv(10)


def test_client_that_takes_no_answer_is_not_waited_for_for_ever(pair):
    _client, server = pair
    with pytest.raises(BlockingIOError):
        server.sendall(b"x" * 100_000_000)
