"""Resolves the dependencies and writes the locks: versions and hashes, and no index's name."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = [
    ("uv.txt", "3.11", ["uv.in"], None),
    ("runtime.txt", "3.11", ["runtime.in"], "lts.in"),
    # The same run-time versions again, so that what is tested is what is shipped.
    ("dev.txt", "3.11", ["runtime.txt", "dev.in"], None),
    ("latest.txt", "3.12", ["runtime.in", "dev.in"], "newest.in"),
    ("bench.txt", "3.11", ["bench.in"], None),
]
# Never --emit-index-url: the locks install from whichever index a machine uses.
COMPILE = [
    *("-m", "uv", "pip", "compile", "--quiet", "--universal"),
    *("--generate-hashes", "--no-header", "--no-annotate"),
]

for lock, python, sources, narrowed in LOCKS:
    print(f"lock: requirements/{lock}", flush=True)
    limits = ["--constraint", narrowed] if narrowed else []
    command = [*COMPILE, "--python-version", python, *limits, "--output-file", lock, *sys.argv[1:], *sources]
    if subprocess.call([sys.executable, *command], cwd=HERE):
        sys.exit(f"lock: requirements/{lock} could not be resolved.")
