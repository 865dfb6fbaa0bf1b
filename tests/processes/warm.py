"""Starts commands of `manage.py` from a process that has read the libraries already.

Two thirds of a worker's start are the reading of Django and what else is not ours, and hundreds of processes
are started. One process reads that once; each command is a fork of it, which reads the settings and all our
own code by itself, from the environment it is given. It has read nothing of ours, opened no connection and
started no thread. The commands are children of the tests' own process, as if it had started them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
OURS = {"bench", "config", "console", "demo", "interlock_client", "jobs", "manage", "tests"}
LIBRARIES = {
    *("asgiref", "django", "packaging", "psycopg", "psycopg_binary", "smtplib", "sqlite3", "sqlparse"),
    *("structlog", "urllib", "uuid_utils"),
}


class Forked:
    """A child of ours that somebody else has forked: as much of Popen as is asked of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended; subprocess.TimeoutExpired when it does not in time."""
        if self.poll() is None:
            end = os.pidfd_open(self.pid)
            try:
                select.select([end], [], [], timeout)
            finally:
                os.close(end)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("manage.py", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


def start_cold(
    command: Sequence[str],
    environment: Mapping[str, str],
    out: IO[bytes] | int,
    errors: IO[bytes] | int,
    shell: str = "",
) -> subprocess.Popen[bytes]:
    """Start `manage.py` with these words from nothing; by a `shell` whose text runs `"$0" "$@"` if given."""
    words = [sys.executable, str(ROOT / "manage.py"), *command]
    return subprocess.Popen(
        ["/bin/sh", "-c", shell, *words] if shell else words,
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        start_new_session=True,
    )


class Warm:
    """The process that has read the libraries; ends with the block, or with ours."""

    def __enter__(self) -> Warm:
        own = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=ROOT,
            env={**own, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests
        )
        self._ask(sorted(name for name in sys.modules if name.partition(".")[0] in LIBRARIES))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, errors: Path | None = None
    ) -> Forked | subprocess.Popen[bytes]:
        """Start `manage.py` with these words; what it writes is in `log`, its stderr in `errors` if given."""
        if sys.platform != "linux":  # nowhere else can a process inherit what another has forked
            with log.open("ab") as out, (errors or log).open("ab") as err:
                return start_cold(command, environment, out, err)
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            return Forked(self._ask([list(command), dict(environment), str(log), str(errors or log)]))
        finally:
            _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def _ask(self, question: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _serve() -> list[str] | None:
    """Read what is named, then fork for each command; return its words in the fork, None at the end."""
    sys.path[0] = str(Path.cwd())
    gc.disable()
    for name in json.loads(sys.stdin.buffer.readline()):
        with contextlib.suppress(Exception):  # what wants settings as soon as it is read is read in the fork
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    assert not OURS & {name.partition(".")[0] for name in sys.modules}
    print(0, flush=True)
    while question := sys.stdin.buffer.readline():
        command, environment, *logs = json.loads(question)
        if _is_the_command():
            _become(environment, *logs)
            return ["manage.py", *command]
    return None


def _is_the_command() -> bool:
    """Fork twice, so that the tests' process inherits the second; say its number when it has."""
    reader, writer = os.pipe()
    between = os.fork()
    if not between:
        command = os.fork()
        if not command:
            os.close(reader)
            os.close(writer)
            return True
        os.write(writer, str(command).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(between, 0)
    print(os.read(reader, 20).decode(), flush=True)
    os.close(reader)
    return False


def _become(environment: Mapping[str, str], *logs: str) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in enumerate((os.devnull, *logs)):
        opened = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)


if __name__ == "__main__":
    words = _serve()
    if words:
        sys.argv[:] = words
        runpy.run_path(words[0], run_name="__main__")
