"""Limits that the kernel keeps for us."""

import contextlib
import math
import os
import resource
import signal
import sys
from pathlib import Path

from demo.convert.limits import MIB, Limits

PR_SET_PDEATHSIG = 1
# Kept back so that a process which ran out of memory can still say so.
LAST_WORDS = 32 * MIB
# Frames that docutils, the hungriest library, needs for one level of nesting.
FRAMES_PER_LEVEL = 12


def die_with(parent: int) -> None:
    """Die when the thread that started this process ends, however it ends.

    Elsewhere than on Linux, or in a Python without ctypes, the limit of processor time ends an orphan.
    """
    with contextlib.suppress(ImportError):
        import ctypes

        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def confine(limits: Limits) -> None:
    """Bound this process, for good, in memory, processor time, file size and recursion."""
    processor = math.ceil(limits.seconds) + 1  # a backstop: the parent's clock strikes first
    _bound(resource.RLIMIT_AS, limits.memory_bytes, LAST_WORDS)
    _bound(resource.RLIMIT_CPU, processor, 1)
    _bound(resource.RLIMIT_FSIZE, limits.output_bytes)
    _bound(resource.RLIMIT_CORE, 0)
    # Deep documents are parsed recursively: allow what the depth limit needs, no more.
    _bound(resource.RLIMIT_STACK, 64 * MIB)
    sys.setrecursionlimit(limits.depth * FRAMES_PER_LEVEL + 1000)
    # If the machine runs short all the same, take this process and not the worker.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def loosen() -> None:
    """Free the memory kept for last words."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def peak_kib() -> int:
    """Say how much memory this process held at most, 0 if the system does not tell.

    Not ru_maxrss: after a vfork that starts at what the parent held.
    """
    return _status("VmHWM")


def cramped(limits: Limits) -> bool:
    """Whether this process had come close to the limit of its memory."""
    return _status("VmPeak") * 1024 > limits.memory_bytes * 0.9


def _status(name: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def _bound(which: int, soft: int, spare: int = 0) -> None:
    _, hard = resource.getrlimit(which)
    ceiling = soft + spare if hard == resource.RLIM_INFINITY else min(soft + spare, hard)
    # Systems other than Linux refuse some of these; the parent's clock still holds there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (min(soft, ceiling), ceiling))
