"""Over HTTP: how fast jobs come in, are claimed and committed, and what a hundred who wait do to others."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from bench.failed import BenchFailed
from bench.ground import Ground
from bench.procs import Workers
from bench.requests import bodies
from bench.sides import Side
from bench.web import serving
from interlock_client import Client
from interlock_client.leases import Leases

BATCH = 200
CLIENTS = 2
WAITERS = 100
WAIT_SECONDS = 20
SECONDS = 8.0
SETTLE_SECONDS = 8.0


def http(ground: Ground, side: Side, count: int, folder: Path) -> dict[str, Any]:
    """Claim and commit `count` jobs in batches, by two clients. Raises BenchFailed if one was lost."""
    url = ground.fresh(side)
    side.ask(url, "bulk", count)
    token = side.ask(url, "token")
    rate = ground.commits_per_s()
    with serving(side, url, folder) as (web, api):
        figures = _by_clients(web, lambda number: _drain(api, token, f"bench:{number}:x"), count, BATCH)
        memory = web.resident_mib()
    if (proofs := ground.count(side.finished)) != count:
        raise BenchFailed(f"of {count} jobs {proofs} left a proof of success")
    return figures | {"commit_per_s": rate, "rss_mib": round(memory, 1)}


def served(ground: Ground, side: Side, count: int, folder: Path) -> dict[str, Any]:
    """Enqueue `count` jobs, a thousand a request, by two clients whose requests are ready."""
    url = ground.fresh(side)
    token = side.ask(url, "token")
    rate = ground.commits_per_s()
    ready = [(len(body["jobs"]), json.dumps(body).encode()) for body in bodies(count)]
    with serving(side, url, folder) as (web, api):
        _enqueue(api, token, ready[:1])  # what a web server reads at its first request
        figures = _by_clients(
            web, lambda number: _enqueue(api, token, ready[number::CLIENTS]), count, ready[0][0]
        )
    return figures | {"commit_per_s": rate}


def _by_clients(web: Workers, work: Callable[[int], None], count: int, batch: int) -> dict[str, Any]:
    """Let each client do its work on `count` jobs, and tell what that took."""
    cpu, began = web.cpu_seconds(), time.monotonic()
    _together(CLIENTS, work)
    seconds, cpu = time.monotonic() - began, web.cpu_seconds() - cpu
    return {
        "n": count,
        "batch": batch,
        "clients": CLIENTS,
        "seconds": round(seconds, 3),
        "per_s": round(count / seconds),
        "web_us_per_job": round(cpu / count * 1e6, 1),
    }


def _enqueue(api: str, token: str, ready: Sequence[tuple[int, bytes]]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with httpx.Client(timeout=60, headers=headers) as client:
        for n, raw in ready:
            answer = client.post(f"{api}/jobs/batch", content=raw)
            if answer.status_code != 200 or not answer.content.endswith(b'"created":%d}' % n):
                raise BenchFailed(f"not enqueued: {answer.status_code} {answer.text[:200]}")


def _drain(api: str, token: str, name: str) -> None:
    with Client(api, token, timeout=60) as client:
        leases = Leases(client.transport, {"id": name})
        while claimed := leases.claim(
            queues=["bench"], kinds=["bench.noop"], limit=BATCH, wait=0, holding=[]
        )[0]:
            answers = leases.commit([(one, None) for one in claimed])
            if any(answer["code"] != "COMMITTED" for answer in answers):
                raise BenchFailed(f"not committed: {answers[:3]}")


def waiting(ground: Ground, side: Side, folder: Path, threads: int) -> dict[str, Any]:
    """Let a hundred clients wait for work, and time other requests meanwhile."""
    url = ground.fresh(side)
    token = side.ask(url, "token")
    with serving(side, url, folder, WEB_THREADS=str(threads)) as (web, api), Client(api, token) as client:
        quiet = _others(client)
        over = threading.Event()
        waited: list[float] = []
        turned: list[int] = []

        def wait(number: int) -> None:
            leases = Leases(client.transport, {"id": f"bench:{number}:w"})
            while not over.is_set():
                began = time.monotonic()
                _got, pause = leases.claim(
                    queues=["bench"], kinds=["bench.noop"], limit=1, wait=WAIT_SECONDS, holding=[]
                )
                (turned.append(1) if pause else waited.append(time.monotonic() - began))
                over.wait(pause)

        crowd = threading.Thread(target=_together, args=(WAITERS, wait))
        crowd.start()
        time.sleep(SETTLE_SECONDS)
        cpu, began = web.cpu_seconds(), time.monotonic()
        connections = ground.connections()
        busy = _others(client)
        used = (web.cpu_seconds() - cpu) / (time.monotonic() - began)
        over.set()
        crowd.join()
    held = {} if connections is None else {"connections": connections}
    return held | {
        "threads": threads,
        "waiters": WAITERS,
        "turned_away": len(turned),
        "waited": len(waited),
        "alone_p95_ms": quiet,
        "others_p95_ms": busy,
        "cpu_percent": round(used * 100, 1),
    }


def _others(client: Client) -> float:
    """Return p95 of other requests, in milliseconds: ten a second, as somebody at a screen makes them."""
    taken = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.monotonic()
        client.transport.send("GET", "jobs", repeatable=False, params={"limit": 1})
        taken.append((time.monotonic() - began) * 1000)
        time.sleep(0.1)
    return round(quantiles(taken, n=20)[-1], 2)


def _together(count: int, work: Callable[[int], None]) -> None:
    failed: list[BaseException] = []

    def one(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  (raised below, by whoever waits)
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
