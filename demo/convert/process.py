"""The child process in which a conversion runs, as its parent sees it."""

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from demo.convert import verdict
from demo.convert.errors import ConversionStopped, ConverterUnavailable, Trouble
from demo.convert.request import PROGRESS, Request
from demo.convert.summary import Found

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.25
# The child gets no secrets. One arena keeps malloc from reserving address space per thread.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}

Answer = dict[str, Any]


class _TimeIsUpError(Exception):
    """Not TimeoutError: a callback may raise that, and it must come out as it is."""


def converted(
    request: Request,
    *,
    should_stop: Callable[[], bool] | None,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[Found, int]:
    """Have a child process do the conversion; return what it found and its peak memory in KiB.

    However this call ends, the child and all in its process group are dead by then.
    """
    deadline = time.monotonic() + request.limits.seconds
    with tempfile.TemporaryFile() as errors:
        child = _start(request, errors)
        answer: Answer | None = None
        late = False
        try:
            answer = _listen(child, deadline, should_stop or (lambda: False), on_progress)
        except _TimeIsUpError:
            late = True
        finally:
            status, processor = _end(child)
        if answer is None:
            said = _tail(errors)
            log.warning("conversion of %s ended with status %s: %s", request.name, status, said)
            answer = verdict.of_silence(
                request,
                late=late,
                status=status,
                processor=processor,
                out_of_memory="memory allocation" in said,
            )
    return verdict.found(answer)


def command(request: Request) -> list[str]:
    return [sys.executable, "-s", "-X", "utf8", "-m", "demo.convert.child", request.dumps()]


def _start(request: Request, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        # No preexec_fn: it is unsafe where threads run. The child confines itself before it reads.
        return subprocess.Popen(
            command(request),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=(request.source_fd, request.target_fd),
            cwd=ROOT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        raise ConverterUnavailable(
            Trouble.UNAVAILABLE, f"The converter cannot be started: {error}."
        ) from error


def _listen(
    child: subprocess.Popen[bytes],
    deadline: float,
    should_stop: Callable[[], bool],
    on_progress: Callable[[int, int], None] | None,
) -> Answer | None:
    """Return the child's last word, or None if it ended without one; raise when time is up."""
    assert child.stdout is not None  # noqa: S101  we asked for a pipe
    unread, ask = b"", 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise _TimeIsUpError
            if now >= ask:  # not at each line: the answer may cost the caller a query
                ask = now + POLL
                if should_stop():
                    raise ConversionStopped
            if not selector.select(min(ask, deadline) - now):
                continue
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                return None
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                answer: Answer = json.loads(line)
                if PROGRESS not in answer:
                    return answer
                if on_progress is not None:
                    on_progress(*answer[PROGRESS])


def _end(child: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Kill the child's process group, reap it, and return its status and processor seconds."""
    # If it is already dead this changes nothing: it cannot have been reaped, so the group is still its own.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    processor = 0.0
    try:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        processor = usage.ru_utime + usage.ru_stime
    except ChildProcessError:  # somebody waits for all children
        child.returncode = -signal.SIGKILL
    assert child.stdout is not None  # noqa: S101
    child.stdout.close()
    return child.returncode, processor


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 2000))
    return errors.read().decode("utf-8", "replace").strip()
