"""The supervisor: replaces what dies, stops what it started, gives up on what cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.worker import processes
from jobs.worker.processes import Supervisor
from jobs.worker.stop import Stop

ROOT = Path(__file__).resolve().parent.parent.parent


def supervise(
    program: str, count: int, folder: Path, *, grace: float = 5.0, finite: bool = False
) -> Supervisor:
    """Return a supervisor of small Python programs; `folder` is their first argument."""
    return Supervisor([sys.executable, "-c", program, str(folder)], count, grace=grace, finite=finite)


def start(supervisor: Supervisor) -> tuple[threading.Thread, list[int]]:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(supervisor.run()), daemon=True)
    thread.start()
    return thread, codes


def finish(thread: threading.Thread, codes: list[int]) -> int:
    thread.join(60)
    assert codes, "the supervisor did not stop"
    return codes[0]


def until(folder: Path, count: int) -> list[Path]:
    """Wait until `count` children have left their mark."""
    for _ in range(6000):
        marks = sorted(folder.iterdir())
        if len(marks) >= count:
            return marks
        threading.Event().wait(0.01)
    raise AssertionError("the children did not start")


IMPORT = "import os, sys, signal, pathlib;"
MARK = IMPORT + "pathlib.Path(sys.argv[1], str(os.getpid())).touch();"
LIVE = MARK + "[signal.pause() for _ in iter(int, 1)]"
SERVE = IMPORT + "signal.signal(signal.SIGTERM, lambda *_: os._exit(0));" + LIVE


def test_children_that_are_done_end_the_parent_with_success(tmp_path: Path) -> None:
    assert supervise(MARK, 3, tmp_path, finite=True).run() == 0
    assert len(list(tmp_path.iterdir())) == 3


def test_a_child_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_PAUSE", 0.0)
    supervisor = supervise(SERVE, 2, tmp_path)
    thread, codes = start(supervisor)
    first = until(tmp_path, 2)
    os.kill(int(first[0].name), signal.SIGKILL)
    until(tmp_path, 3)
    supervisor.stop.ask()
    assert finish(thread, codes) == 0


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_children_that_a_job_kills_are_replaced_again_and_again(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory each time, or a handler that ends its process: no reason to give the other jobs up."""
    monkeypatch.setattr(processes, "FIRST_PAUSE", 0.0)
    supervisor = supervise(MARK + end, 1, tmp_path)
    thread, codes = start(supervisor)
    until(tmp_path, processes.QUICK_DEATHS + 2)
    assert not supervisor.stop.asked.is_set()
    supervisor.stop.ask()
    finish(thread, codes)


def test_children_that_die_as_soon_as_they_start_end_the_parent_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "FIRST_PAUSE", 0.0)
    assert supervise(MARK + "sys.exit(4)", 1, tmp_path).run() == 1
    assert len(list(tmp_path.iterdir())) == processes.QUICK_DEATHS


def test_a_stop_is_passed_on_and_a_child_that_will_not_hear_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KILL_AFTER", 0.2)
    deaf = IMPORT + "signal.signal(signal.SIGTERM, signal.SIG_IGN);" + LIVE
    supervisor = supervise(deaf, 1, tmp_path, grace=0.0)
    thread, codes = start(supervisor)
    until(tmp_path, 1)
    supervisor.stop.ask()
    assert finish(thread, codes) == 1


def test_a_second_signal_is_passed_on_too(tmp_path: Path) -> None:
    twice = (
        IMPORT + "n = [];"
        "signal.signal(signal.SIGTERM, lambda *_: n.append(1) or len(n) > 1 and os._exit(75));" + LIVE
    )
    supervisor = supervise(twice, 1, tmp_path, grace=3600.0)
    thread, codes = start(supervisor)
    until(tmp_path, 1)
    supervisor.stop.ask()
    supervisor.stop.ask()
    assert finish(thread, codes) == 75


def test_a_child_that_asks_to_be_reloaded_is_started_anew_without_a_pause(tmp_path: Path) -> None:
    program = MARK + "sys.exit(3 if len(os.listdir(sys.argv[1])) < 8 else 0)"
    assert supervise(program, 1, tmp_path, finite=True).run() == 0
    assert len(list(tmp_path.iterdir())) == 8


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    child = (
        "import os, sys, signal, pathlib\n"
        "from jobs.worker.processes import tie_to\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(sys.argv[1], 'told').touch(), os._exit(0)))\n"
        "tie_to(os.getppid())\n"
        "pathlib.Path(sys.argv[1], 'tied').touch()\n"
        "while True: signal.pause()\n"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, sys.argv[1]])"
    process = subprocess.Popen([sys.executable, "-c", parent, str(tmp_path)], cwd=ROOT)
    until(tmp_path, 1)
    process.kill()
    process.wait(60)
    assert [path.name for path in until(tmp_path, 2)] == ["tied", "told"]


def test_a_stop_that_was_asked_for_twice_is_hurried_and_keeps_its_first_reason() -> None:
    stop, rung = Stop(), []
    stop.ring(lambda: rung.append(1))
    stop.ask("SIGTERM")
    assert (stop.asked.is_set(), stop.hurried.is_set()) == (True, False)
    stop.ask("SIGINT", code=1)
    assert (stop.hurried.is_set(), stop.why, stop.code, len(rung)) == (True, "SIGTERM", 0, 2)
