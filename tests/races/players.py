"""Actors: threads that run a program on a Django connection of their own, and are held between statements."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.races.steps import BEGIN, BESIDE, COMMIT, ROLLBACK, Step, step_of

ALIAS = "default"
Prepare = Callable[[BaseDatabaseWrapper], None]


@dataclass
class Stage:
    """What all actors of a race share."""

    prepare: list[Prepare] = field(default_factory=list)
    """Done to each connection before it is used."""
    events: queue.SimpleQueue[Player] = field(default_factory=queue.SimpleQueue)
    """Players that have come to their next hold, or to their end."""
    every_statement: bool = False
    beside: frozenset[str] = BESIDE
    """Tables whose rows only one actor can reach, by another lock: no hold before them."""
    keeps_snapshots: bool = False
    over: bool = False


class Player(threading.Thread):
    """One actor. It is `held` before a statement, `moving` in one, and then perhaps `waits` for a lock."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(daemon=True)
        self.stage = stage
        self.step = Step()
        """What it is held before, or in."""
        self.pid = self.arrived_at = 0
        self.held = self.moving = self.waits = self.busy = self.inside = False
        self.answer: Any = None
        """What its program returned, or raised."""
        self._programs: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._go = threading.Semaphore(0)
        self._next = self._touched = self._had = Step()
        """What its transaction has touched, with and without the statement that it is held before or in."""
        self.start()

    # -- the scheduler's side

    def begin(self, name: str, program: Callable[[], Any]) -> None:
        """Start a program; it stops before its first statement."""
        self.name, self.step = name, Step()
        self.busy = self.moving = True
        self._programs.put(program)

    def let_go(self) -> None:
        """Let the held statement run."""
        self.inside = self.inside or self.step.label == BEGIN
        self.held, self.moving = False, True
        self._go.release()

    def arrive(self, after: int) -> Step:
        """Note that the statement let go has ended, and return it: held before the next one now, or done.

        `after` is how many steps of all had been let go by then.
        """
        self.arrived_at = after
        done, self.step = self.step, self._next
        self.moving = self.waits = False
        self.inside = self.inside and done.label not in (COMMIT, ROLLBACK)
        self.held = self.busy = bool(self.step.label)
        return done

    @property
    def holds(self) -> Step:
        """What its transaction may have locks on by now."""
        return self._had if self.held or self.waits else self._touched

    def leave(self) -> None:
        """End the thread, wherever it is held; `stage.over` is set."""
        self._programs.put(None)
        self._go.release()

    # -- the actor's side

    def run(self) -> None:
        connection = connections[ALIAS]
        try:
            connection.ensure_connection()
            for prepare in self.stage.prepare:
                prepare(connection)
            self._hold_before(connection, "_commit", COMMIT)
            self._hold_before(connection, "_rollback", ROLLBACK)
            with connection.execute_wrapper(self._statement):
                while (program := self._programs.get()) is not None:
                    connection.ensure_connection()
                    if connection.features.has_select_for_update:
                        self.pid = connection.connection.info.backend_pid
                    self.answer = answer_of(program)
                    self._had = self._touched = Step()
                    self._report(Step())
        finally:
            connection.close()

    def _hold_before(self, connection: BaseDatabaseWrapper, method: str, label: str) -> None:
        end = getattr(connection, method)

        def held() -> Any:
            self._hold_at(Step(label, final=True).after(self._touched))
            try:
                return end()
            finally:
                self._had = self._touched = Step()

        setattr(connection, method, held)

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        inside = context["connection"].in_atomic_block
        step = replace(step_of(sql), final=not inside, keeps_snapshot=self.stage.keeps_snapshots)
        self._had = self._touched
        self._touched = step.after(self._had)
        self._hold_at(step)
        return execute(sql, params, many, context)

    def _hold_at(self, step: Step) -> None:
        seen = self.stage.every_statement or step.seen(self.stage.beside)
        if seen and not self.stage.over:
            self._report(step)
            self._go.acquire()

    def _report(self, step: Step) -> None:
        self._next = step
        self.stage.events.put(self)


def answer_of(program: Callable[[], Any]) -> Any:
    """Return what a program returned, or what it raised."""
    try:
        return program()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is this actor's answer)
        return error
