"""pgqueuer's side of a measure, on asyncpg and uvloop as its authors advise (see verbs.py).

Runs in .venv-bench, which holds nothing of ours.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job

from bench import marks
from bench.verbs import BULK, numbers_with_pauses, obey

BATCH = 500
"""Jobs it takes at a time; its fastest setting here."""


async def connect() -> AsyncpgDriver:
    return AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"]))


def _run(verb: Callable[..., Coroutine[Any, Any, Any]], *numbers: int) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(verb(*numbers))


async def prepare() -> None:
    await Queries(await connect()).install()


async def enqueue(count: int) -> float:
    queries = Queries(await connect())
    began = time.monotonic()
    for number in range(count):
        await queries.enqueue("noop", b"%d" % number)
    return time.monotonic() - began


async def bulk(count: int) -> float:
    queries = Queries(await connect())
    began = time.monotonic()
    for start in range(0, count, BULK):
        some = range(start, min(count, start + BULK))
        await queries.enqueue(["noop"] * len(some), [b"%d" % number for number in some], [0] * len(some))
    return time.monotonic() - began


async def pickup(count: int) -> list[tuple[int, float]]:
    queries = Queries(await connect())
    returned = []
    for number in numbers_with_pauses(count):
        await queries.enqueue("pickup", b"%d" % number)
        returned.append((number, time.monotonic()))
    return returned


async def noop(job: Job) -> None:
    int(job.payload or b"")
    marks.hit()


async def note_pickup(job: Job) -> None:
    marks.began(int(job.payload or b""))


async def work() -> None:
    worker = PgQueuer(await connect())
    worker.entrypoint("noop")(noop)
    worker.entrypoint("pickup")(note_pickup)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
    await worker.run(batch_size=BATCH)


VERBS: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    "prepare": prepare,
    "enqueue": enqueue,
    "bulk": bulk,
    "pickup": pickup,
    "work": work,
}

if __name__ == "__main__":
    obey({name: partial(_run, verb) for name, verb in VERBS.items()})
