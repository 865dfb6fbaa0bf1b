"""Processes as the kernel accounts for them: start and stop, CPU time, resident memory."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from bench.failed import BenchFailed

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
STOP_SECONDS = 20


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on; the second may hold blanks and brackets."""
    return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rsplit(")", 1)[1].split()


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does; T is one that was stopped."""
    return _stat(pid)[0]


def family(root: int) -> list[int]:
    """Return a process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
            except OSError:  # ended meanwhile
                continue
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """Return the CPU time of a process and its descendants, also of those that have ended."""
    ticks = 0
    for pid in family(root):
        try:
            ticks += sum(map(int, _stat(pid)[11:15]))
        except OSError:
            continue
    return ticks / TICKS


def resident_mib(root: int) -> float:
    """Return the resident memory of a process and its descendants, in MiB."""
    pages = 0
    for pid in family(root):
        try:
            pages += int((PROC / str(pid) / "statm").read_text("ascii").split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Workers:
    """Worker processes started together; stopped when the block ends."""

    def __init__(self, command: list[str], environment: dict[str, str], count: int, log: Path) -> None:
        self.command = command
        self.environment = environment
        self.count = count
        self.log = log
        self._said: IO[bytes] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Workers":
        self._said = self.log.open("wb")
        for _ in range(self.count):
            self._processes.append(
                subprocess.Popen(
                    self.command,
                    cwd=ROOT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=self._said,
                    stderr=self._said,
                    start_new_session=True,  # Ctrl-C is for the benchmark, which stops them
                )
            )
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self._said:
            self._said.close()

    def check(self) -> None:
        """Raise BenchFailed, with what it said last, if a worker has ended by itself."""
        for process in self._processes:
            if process.poll() is not None:
                raise BenchFailed(f"a worker ended with code {process.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of what the workers wrote."""
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "it said nothing"

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(process.pid) for process in self._processes)

    def resident_mib(self) -> float:
        """Return the resident memory of one worker, on average."""
        return sum(resident_mib(process.pid) for process in self._processes) / self.count


def run_client(command: list[str], environment: dict[str, str]) -> str:
    """Run a client to its end and return its answer."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise BenchFailed(f"{' '.join(command[-2:])} ended with code {done.returncode}")
    return done.stdout.strip().splitlines()[-1]
