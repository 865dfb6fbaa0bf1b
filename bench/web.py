"""A web server of the product's, one gunicorn process, and a token for it."""

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from bench.failed import BenchFailed
from bench.procs import Workers
from bench.sides import Side

START_SECONDS = 60.0


@contextmanager
def serving(side: Side, url: str, folder: Path, **settings: str) -> Iterator[tuple[Workers, str]]:
    """Run the web server for the length of the block; yields it and the API's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.web", "config.wsgi:application"]
    environment = side.environment(url) | {"WEB_PORT": str(port), "STATIC_HASHED": "0", **settings}
    environment |= {"PATH": os.environ["PATH"]}
    with Workers(command, environment, 1, folder / "web.log") as web:
        root = f"http://127.0.0.1:{port}"
        end = monotonic() + START_SECONDS
        while not answers(f"{root}/readyz"):
            web.check()
            if monotonic() > end:
                raise BenchFailed(f"the web server was not ready: {web.last_words()}")
            sleep(0.05)
        yield web, f"{root}/api/v1"


def answers(url: str) -> bool:
    """Whether the address answers well."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
