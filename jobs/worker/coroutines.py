"""Async handlers: one event loop in a thread of its own, many coroutines on it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from jobs.worker.held import Held
from jobs.worker.running import Finished, run_async

log = logging.getLogger("interlock.worker")


class Coroutines:
    """Runs coroutine handlers, at most `limit` at a time; the counterpart of Slots."""

    def __init__(self, limit: int, *, report: Callable[[Held, Finished | None], None]) -> None:
        self.limit = limit
        self.report = report
        self.todo: deque[Held] = deque()
        self._tasks: dict[Held, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def running(self) -> list[Held]:
        """Return what coroutines are busy with now."""
        return list(self._tasks)

    @property
    def occupied(self) -> int:
        """Jobs that hold a place or wait for one."""
        return len(self.todo) + len(self._tasks)

    def give(self, helds: Sequence[Held]) -> None:
        """Queue jobs and start as many as may run."""
        self.todo.extend(helds)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._turn, args=(self._loop,), name="coroutines", daemon=True).start()
        self._loop.call_soon_threadsafe(self._fill)

    def take_back(self) -> list[Held]:
        """Take the jobs that have not been started."""
        taken = []
        while True:
            try:
                taken.append(self.todo.popleft())
            except IndexError:
                return taken

    def interrupt(self, held: Held) -> None:
        """Cancel a coroutine whose attempt is over; one that swallows the cancellation goes on, fenced."""
        task = self._tasks.get(held)
        if task is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Stop the loop; coroutines that still run are left where they are."""
        self._closed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the loop turning: a handler may stop it, and SystemExit in a task of a handler's own ends it.

        It ends that handler too, once the loop goes on; the others on the loop have nothing to do with it.
        """
        while not self._closed:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001
                log.warning("event loop goes on", extra={"cause": type(error).__name__})

    def run_here(self) -> None:
        """Run what is queued to its end in this thread: the step machine's way."""
        asyncio.run(self._run_all())

    async def _run_all(self) -> None:
        self._fill()
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _fill(self) -> None:
        while self.todo and len(self._tasks) < self.limit:
            held = self.todo.popleft()
            self._tasks[held] = asyncio.get_running_loop().create_task(self._one(held))

    async def _one(self, held: Held) -> None:
        try:
            finished = await run_async(held)
        finally:
            del self._tasks[held]
        self.report(held, finished)
        self._fill()
