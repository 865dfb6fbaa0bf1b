"""What the worker processes of these tests run.

A trace is one line appended to a file: job, generation, process, word. It tells how often code ran, whatever
the database says. A gate is a file whose presence lets a handler go on.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import threading
import time
from pathlib import Path

from jobs.context import Context
from jobs.handlers import job
from jobs.retry import Backoff

SOON = Backoff(base=0.05, floor=0.01, cap=0.1)


def trace(ctx: Context, file: str, word: str = "ran") -> None:
    line = f"{ctx.job.id} {ctx.attempt.generation} {os.getpid()} {word}\n"
    with Path(file).open("a") as out:
        out.write(line)


@job("proc.trace", queue="proc", backoff=SOON)
def leave_trace(ctx: Context, file: str) -> dict[str, int]:
    trace(ctx, file)
    return {"generation": ctx.attempt.generation}


@job("proc.gate", queue="proc", max_attempts=5, backoff=SOON)
def pass_gate(ctx: Context, file: str, gate: str, polite: bool = False) -> str:
    """Run until the gate is open; a polite one looks whether it has to stop."""
    trace(ctx, file, "began")
    pause = threading.Event()
    while not Path(gate).exists():
        pause.wait(0.02)
        if polite:
            ctx.checkpoint()
    trace(ctx, file, "ended")
    return f"generation {ctx.attempt.generation}"


@job("proc.crowd", queue="proc", max_attempts=5, backoff=SOON)
async def pass_gate_in_a_crowd(ctx: Context, file: str, gate: str) -> int:
    """The same, many at a time."""
    trace(ctx, file, "began")
    while not Path(gate).exists():
        await asyncio.sleep(0.2)
    return ctx.attempt.generation


@job("proc.fail_first", queue="proc", max_attempts=5, backoff=SOON)
def fail_first(ctx: Context, file: str) -> str:
    trace(ctx, file)
    if ctx.attempt.number == 1:
        raise OSError("the first attempt fails")
    return "second"


@job("proc.busy", queue="proc", max_attempts=1)
def keep_the_interpreter_busy(ctx: Context, file: str, seconds: float) -> int:
    """Pure Python work without a pause: the heartbeat must get its turn all the same."""
    trace(ctx, file)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
    return count


# -- what no handler should do -----------------------------------------------------------------------------


@job("proc.kill", queue="proc", max_attempts=2, backoff=SOON)
def kill_the_worker(ctx: Context, file: str) -> None:
    trace(ctx, file)
    os.kill(os.getpid(), signal.SIGKILL)


@job("proc.leave", queue="proc", max_attempts=1)
def leave_at_once(ctx: Context, file: str) -> None:
    """End the process behind everybody's back, as if all had gone well."""
    trace(ctx, file)
    os._exit(0)


@job("proc.segfault", queue="proc", max_attempts=1)
def break_the_interpreter(ctx: Context, file: str) -> None:
    trace(ctx, file)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # nobody wants to see it
    ctypes.string_at(0)


@job("proc.quit", queue="proc", max_attempts=1)
def ask_to_exit(ctx: Context, file: str) -> None:
    trace(ctx, file)
    raise SystemExit(3)


@job("proc.fork", queue="proc", max_attempts=1)
def fork(ctx: Context, file: str, how: str) -> int:
    """Fork a child that comes back out of here, and return its exit code."""
    trace(ctx, file)
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if how == "raises":
        raise RuntimeError("in the child")
    if how == "exits":
        raise SystemExit(3)
    return 0


@job("proc.devour", queue="proc", max_attempts=1)
def devour_memory(ctx: Context, file: str, gigabytes: int) -> int:
    trace(ctx, file)
    return len(bytearray(gigabytes << 30))


if os.environ.get("PROCESSES_NEW_RELEASE"):

    @job("proc.new", queue="proc", max_attempts=1)
    def what_the_next_release_brings(ctx: Context, file: str) -> None:
        trace(ctx, file)


if os.environ.get("PROCESSES_SHORT_LEASE"):

    @job("proc.short", queue="proc", lease=int(os.environ["PROCESSES_SHORT_LEASE"]))
    def nothing() -> None:
        return None


# At the end: they use what stands above.
from tests.processes.app import effects  # noqa: E402, F401
