"""The web server that is fuzzed, before the database of the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connections

from bench.web import START_SECONDS, answers
from tests.processes.databases import ground_of
from tests.run import ROOT

RATES = {f"INTERLOCK_RATE_{name}": "0" for name in ("READ", "ENQUEUE", "WORKER", "OPERATE")}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run gunicorn for the length of the block; yields its address."""
    url = ground_of("default", folder).url(connections["default"].settings_dict["NAME"])
    log = folder / "web.log"
    with socket.socket() as listener, log.open("wb") as out:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        command = ["-m", "gunicorn", "--config", "python:config.web", "--bind", f"fd://{listener.fileno()}"]
        web = subprocess.Popen(
            [sys.executable, *command, "tests.fuzz.site:application"],
            cwd=ROOT,
            env={**os.environ, **RATES, "DATABASE_URL": url, "DATABASE_DIRECT_URL": ""},
            pass_fds=[listener.fileno()],
            stdout=out,
            stderr=out,
        )
        port = listener.getsockname()[1]
    try:
        end = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            started = web.poll() is None and time.monotonic() < end
            assert started, f"the web server did not start\n{log.read_text(errors='replace')[-2000:]}"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        web.terminate()
        web.wait()
