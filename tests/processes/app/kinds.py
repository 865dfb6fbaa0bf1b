"""What the worker processes of these tests run.

A trace is one line appended to a file: job, generation, process. It tells how often code ran, whatever the
database says. A gate is a file whose presence lets a handler go on.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from jobs.context import Context, Fail
from jobs.handlers import job
from jobs.retry import Backoff

SOON = Backoff(base=0.05, floor=0.01, cap=0.1)


def trace(ctx: Context, file: str, word: str = "ran") -> None:
    line = f"{ctx.job.id} {ctx.attempt.generation} {os.getpid()} {word}\n"
    with Path(file).open("a") as out:
        out.write(line)


def wait_for(path: str, ctx: Context | None = None) -> None:
    pause = threading.Event()
    while not Path(path).exists():
        pause.wait(0.02)
        if ctx is not None:
            ctx.checkpoint()


@job("proc.trace", queue="proc", lease=3, max_attempts=5, backoff=SOON)
def leave_trace(ctx: Context, file: str) -> dict[str, int]:
    trace(ctx, file)
    return {"generation": ctx.attempt.generation}


@job("proc.gate", queue="proc", lease=3, max_attempts=5, backoff=SOON)
def pass_gate(ctx: Context, file: str, gate: str, polite: bool = False) -> str:
    """Run until the gate is open; a polite one looks whether it has to stop."""
    trace(ctx, file, "began")
    wait_for(gate, ctx if polite else None)
    trace(ctx, file, "ended")
    return f"generation {ctx.attempt.generation}"


@job("proc.kill", queue="proc", lease=3, max_attempts=3, backoff=SOON)
def kill_worker(ctx: Context, file: str) -> None:
    trace(ctx, file)
    os.kill(os.getpid(), signal.SIGKILL)


@job("proc.fail_first", queue="proc", lease=3, max_attempts=5, backoff=SOON)
def fail_first(ctx: Context, file: str) -> str:
    trace(ctx, file)
    if ctx.attempt.number == 1:
        raise OSError("the first attempt fails")
    return "second"


@job("proc.refuse", queue="proc", lease=3, max_attempts=5, backoff=SOON)
def refuse(ctx: Context, file: str) -> None:
    trace(ctx, file)
    raise Fail("HANDLER_CONTENT_FAILED", "no")


@job("proc.busy", queue="proc", lease=3, max_attempts=1)
def keep_the_interpreter_busy(ctx: Context, file: str, seconds: float) -> int:
    """Pure Python work without a pause: the heartbeat must get its turn all the same."""
    import time

    trace(ctx, file)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
    return count
