"""One request, sent again only where that cannot do anything twice."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from interlock_client.problems import NoAnswer, Problem, problem_of

LONGEST_PAUSE = 5.0


class Transport:
    """Requests to one server with one token; may be used by several threads, and by forked processes."""

    def __init__(self, url: str, token: str, *, timeout: float = 10.0, patience: float = 30.0) -> None:
        self.patience = patience
        """For how many seconds a request is sent again."""
        self.timeout = timeout
        self._url, self._token = url.rstrip("/") + "/", token
        self._open = self._connected()

    def close(self) -> None:
        if self._open[0] == os.getpid():
            self._open[1].close()

    @property
    def _http(self) -> httpx.Client:
        """The connections of this process: in a forked child its parent's would bring it others' answers."""
        if self._open[0] != os.getpid():
            self._open = self._connected()
        return self._open[1]

    def _connected(self) -> tuple[int, httpx.Client]:
        return os.getpid(), httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {self._token}", "Accept": "application/json"},
            timeout=self.timeout,
            trust_env=False,
            # Shorter than a server keeps a connection: what is sent into a closed one has no answer.
            limits=httpx.Limits(max_connections=None, keepalive_expiry=1.0),
        )

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        repeatable: bool,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
        patience: float | None = None,
    ) -> httpx.Response:
        """Return the answer of a request that was answered well, 304 included.

        `repeatable` says that the request may be carried out twice without harm: a reading one, one with an
        Idempotency-Key, a verb of claim.v1 that replays. Others are sent again only where certainly nothing
        was done. `wait` seconds are granted to the server beyond the time-out. Raises Problem or NoAnswer.
        """
        told = dict(headers or {})
        raw = None
        if body is not None:
            # ASCII only: of a lone surrogate the server says where it is, as of all else that it refuses.
            raw = json.dumps(body, allow_nan=False).encode()
            told["Content-Type"] = "application/json"

        def once() -> httpx.Response:
            return self._once(
                method, path, content=raw, params=params, headers=told, timeout=self.timeout + wait
            )

        return self._again(once, repeatable, self.patience if patience is None else patience)

    def upload(
        self, path: str, file: Path, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Any:
        """POST a file's bytes; the same name again replaces it, so it may be sent again."""

        def once() -> httpx.Response:
            with file.open("rb") as source:
                told = {
                    "Content-Type": "application/octet-stream",
                    "Content-Length": str(file.stat().st_size),
                }
                return self._once(
                    "POST",
                    path,
                    content=source,
                    params=params,
                    headers={**(headers or {}), **told},
                    timeout=self.timeout,
                )

        return self._again(once, True, self.patience).json()

    def _again(self, once: Callable[[], httpx.Response], repeatable: bool, patience: float) -> httpx.Response:
        end = time.monotonic() + patience
        pause = 0.1
        while True:
            try:
                return once()
            except (Problem, NoAnswer) as error:
                retryable = not isinstance(error, Problem) or error.retryable
                if not retryable or not (repeatable or error.outcome == "not_started"):
                    raise
                told = error.retry_after if isinstance(error, Problem) else None
                # A proxy may say 0: that is no reason to ask without a pause.
                delay = max(pause * random.uniform(0.5, 1.0), told or 0.0)
                if time.monotonic() + delay >= end:
                    raise
                time.sleep(delay)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _once(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **given)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NoAnswer(f"no connection: {error}", "not_started") from error
        except httpx.TransportError as error:
            raise NoAnswer(f"{type(error).__name__}: {error}", "unknown") from error
        if answer.is_success and _json(answer) is None:
            # A page of whoever stands in between: what the server did, if it was asked at all, nobody knows.
            raise NoAnswer(f"{answer.status_code}: an answer that is no JSON", "unknown")
        if answer.is_success or answer.status_code == httpx.codes.NOT_MODIFIED:
            return answer
        raise problem_of(answer.status_code, _json(answer), _seconds(answer.headers.get("Retry-After")))


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None
