"""Lets schemathesis loose on a running server: `make fuzz`, a longer run than CI's (docs/api.md).

    python -m tests.fuzz [--on sqlite|postgresql] [--examples N] [--walks N]

A throw-away database, gunicorn before it, and a run for each way to say who asks. It ends with the sums, and
with exit code 1 when anything failed. What it finds becomes a test of its own in tests/api.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.web import START_SECONDS, answers
from tests import run
from tests.run import ROOT

PHASES = ("stateful", "coverage,fuzzing")
"""First the walks: what comes after them closes claims and pauses queues."""
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,ignored_auth"
)
"""Not: whether all that fits the description is taken. It cannot tell which kinds of jobs there are, say."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", choices=run.LANES, help="on this database only")
    parser.add_argument("--examples", type=int, default=12, help="made up for each operation")
    parser.add_argument("--walks", type=int, default=60, help="along the links of the description")
    parser.add_argument("--callers", default="", help="only these, parted by commas (session,nobody)")
    options = parser.parse_args()
    wanted = [name for name in options.callers.split(",") if name]
    sums: Counter[str] = Counter()
    failed: set[str] = set()
    for lane in [options.on] if options.on else run.LANES:
        with tempfile.TemporaryDirectory(prefix="interlock-fuzz-") as folder:
            scratch = Path(folder)
            (scratch / "static").mkdir()
            with run._database(lane, scratch, "fuzz", None) as url:
                environment = run._environment(url, scratch) | {
                    f"INTERLOCK_RATE_{name}": "0" for name in ("READ", "ENQUEUE", "WORKER", "OPERATE")
                }
                with _serving(environment, scratch / "web.log") as root:
                    callers = _callers(environment)
                    for phases, mode in itertools.product(PHASES, wanted or callers):
                        name = f"{lane}, {mode}, {phases}"
                        print(f"fuzz: {name}", flush=True)
                        most = options.walks if phases == "stateful" else options.examples
                        code, sums[name] = _attack(root, callers[mode], phases, most, environment)
                        failed |= {name} if code else set()
    for name, cases in sums.items():
        print(f"fuzz: {name}: {cases} test cases, {'FAILED' if name in failed else 'passed'}")
    print(f"fuzz: {sums.total()} test cases in all")
    return 1 if failed else 0


@contextmanager
def _serving(environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run the web server on a new database for the length of the block; yields its address."""
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    with socket.socket() as listener, log.open("wb") as out:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        command = ["-m", "gunicorn", "--config", "python:config.web", "--bind", f"fd://{listener.fileno()}"]
        web = subprocess.Popen(
            [sys.executable, *command, "tests.fuzz.site:application"],
            cwd=ROOT,
            env=environment,
            pass_fds=[listener.fileno()],
            stdout=out,
            stderr=out,
        )
        port = listener.getsockname()[1]
    try:
        end = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            if web.poll() is not None or time.monotonic() > end:
                sys.exit(f"fuzz: the web server did not start\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        web.terminate()
        web.wait()


def _callers(environment: dict[str, str]) -> dict[str, list[str]]:
    """Return the headers of each sort of caller, whom another process has written."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.callers"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, list[str]] = {}
    for line in made.stdout.splitlines():
        mode, _tab, header = line.partition("\t")
        found.setdefault(mode, []).extend([header] if header else [])
    return found


def _attack(
    root: str, headers: list[str], phases: str, most: int, environment: dict[str, str]
) -> tuple[int, int]:
    """Run schemathesis once; returns its exit code and its test cases, each a request or more."""
    # A session stays what it is, whatever is put into the header of tokens.
    bearer = any(header.startswith("Authorization") for header in headers)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", "tests/fuzz/schemathesis.toml"),
        *("run", "docs/openapi.yaml", "--url", root),
        *("--mode", "all", "--phases", phases, "--max-examples", str(most)),
        *("--checks", CHECKS if bearer else CHECKS.replace(",ignored_auth", "")),
        *("--request-timeout", "30", "--suppress-health-check", "all", "--no-color"),
        # It would put a made-up token beside the session, and nothing would get past it.
        *("--generation-with-security-parameters", str(bearer).lower()),
        *(part for header in headers for part in ("--header", header)),
    ]
    hooks = environment | {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, cwd=ROOT, env=hooks | {"PATH": os.defpath}, capture_output=True, text=True)
    print(said.stdout, said.stderr[-2000:], flush=True)
    found = re.search(r"(\d+) generated", said.stdout)
    return (said.returncode, int(found[1])) if found else (1, 0)


if __name__ == "__main__":
    sys.exit(main())
