"""Runs the tests on SQLite and on PostgreSQL: what `make test` calls.

    python tests/run.py                     both databases, with coverage
    python tests/run.py --on sqlite ...     one database (sqlite or postgresql), without; see --part
    python tests/run.py -k claim            anything else goes to pytest

SQLite is a file in a temporary folder. PostgreSQL is the server that DATABASE_URL names, else a private one,
started before pytest because pytest-django reads the settings before any hook of ours could change them. When
none can be had the run fails: half the promise is about PostgreSQL.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit, urlunsplit
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import needs, pgtemp  # noqa: E402

# pytest's exit codes: all passed; nothing was selected.
PASSED, NOTHING = 0, 5
LANES = ("sqlite", "postgresql")
# The runtime: measuring what console and API are tested by would take half as long again.
COVERAGE = (
    *("-m", "slipcover", "--branch", "--skip-covered", "--missing-width", "60"),
    *("--source", "config,jobs", "--omit", "jobs/api/*,*/migrations/*"),
)


@dataclass
class Tally:
    """What the runs so far came to."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    broken: list[str] = field(default_factory=list)
    lacking: Counter[str] = field(default_factory=Counter)

    def add(self, report: Path) -> None:
        """Count the cases of one report of pytest."""
        for case in ElementTree.parse(report).iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif skip is not None:
                self.skipped += 1
                reason = skip.get("message", "")
                if reason.startswith(needs.REASON):
                    self.lacking[reason.removeprefix(needs.REASON)] += 1
            else:
                self.passed += 1


def main(arguments: list[str]) -> int:
    """Run what was asked for, print the sums, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--on", choices=LANES, help="run on this database only")
    parser.add_argument(
        "--part", type=needs.parts_of, default="all", help="with --on: only these parts, comma-separated"
    )
    parser.add_argument("--require", default="", help="fail without these (browser,pgbouncer)")
    options, rest = parser.parse_known_args(arguments)
    wanted = [name for name in options.require.split(",") if name]
    if absent := [name for name in wanted if needs.PROVIDERS[name]() is None]:
        print(f"tests: this machine must have {' and '.join(absent)} for this run, and has not.")
        return 1
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="interlock-tests-") as folder:
        scratch = Path(folder)
        (scratch / "static").mkdir()
        if options.on:
            # A browser's event loop would be in the way of all that follows, so it has a process of its own.
            others = ",".join(part for part in options.part if part != "browser")
            runs = [others] * bool(others) + ["browser"] * ("browser" in options.part)
            _count(options.on, _run_chain(options.on, runs, scratch, rest), tally)
        else:
            _run_both(scratch, rest, tally)
        if not options.on:
            _print_coverage(scratch)
    return _conclude(tally)


def _run_both(scratch: Path, rest: list[str], tally: Tally) -> None:
    """Run the lanes side by side, in six chains: the first speaks, the others are read out at the end.

    What needs no process of its own shares one: each has Django to read, and a database to make. No chain
    takes much more of a processor than another; tests of whole processes wait much, beside the others.
    """
    print("tests: both databases side by side; what is not shown at once follows at the end", flush=True)
    chains: list[tuple[str, tuple[str, ...]]] = [
        ("sqlite", ("plain",)),
        ("sqlite", ("pages,walks",)),
        ("sqlite", ("races,processes", "browser")),
        ("postgresql", ("plain,pages,walks",)),
        ("postgresql", ("processes", "browser")),
        ("postgresql", ("races",)),
    ]
    logs = [scratch / f"{lane}-{_first(parts)}.log" for lane, parts in chains]
    with ThreadPoolExecutor(len(chains)) as beside:
        ran = []
        for (lane, parts), log in list(zip(chains, logs, strict=True))[1:]:
            ran.append(beside.submit(_run_chain, lane, parts, scratch, rest, measure=True, log=log))
        chain = _run_chain(*chains[0], scratch, rest, measure=True)
        for lane, found in zip(
            (lane for lane, _ in chains), [chain, *(r.result() for r in ran)], strict=True
        ):
            _count(lane, found, tally)
    for log in logs[1:]:
        sys.stdout.flush()
        sys.stdout.buffer.write(log.read_bytes())


def _count(lane: str, ran: list[tuple[int, Path]], tally: Tally) -> None:
    for code, report in ran:
        if code not in (PASSED, NOTHING):
            tally.broken.append(lane)
        if report.exists():
            tally.add(report)


def _run_chain(
    lane: str,
    parts: Sequence[str],
    scratch: Path,
    rest: list[str],
    *,
    measure: bool = False,
    log: Path | None = None,
) -> list[tuple[int, Path]]:
    """Run each of `parts` in a process, one after the other on one database; returns exit codes and reports.

    `measure` is for a run on both: the first lane measures coverage, a fifth more work, and runs what asks no
    database.
    """
    beside = measure and lane != LANES[0]
    asking = ["--asking=the-database"] if beside else _few_orders() if measure else []
    ran = []
    with ExitStack() as stack:
        out = stack.enter_context(log.open("wb", buffering=0)) if log else None
        try:
            url = stack.enter_context(_database(lane, scratch, _first(parts), out))
        except pgtemp.NoServer as reason:
            _say(f"tests: nothing ran on PostgreSQL. {reason}", out)
            return [(1, scratch / "nothing")]
        for part in parts:
            _say(f"\ntests: {lane}, {part}", out)
            report = scratch / f"{lane}-{part}.xml"
            command = ["-m", "pytest", f"--part={part}", f"--junit-xml={report}", *asking, *rest]
            if measure and not beside and part == "plain":
                command = [*COVERAGE, "--out", str(scratch / "coverage"), *command]
            ran.append((_timed(f"{lane}, {part}", command, _environment(url, scratch), out), report))
    return ran


def _first(parts: Sequence[str]) -> str:
    """Return what a chain's database and log are named after."""
    return parts[0].partition(",")[0]


def _timed(name: str, command: list[str], environment: dict[str, str], out: IO[bytes] | None) -> int:
    """Run a Python process to its end, and say what time it and its children took; returns its exit code."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=out, stderr=out)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    spent = used.ru_utime + used.ru_stime
    _say(f"tests: {name}: {time.monotonic() - began:.0f} s, {spent:.0f} s of a processor", out)
    return process.returncode


def _few_orders() -> list[str]:
    """Leave the walks through orders of statements to PostgreSQL: on SQLite one transaction begins when the
    other has ended. `--on sqlite` takes them all the same."""
    walks = [path for path in ROOT.glob("tests/races/test_*.py") if "race: Race" in path.read_text("utf-8")]
    return [f"--deselect={path.relative_to(ROOT)}" for path in walks]


def _say(text: str, out: IO[bytes] | None) -> None:
    if out is None:
        print(text, flush=True)
    else:
        out.write(f"{text}\n".encode())


@contextmanager
def _database(lane: str, scratch: Path, name: str, out: IO[bytes] | None) -> Iterator[str]:
    given = os.environ.get("DATABASE_URL", "")
    if lane == "sqlite":
        yield f"sqlite:///{scratch}/{name}.sqlite3"
    elif given.startswith("postgres"):
        _say("tests: using the PostgreSQL that DATABASE_URL names", out)
        yield _named(given, name)
    else:
        # Tests go statement by statement, and a vacuum that came by would hold them up at another each time.
        with pgtemp.server(autovacuum="off") as postgres:
            version = postgres.run("postgres", "--version").stdout.decode().strip()
            _say(f"tests: started a private {version} for this run", out)
            yield postgres.url


def _named(url: str, name: str) -> str:
    """Return the address with a name after which two chains' test databases on one server differ."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path or '/postgres'}_{name}"))


def _environment(url: str, scratch: Path) -> dict[str, str]:
    """Return the settings of a test run: none of this machine's own, and secrets of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    # Hundreds of processes would each compile the source anew.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **kept,
        "ENV_FILE": "",
        "SECRET_KEY": secrets.token_urlsafe(48),
        "AUDIT_KEY": secrets.token_urlsafe(48),
        "DATABASE_URL": url,
        "DATABASE_DIRECT_URL": "",
        "DEBUG": "0",
        "DEMO": "1",
        "HTTPS_ONLY": "0",
        "STATIC_HASHED": "0",
        "MEDIA_ROOT": f"{scratch}/media",
        "STATIC_ROOT": f"{scratch}/static",
        "PYTHONUNBUFFERED": "1",
    }


def _print_coverage(scratch: Path) -> None:
    """Print the lines and branches of the runtime that its own tests did not reach on SQLite."""
    print("\ntests: branch coverage of the runtime, on SQLite", flush=True)
    measured = scratch / "coverage"
    print(measured.read_text("utf-8") if measured.exists() else "tests: it was not measured", flush=True)


def _conclude(tally: Tally) -> int:
    """Print the closing lines and return the exit code: a run without a single test is not a success."""
    for lane in dict.fromkeys(tally.broken):
        print(f"tests: the {lane} lane FAILED")
    print(f"\n{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    lacking = [
        f"{name} ({tally.lacking[name]} tests)" for name, find in needs.PROVIDERS.items() if not find()
    ]
    if lacking:
        print(f"tests: this machine could not provide {len(lacking)}: {', '.join(lacking)}")
    else:
        print("tests: this machine provided everything they ask for")
    return 1 if tally.broken or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
