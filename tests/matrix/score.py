"""`make mutants`: break each named predicate of each guarded statement, and print which the matrix notices.

python -m tests.matrix.score [--on postgresql]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.matrix.mutants import Mutant
from tests.matrix.predicates import REDUNDANT

ROOT = Path(__file__).resolve().parents[2]
WHERE = "MUTANTS_TOLD"


def tell(mutant: Mutant, noticed: bool) -> None:
    """Write down what became of a mutant, where somebody asked for the list."""
    if path := os.environ.get(WHERE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{'killed' if noticed else 'alive':8}{' '.join(str(mutant).split())}\n")


def main(arguments: list[str]) -> int:
    """Run the tests of the mutants, print the list and the score, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        told.touch()
        lane = arguments or ["--on", "sqlite"]
        command = ["tests/run.py", *lane, "--part", "walks", "tests/matrix/test_mutants.py", "-q"]
        ran = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, WHERE: str(told)},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = sorted(told.read_text("utf-8").splitlines())
    print("\n".join(lines))
    alive = [line for line in lines if line.startswith("alive")]
    killed = len(lines) - len(alive)
    print(f"\n{killed} of {len(lines)} mutants killed; {len(REDUNDANT)} are known to change nothing")
    if ran.returncode:
        print(ran.stdout[-3000:], ran.stderr[-3000:], file=sys.stderr)
    return ran.returncode or int(not lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
