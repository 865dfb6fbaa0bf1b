"""Lets schemathesis loose on the API for longer than the tests do, with new requests each time: `make fuzz`.

    python -m tests.fuzz [--on sqlite|postgresql] [--examples N] [--walks N]

It is tests/fuzz/test_fuzz.py with everything that is counted up and more that is made up. It ends with the
sums, and with exit code 1 when anything failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.run import LANES, ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", choices=LANES, help="on this database only")
    parser.add_argument("--examples", type=int, default=12, help="made up for each operation")
    parser.add_argument("--walks", type=int, default=60, help="along the links of the description")
    options = parser.parse_args()
    settings = {"FUZZ_EXAMPLES": str(options.examples), "FUZZ_WALKS": str(options.walks)}
    codes = []
    for lane in [options.on] if options.on else LANES:
        command = ["tests/run.py", "--on", lane, "--part", "processes", "-s", "tests/fuzz"]
        codes.append(subprocess.call([sys.executable, *command], cwd=ROOT, env={**os.environ, **settings}))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
