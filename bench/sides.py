"""Who is measured: the product and, on PostgreSQL, a peer."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench import marks
from bench.failed import BenchFailed
from bench.procs import ROOT, Workers, run_client

PEER_PYTHON = ROOT / ".venv-bench/bin/python"


@dataclass(frozen=True)
class Side:
    """How to drive one job runner.

    `unfinished` and `finished` are SQL that counts: nothing is left, and every job left its proof, when they
    are 0 and the number of jobs.
    """

    name: str
    client: tuple[str, ...]
    worker: tuple[str, ...]
    unfinished: str
    finished: str
    note: str
    settings: dict[str, str] = field(default_factory=dict)

    def ask(self, url: str, verb: str, *numbers: int) -> Any:
        """Run a client (see verbs.py) and return what it answered."""
        return json.loads(run_client([*self.client, verb, *map(str, numbers)], self.environment(url)))

    def workers(self, url: str, count: int, folder: Path) -> Workers:
        """Return `count` workers, not started yet, whose job bodies leave their marks in `folder`."""
        environment = self.environment(url) | {marks.FOLDER: str(folder)}
        return Workers([*self.worker], environment, count, folder / "log")

    def others(self, url: str, verb: str, *numbers: int, count: int, folder: Path) -> Workers:
        """Return `count` clients that go on until they are stopped."""
        command = [*self.client, verb, *map(str, numbers)]
        return Workers(command, self.environment(url), count, folder / "log")

    def environment(self, url: str) -> dict[str, str]:
        """Return what a process of this side is started with."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return kept | self.settings | {"DATABASE_URL": url}


def product() -> Side:
    """Return the product itself, with the settings that it has out of the box."""
    return Side(
        name="interlock",
        client=(sys.executable, "-m", "bench.client"),
        worker=(sys.executable, "manage.py", "runworker", "--queues", "bench"),
        unfinished="SELECT count(*) FROM jobs_job WHERE finished_at IS NULL",
        finished=(
            "SELECT count(*) FROM jobs_job j JOIN jobs_attempt a ON a.id = j.result_commit_id"
            " WHERE j.status = 'succeeded' AND a.status = 'committed' AND j.attempt_count = 1"
        ),
        note="`manage.py runworker` with its defaults; each job has an attempt row and passes the full fence",
        settings={
            "DJANGO_SETTINGS_MODULE": "bench.settings",
            "ENV_FILE": "",
            "SECRET_KEY": secrets.token_urlsafe(48),
            "AUDIT_KEY": secrets.token_urlsafe(48),
            "DEMO": "0",
        },
    )


def pgqueuer() -> Side:
    """Return the peer pgqueuer, installing it into an environment of its own if need be."""
    _install_peers()
    return Side(
        name="pgqueuer",
        client=(str(PEER_PYTHON), "-m", "bench.peer_pgqueuer"),
        worker=(str(PEER_PYTHON), "-m", "bench.peer_pgqueuer", "work"),
        unfinished="SELECT count(*) FROM pgqueuer",
        finished="SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
        note=f"pgqueuer {peer_version('pgqueuer')} on asyncpg {peer_version('asyncpg')}"
        f" and uvloop {peer_version('uvloop')}, batches of 500; it keeps no attempts and its completion is"
        " unconditional",
    )


PEERS = {"pgqueuer": pgqueuer}


@cache
def peer_version(package: str) -> str:
    """Return the version of a package in the peers' environment."""
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    return run_client([str(PEER_PYTHON), "-c", ask], {})


def _install_peers() -> None:
    lock, stamp = ROOT / "requirements/bench.txt", ROOT / ".venv-bench/.bench"
    if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime and _same_python():
        return
    # What is there may be of another Python; the installer keeps an environment that runs.
    shutil.rmtree(stamp.parent, ignore_errors=True)
    if subprocess.call([sys.executable, "requirements/install.py", "bench"], cwd=ROOT):
        raise BenchFailed("the peer could not be installed; without --peer nothing needs to be.")


def _same_python() -> bool:
    """Whether the peers run on the Python that we run on: builds of one version differ in speed."""
    prefix = run_client([str(PEER_PYTHON), "-c", "import sys; print(sys.base_prefix)"], {})
    return prefix == sys.base_prefix
