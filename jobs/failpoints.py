"""Named points of the protocol at which a test makes this process die, stop or fail.

    INTERLOCK_ALLOW_FAILPOINTS=1 INTERLOCK_FAILPOINTS="commit.before=kill, claim.sent=raise:KeyError@2"

`before` is ahead of the first statement, `sent` inside the transaction ahead of COMMIT, `after` when the
database has answered. Actions: `kill` (SIGKILL), `stop` (SIGSTOP), `exit` (at once, code 9), `raise:Name` (a
built-in exception or one of django.db's). `@3` means the third time that the point is passed, and only then.
Off, a point is one look into an empty dictionary.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

NAMES = frozenset(
    f"{verb}.{moment}"
    for verb, moments in {
        "claim": "before sent after",
        "run": "before after",
        "commit": "before sent after",
        "fail": "before sent after",
        "renew": "before sent after",
        "recover": "before sent after",
        "release": "before after",
        "beat": "before after",
        "grant": "before sent after",
        "send": "before",
        "report": "sending before sent after",
    }.items()
    for moment in moments.split()
)


@dataclass
class _Armed:
    act: Callable[[], None]
    at: int | None
    passed: int = 0


_armed: dict[str, _Armed] = {}


def failpoint(name: str) -> None:
    """Do what this point was armed with; usually nothing."""
    if _armed:
        _reach(name)


def _reach(name: str) -> None:
    armed = _armed.get(name)
    if armed is None:
        return
    armed.passed += 1
    if armed.at is None or armed.passed == armed.at:
        armed.act()


def arm(text: str) -> None:
    """Arm the points of a comma-separated list of name=action; an empty list disarms all.

    Raises ValueError, with a sentence, for a point or an action that does not exist.
    """
    armed = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = part.partition("=")
        action, _, count = rest.partition("@")
        if name not in NAMES:
            raise ValueError(f"{name!r} is no failpoint; there are {', '.join(sorted(NAMES))}")
        if count and not (count.isdigit() and int(count)):
            raise ValueError(f"{part!r}: @ is followed by a whole number, 1 for the first time")
        armed[name] = _Armed(_action(action), int(count) if count else None)
    _armed.clear()
    _armed.update(armed)


def _action(text: str) -> Callable[[], None]:
    word, _, argument = text.partition(":")
    match word:
        case "kill":
            return lambda: os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            return _stop
        case "exit":
            return lambda: os._exit(9)
        case "raise":
            return _raiser(argument)
    raise ValueError(f"{text!r} is no action; there are kill, stop, exit and raise:ExceptionName")


def _stop() -> None:
    """Stand still, but not while another thread of this process has the one lock of a database in a file.

    Nobody else could write there for as long as it stands, and what is tried then is what others do.
    """
    from django.core.exceptions import SynchronousOnlyOperation
    from django.db import connection, transaction

    inside = connection.in_atomic_block or getattr(connection.connection, "in_transaction", False)
    if connection.vendor == "sqlite" and not inside:
        with contextlib.suppress(SynchronousOnlyOperation), transaction.atomic():
            pass
    # To this thread: sent to the process, another thread may take it while this one goes on a little.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _raiser(name: str) -> Callable[[], None]:
    from django.db import utils

    wanted = getattr(utils, name, None) or getattr(builtins, name, None)
    if not (isinstance(wanted, type) and issubclass(wanted, BaseException)):
        raise ValueError(f"{name!r} is no exception of Python's or of django.db's")
    kind: type[BaseException] = wanted

    def act() -> None:
        raise kind("raised by a failpoint")

    return act
