"""Runs the demonstration's payment service for a test, as a process of its own.

    with Provider.running(tmp_path) as provider:            # or "--mode", "keys=ignored"
        provider.fault("drop", invoice="INV-1")
        ...                                                 # the code under test talks to provider.url
        assert provider.ledger()["count"] == 1

It outlives kill() and restart() with its ledger and its URL, and never the thread that started it.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 30


@dataclass(frozen=True)
class Reply:
    status: int
    raw: bytes
    headers: "Message[str, str]"

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.json["code"])


class Provider:
    """One service and its ledger."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.file = folder / "provider.sqlite3"
        self.options = options
        self.url = ""  # ends in a slash
        self.process: subprocess.Popen[str] | None = None

    @classmethod
    @contextmanager
    def running(cls, folder: Path, *options: str) -> "Iterator[Provider]":
        provider = cls(folder, *options)
        provider.start()
        try:
            yield provider
        finally:
            provider.stop()

    def start(self) -> None:
        """Start it and return once it listens; the second time on the same port."""
        command = [sys.executable, "-m", "demo.provider", "--ledger", str(self.file), *self.options]
        port = str(urlsplit(self.url).port or 0)
        self.process = subprocess.Popen(
            [*command, "--port", port, "--with-parent", str(os.getpid())],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        assert said.startswith("provider: http"), f"the provider did not start: {said!r}"
        self.url = said.split()[1]

    def stop(self) -> int | None:
        """End it as a service manager would; return its exit code."""
        return self._end(lambda process: process.terminate())

    def kill(self) -> int | None:
        """End it as a power cut would."""
        return self._end(lambda process: process.kill())

    def restart(self) -> None:
        self.stop()
        self.start()

    def fault(self, kind: str, *, times: int | None = None, seconds: float | None = None, on=None, **match):
        """Order a misbehaviour for requests like `match` (invoice, account, key, resource)."""
        asked = {"kind": kind, "times": times, "seconds": seconds, "on": on, "match": match}
        given = {name: value for name, value in asked.items() if value is not None}
        reply = self.call("POST", "faults", given)
        assert reply.status == 201, reply

    def lift(self) -> None:
        """End all misbehaviour; what was held goes on."""
        assert self.call("DELETE", "faults").status == 200

    def struck(self, strikes: int) -> list[dict[str, Any]]:
        """Return whom the faults hit, once so many have struck since the start."""
        seen = self.call("GET", f"faults?strikes={strikes}&wait={PATIENCE}").json
        assert seen["strikes"] >= strikes, f"only {seen['strikes']} of {strikes} faults have struck"
        return seen["struck"]

    def ledger(self, *, once: int = 0) -> dict[str, Any]:
        """Return what was really done, `once` there are so many charges: 0 is now.

        `charges`, `count`, `by_key`, `totals` and `versions`, all in order.
        """
        done = self.call("GET", f"ledger?count={once}&wait={PATIENCE}").json
        assert done["count"] >= once, f"there are {done['count']} of {once} charges"
        return done

    def charge(self, key: str, token: int | None = None, **fields: str) -> Reply:
        """Order a charge; what is not given is filled in."""
        body = {"account": "acme", "amount": "12.50", "currency": "EUR", "invoice": "INV-1", **fields}
        headers = {"Idempotency-Key": key} | ({"Fencing-Token": str(token)} if token is not None else {})
        return self.call("POST", "charges", body, headers)

    def inquire(self, key: str) -> Reply:
        return self.call("GET", f"charges?key={quote(key, safe='')}")

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Ask for anything; bytes go as they are. What was not answered raises OSError."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, dict(headers or {}), method=method)
        # No proxy of this machine's comes in between.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=2 * PATIENCE) as answer:
                return Reply(answer.status, answer.read(), answer.headers)
        except urllib.error.HTTPError as answer:
            with answer:
                return Reply(answer.code, answer.read(), answer.headers)

    def _end(self, how) -> int | None:
        if self.process is None:
            return None
        process, self.process = self.process, None
        how(process)
        try:
            return process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
