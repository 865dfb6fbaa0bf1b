"""The product's web server as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.processes.warm import ROOT


def start(
    application: str, settings: Mapping[str, str], log: Path, *, backlog: int = 512
) -> tuple[subprocess.Popen[bytes], str]:
    """Start gunicorn on a free port; returns the process and its address.

    The port takes connections from now on: who asks before the server is ready waits for it, and is refused
    when it has ended.
    """
    with socket.socket() as listener, log.open("wb") as out:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        command = ["-m", "gunicorn", "--config", "python:config.web", "--bind", f"fd://{listener.fileno()}"]
        process = subprocess.Popen(
            [sys.executable, *command, application],
            cwd=ROOT,
            env={**os.environ, "DATABASE_DIRECT_URL": "", **settings},
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        return process, f"http://127.0.0.1:{listener.getsockname()[1]}"
