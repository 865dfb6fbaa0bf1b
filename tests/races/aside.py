"""One verb in a thread of its own, with its own connection, while the test goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self

from django.db import connection, connections

from tests.races.conftest import find_deadlocks_at_once
from tests.races.interleave import GLANCE, PATIENCE


class Aside(threading.Thread):
    """Runs `program` at once; `answer()` gives what it returned, or raises what it raised."""

    def __init__(self, program: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.program = program
        self.began = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self.pid = 0
        self.start()

    def run(self) -> None:
        own = connections["default"]
        try:
            own.ensure_connection()
            find_deadlocks_at_once(own)
            if own.features.has_select_for_update:
                self.pid = own.connection.info.backend_pid
            with own.execute_wrapper(self._note):
                self.value = self.program()
        except Exception as error:  # noqa: BLE001  (raised again by `answer`)
            self.error = error
        finally:
            self.began.set()
            own.close()

    def _note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.began.set()
        return execute(sql, params, many, context)

    def once_it_waits(self) -> Self:
        """Return when the verb waits for somebody's lock; fails when it ends instead."""
        assert self.comes_to_wait(), "it did not wait"
        return self

    def comes_to_wait(self) -> bool:
        """Return True when the verb waits for somebody's lock, False when it has ended instead.

        Where the whole file is locked nobody can be asked: there it is enough that it has begun.
        """
        assert self.began.wait(PATIENCE), "it never began"
        while connection.features.has_select_for_update:
            if not self.is_alive():
                return False
            with connection.cursor() as cursor:
                cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [self.pid])
                if cursor.fetchone()[0]:
                    break
            self.join(GLANCE)
        return True

    def answer(self) -> Any:
        """Wait for the end and return the answer."""
        self.join(PATIENCE)
        assert not self.is_alive(), "it never ended"
        if self.error is not None:
            raise self.error
        return self.value
