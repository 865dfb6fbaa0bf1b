"""Long polls: one thread of the process looks on behalf of all who wait, with one connection of its own.

A waiting request holds its thread of the server and nothing else. So that those who do not wait are served
too, at most half of the threads may wait at a time; who comes then is told to come again.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, connections
from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request

from jobs.api.paging import wrong
from jobs.api.problems import Problem
from jobs.api.schema import Schema
from jobs.models import ApiToken

T = TypeVar("T")
EVERY = 0.2
"""Seconds between two looks: one is a query or two, by a key."""
QUIET_SECONDS = 5.0
"""How long the thread keeps its connection after the last one has left."""

PLACES = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""One for each request that may wait here at a time, for whatever it waits."""

is_closing: Callable[[], bool] = bool
"""Whether the web server is stopping, as config/web.py knows: then nobody is kept waiting."""


def longest() -> int:
    """Return how many seconds one request may wait."""
    return settings.INTERLOCK["WAIT_SECONDS"]


def parameter() -> Schema:
    """Return what `wait` may be, for docs/openapi.yaml."""
    return {"type": "integer", "minimum": 0, "maximum": longest()}


def asked(query: QueryDict) -> int:
    """Return for how many seconds a query asks to wait; raises Problem."""
    text = query.get("wait", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= longest()):
        detail = _("a whole number of seconds from 0 to %(most)s is needed") % {"most": longest()}
        raise wrong("wait", detail)
    return int(text)


def wait_for(
    changed: Callable[[], T | None],
    seconds: float,
    token: ApiToken | None = None,
    request: Request | None = None,
) -> T | None:
    """Return what `changed` returns, as soon as that is not None; None when `seconds` have passed.

    None also as soon as the server is stopping, or the client of `request` hung up: others need the place.

    It is called at once, and then by another thread with another connection: it must read what it needs anew,
    and all that the answer needs, so that those who are told at the same moment do not connect all at once.
    What it raises is raised here. Raises Problem `unavailable` when too many wait already, and
    NotAuthenticated as soon as the caller's `token` is revoked or has expired.
    """
    found = changed()
    if found is not None or seconds <= 0 or is_closing():
        return found
    return _waiters.wait(changed, seconds, token.pk if token else None, request)


def has_gone(request: Request | None) -> bool:
    """Whether the client has hung up while it waited."""
    connection = request.META.get("gunicorn.socket") if request is not None else None
    if not isinstance(connection, socket.socket):
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except (BlockingIOError, ValueError):  # nothing to read, or TLS, which shows nothing beforehand
        return False
    except OSError:
        return True


class _Waiter:
    def __init__(
        self, changed: Callable[[], Any], context: Context, token: int | None, request: Request | None
    ) -> None:
        self.changed, self.context, self.token, self.request = changed, context, token, request
        self.done = threading.Event()
        self.found: Any = None
        self.error: Exception | None = None

    def look(self, over: set[int]) -> None:
        if is_closing() or has_gone(self.request):
            self.done.set()
            return
        try:
            if self.token in over:
                raise NotAuthenticated(_("The token is unknown, has expired or was revoked."))
            self.found = self.context.run(self.changed)
        except Exception as error:  # noqa: BLE001  (it is the waiting request's, which answers with it)
            self.error = error
        if self.found is not None or self.error is not None:
            self.done.set()


class Waiters:
    """Those who wait in this process, and the thread that looks for them while there are any."""

    def __init__(self) -> None:
        self._came = threading.Condition()
        self._waiting: list[_Waiter] = []
        self._thread: threading.Thread | None = None

    def wait(
        self,
        changed: Callable[[], T | None],
        seconds: float,
        token: int | None = None,
        request: Request | None = None,
    ) -> T | None:
        waiter = _Waiter(changed, copy_context(), token, request)
        if not PLACES.acquire(blocking=False):
            raise Problem("unavailable", _("Too many requests wait here already; come again."))
        try:
            self._enter(waiter)
            let_go()
            waiter.done.wait(seconds)
        finally:
            with self._came:
                self._waiting.remove(waiter)
            PLACES.release()
        if waiter.error is not None:
            raise waiter.error
        found: T | None = waiter.found
        return found

    def _enter(self, waiter: _Waiter) -> None:
        with self._came:
            self._waiting.append(waiter)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="long polls", daemon=True)
                self._thread.start()
            self._came.notify()

    def _run(self) -> None:
        while waiting := self._next():
            over = tokens_over(waiter.token for waiter in waiting)
            for waiter in waiting:
                waiter.look(over)
            connections["default"].close_if_unusable_or_obsolete()
            time.sleep(EVERY)
        connections.close_all()  # this thread's own

    def _next(self) -> list[_Waiter]:
        """Return who waits, for longer than a while nobody."""
        with self._came:
            self._came.wait_for(lambda: bool(self._waiting), QUIET_SECONDS)
            if not self._waiting:
                self._thread = None
            return [waiter for waiter in self._waiting if not waiter.done.is_set()] or [*self._waiting]


def tokens_over(keys: Iterable[int | None]) -> set[int]:
    """Return the tokens that are over; none where the database cannot be asked, which is asked again soon."""
    try:
        return ApiToken.objects.over(key for key in keys if key is not None)
    except DatabaseError:
        return set()


def let_go() -> None:
    """Give this thread's connections back: a hundred that wait must not hold a hundred."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _anew() -> None:
    """In a forked child: the thread, and those who waited, stayed with the parent."""
    global _waiters
    _waiters = Waiters()


_waiters = Waiters()
os.register_at_fork(after_in_child=_anew)
