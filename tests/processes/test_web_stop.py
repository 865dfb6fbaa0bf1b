"""A web server that is stopped while clients wait for news answers them, and cuts nobody off."""

from __future__ import annotations

import signal
import threading

import httpx

from tests.processes.installation import Installation
from tests.processes.web import serving


def test_a_stopped_web_server_answers_whoever_waits(installation: Installation) -> None:
    answers: list[httpx.Response | httpx.TransportError] = []
    with serving(installation, WEB_THREADS="4") as web:
        headers = {"Authorization": f"Bearer {web.token()}"}
        path = f"{web.url}/events?after=latest&wait="

        def wait() -> None:
            try:
                answer = httpx.get(f"{path}30", headers=headers, timeout=60, trust_env=False)
            except httpx.TransportError as error:
                answers.append(error)
                return
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # the one that looks sat there
                wait()
            else:
                answers.append(answer)

        waiting = [threading.Thread(target=wait) for _ in range(2)]
        for one in waiting:
            one.start()
        # Both are seated once there is no place for a third.
        installation.until(
            lambda: httpx.get(f"{path}1", headers=headers, trust_env=False).status_code == 503,
            "two that wait",
        )
        installation.workers[-1].signal(signal.SIGTERM)
        for one in waiting:
            one.join()
        assert [getattr(answer, "status_code", answer) for answer in answers] == [200, 200]
        assert installation.workers[-1].wait() == 0
