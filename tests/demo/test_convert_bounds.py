"""Time, memory and processes: what a conversion may cost, and that nothing outlives it."""

import os
import resource
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.convert import (
    Code,
    ConversionRefused,
    ConversionStopped,
    ConverterUnavailable,
    Limits,
    Trouble,
    convert_file,
    verdict,
)
from demo.convert import process as processes
from demo.convert.request import Request

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and pidfd")


@pytest.fixture
def slow(put):
    """A CSV that keeps the converter busy for seconds."""
    return put("slow.csv", "a,b,c\n" + "1,2,3\n" * 2_000_000)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started and not yet reaped."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == parent:
            found.append(int(entry.parent.name))
    return found


def gone(pidfd: int) -> bool:
    """Wait until a process has ended; false if it does not."""
    ended, _, _ = select.select([pidfd], [], [], 20)
    os.close(pidfd)
    return bool(ended)


def test_csv_of_100_mib_is_converted_in_flat_memory(put, tmp_path):
    source = put("big.csv", "number,text\n")
    block = (f"1,{'x' * 4000}\n" * 300).encode()
    with source.open("ab") as file:
        for _ in range(100 * MIB // len(block) + 1):
            file.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told: list[tuple[int, int]] = []
    target, patient = tmp_path / "big.json", Limits(seconds=120)
    summary = convert_file(
        source, target, "json", limits=patient, on_progress=lambda *each: told.append(each)
    )
    assert summary.source_bytes > 100 * MIB
    assert summary.counts["rows"] * 4003 + 12 == summary.source_bytes
    assert summary.target_bytes == target.stat().st_size > 100 * MIB
    if summary.peak_kib:
        assert summary.peak_kib < 64 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
    assert told == sorted(told)
    assert told[-1] == (summary.source_bytes, summary.source_bytes)


def test_progress_of_two_readings_is_one_progress(put, tmp_path):
    told = []
    source = put("a.csv", "a,b\n" + "1,some longer text\n" * 20_000)
    convert_file(source, tmp_path / "target", "text", on_progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert told[-1] == (source.stat().st_size, source.stat().st_size)


@pytest.mark.parametrize(
    ("share", "kind", "code"),
    [(0.0, ConversionRefused, Code.TOO_SLOW), (9.0, ConverterUnavailable, Trouble.TIMEOUT)],
    ids=["worked", "starved"],
)
def test_time_is_bounded_and_a_busy_machine_is_not_the_documents_fault(
    share, kind, code, slow, tmp_path, monkeypatch
):
    monkeypatch.setattr(verdict, "STARVED", share)
    with pytest.raises(kind, match=r"0\.3 s") as raised:
        convert_file(slow, tmp_path / "target", "json", limits=Limits(seconds=0.3))
    assert raised.value.code == code
    assert list(tmp_path.iterdir()) == [slow]


def test_caller_who_says_stop_is_obeyed_and_nothing_is_left(slow, tmp_path):
    begun: list[int] = []
    with pytest.raises(ConversionStopped):
        convert_file(
            slow,
            tmp_path / "target",
            "json",
            should_stop=lambda: bool(begun),
            on_progress=lambda done, total: begun.append(done),
        )
    assert begun
    assert list(tmp_path.iterdir()) == [slow]


@pytest.mark.parametrize("callback", ["should_stop", "on_progress"])
def test_what_a_callback_raises_ends_the_conversion_and_comes_out(callback, slow, tmp_path):
    class LeaseGoneError(TimeoutError):
        """Such as a database raises; it is not the conversion's own time-out."""

    def lost(*_):
        raise LeaseGoneError

    callbacks: dict[str, Any] = {callback: lost}
    with pytest.raises(LeaseGoneError):
        convert_file(slow, tmp_path / "target", "json", **callbacks)
    assert list(tmp_path.iterdir()) == [slow]


@linux
def test_stopping_kills_whatever_the_converter_had_started(put, tmp_path, monkeypatch):
    program = (
        "import json, subprocess, time;"
        "inner = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL);"
        "print(json.dumps({'progress': [inner.pid, 0]}), flush=True);"
        "inner.wait()"
    )
    monkeypatch.setattr(processes, "command", lambda request: [sys.executable, "-c", program])
    inner: list[int] = []
    with pytest.raises(ConversionStopped):
        convert_file(
            put("a.md", "x"),
            tmp_path / "target",
            "html",
            should_stop=lambda: bool(inner),
            on_progress=lambda pid, _: inner.append(os.pidfd_open(pid)),
        )
    assert gone(inner[0])


@linux
def test_caller_who_is_killed_takes_the_converter_along_and_leaves_no_file(slow, tmp_path):
    program = (
        "import sys; from pathlib import Path; from demo.convert import convert_file;"
        "convert_file(Path(sys.argv[1]), Path(sys.argv[2]), 'json', on_progress=lambda *_: print(flush=True))"
    )
    command = [sys.executable, "-c", program, str(slow), str(tmp_path / "target")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as caller:
        assert caller.stdout
        assert caller.stdout.readline() == b"\n"  # it is converting now
        (converter,) = children(caller.pid)
        pidfd = os.pidfd_open(converter)
        caller.kill()
        assert gone(pidfd)
    assert list(tmp_path.iterdir()) == [slow]


@linux
def test_child_whose_caller_is_already_gone_does_nothing(put):
    source = put("a.md", "x")
    with source.open("rb") as file:
        request = Request("a.md", "markdown", "html", file.fileno(), 1, os.getpid() + 1, Limits())
        run = subprocess.run(
            processes.command(request), cwd=ROOT, pass_fds=[file.fileno()], capture_output=True, text=True
        )
    assert (run.returncode, run.stdout) == (1, "")


def test_child_is_given_no_secret_and_no_path(put, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hush")
    source = put("a.md", "x")
    seen = []

    def command(request: Request) -> list[str]:
        seen.append(request.dumps())
        return [
            sys.executable,
            "-c",
            "import json, os; print(json.dumps({'unavailable': str(os.environ)}))",
        ]

    monkeypatch.setattr(processes, "command", command)
    with pytest.raises(ConverterUnavailable) as raised:
        convert_file(source, tmp_path / "target", "html")
    assert "hush" not in raised.value.message
    assert str(tmp_path) not in seen[0]


def test_conversions_in_threads_do_not_disturb_each_other(put, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    sources = [put(f"{number}.md", f"# Number {number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        titles = list(
            pool.map(lambda each: convert_file(each, each.with_suffix(".json"), "json").title, sources)
        )
    assert titles == [f"Number {number}" for number in range(4)]
