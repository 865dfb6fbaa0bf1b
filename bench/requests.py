"""Requests to the API inside one process: the server's work without a network, sent one after the other."""

import io
import json
import time
from collections.abc import Iterator
from typing import Any

from bench.verbs import BULK


class Api:
    """The WSGI application as one client with a token calls it."""

    def __init__(self) -> None:
        from django.contrib.auth import get_user_model

        from config.wsgi import application
        from jobs.models import ApiToken

        self.application = application
        user, _new = get_user_model().objects.get_or_create(username="bench", is_superuser=True)
        self.secret = ApiToken.objects.issue("bench", user=user, scopes=["jobs:enqueue"], queues=[])[1]

    def post(self, path: str, value: Any) -> str:
        """Send a value; returns the status."""
        raw = json.dumps(value).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/api/v1{path}",
            "QUERY_STRING": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_AUTHORIZATION": f"Bearer {self.secret}",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(raw),
            "wsgi.errors": io.StringIO(),
        }
        seen: list[str] = []
        answer = self.application(environ, lambda status, _headers: seen.append(status))  # type: ignore[arg-type]
        b"".join(answer)
        answer.close()
        return seen[0]


def one_by_one(count: int) -> float:
    """Enqueue `count` jobs by a request each; returns the seconds."""
    api = Api()
    began = time.monotonic()
    for number in range(count):
        status = api.post("/jobs", {"kind": "bench.noop", "arguments": {"seq": number}})
        assert status.startswith("201"), status
    return time.monotonic() - began


def bodies(count: int) -> Iterator[dict[str, Any]]:
    """Yield what batches of `count` jobs send, a thousand a request."""
    for start in range(0, count, BULK):
        numbers = range(start, min(count, start + BULK))
        yield {"jobs": [{"kind": "bench.noop", "arguments": {"seq": number}} for number in numbers]}


def batches(count: int) -> float:
    """Enqueue `count` jobs, a thousand a request; returns the seconds."""
    api = Api()
    began = time.monotonic()
    for body in bodies(count):
        status = api.post("/jobs/batch", body)
        assert status.startswith("200"), status
    return time.monotonic() - began
