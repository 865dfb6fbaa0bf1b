"""Runs the tests on SQLite and on PostgreSQL: what `make test` calls.

    python tests/run.py                     both databases, with coverage
    python tests/run.py --on sqlite ...     one database (sqlite or postgresql), without
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
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import needs, pgtemp  # noqa: E402

# pytest's exit codes: all passed; nothing was selected.
PASSED, NOTHING = 0, 5
LANES = ("sqlite", "postgresql")


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
            _run_lane(options.on, scratch, rest, tally)
        else:
            _run_both(scratch, rest, tally)
        if not options.on:
            _print_coverage(scratch)
    return _conclude(tally)


def _run_both(scratch: Path, rest: list[str], tally: Tally) -> None:
    """Run the lanes side by side, one for each core: the first speaks, the second is read out at its end."""
    log = scratch / f"{LANES[1]}.log"
    with log.open("wb") as quiet, ThreadPoolExecutor(1) as second:
        print(f"tests: {LANES[1]} runs beside {LANES[0]}; its output follows at the end", flush=True)
        beside = second.submit(_run_lane, LANES[1], scratch, rest, tally, measure=True, out=quiet)
        _run_lane(LANES[0], scratch, rest, tally, measure=True)
        beside.result()
    sys.stdout.flush()
    sys.stdout.buffer.write(log.read_bytes())


def _run_lane(
    lane: str,
    scratch: Path,
    rest: list[str],
    tally: Tally,
    *,
    measure: bool = False,
    out: IO[bytes] | None = None,
) -> None:
    """Run the tests on one database: first all that need no browser, then those that do.

    `measure` is for a run on both: the first lane measures coverage, which costs half as much time again, and
    runs what asks no database.
    """
    beside = measure and lane != LANES[0]
    asking = ["--asking=the-database"] if beside else []
    try:
        with _database(lane, scratch) as url:
            for choice in _parts():
                print(f"\ntests: {lane}, {choice} browser", flush=True)
                report = scratch / f"{lane}-{choice}.xml"
                command = ["-m", "pytest", f"--browser={choice}", f"--junit-xml={report}", *asking, *rest]
                if measure and not beside:
                    command = ["-m", "coverage", "run", *command]
                code = subprocess.call(
                    [sys.executable, *command],
                    cwd=ROOT,
                    env=_environment(url, scratch),
                    stdout=out,
                    stderr=out,
                )
                if code not in (PASSED, NOTHING):
                    tally.broken.append(lane)
                if report.exists():
                    tally.add(report)
    except pgtemp.NoServer as reason:
        print(f"tests: nothing ran on PostgreSQL. {reason}")
        tally.broken.append(lane)


def _parts() -> list[str]:
    """Return the values of --browser to run with; a second process for no test would cost seconds."""
    drives = any("mark.browser" in path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    return ["without", "only"] if drives else ["without"]


@contextmanager
def _database(lane: str, scratch: Path) -> Iterator[str]:
    given = os.environ.get("DATABASE_URL", "")
    if lane == "sqlite":
        yield f"sqlite:///{scratch}/lane.sqlite3"
    elif given.startswith("postgres"):
        print("tests: using the PostgreSQL that DATABASE_URL names")
        yield given
    else:
        with pgtemp.server() as postgres:
            version = postgres.run("postgres", "--version").stdout.decode().strip()
            print(f"tests: started a private {version} for this run")
            yield postgres.url


def _environment(url: str, scratch: Path) -> dict[str, str]:
    """Return the settings of a test run: none of this machine's own, and secrets of its own."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")},
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
        "COVERAGE_FILE": f"{scratch}/coverage",
        "PYTHONUNBUFFERED": "1",
    }


def _print_coverage(scratch: Path) -> None:
    """Print the lines and branches that neither database reached."""
    coverage = [sys.executable, "-m", "coverage"]
    environment = {**os.environ, "COVERAGE_FILE": f"{scratch}/coverage"}
    print("\ntests: branch coverage, of the lane on SQLite", flush=True)
    for command in (["combine", "--quiet", str(scratch)], ["report"]):
        subprocess.call([*coverage, *command], cwd=ROOT, env=environment)


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
