"""Whole processes against each other on one database, whatever it can lock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from jobs.handlers import Options
from jobs.models import Attempt, Job
from tests.build import KIND
from tests.races.ground import queue

ROOT = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """Return this process's settings, with the test's own database."""
    name = str(connection.settings_dict["NAME"])
    given = urlsplit(os.environ["DATABASE_URL"])
    url = f"sqlite:///{name}" if given.scheme == "sqlite" else urlunsplit(given._replace(path=f"/{name}"))
    return {
        **os.environ,
        "DATABASE_URL": url,
        "SECRET_KEY": settings.SECRET_KEY,
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def test_four_processes_drain_two_hundred_jobs_each_claimed_once_and_none_left(
    transactional_db: None,
) -> None:
    name = queue()
    added = Job.objects.enqueue_many([(KIND, {}, Options(queue=name))] * 200)
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.races.drain", name],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    first = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout is not None
        first.append(worker.stdout.readline())
    said = [worker.communicate("\n", timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, [err for _, err in said]
    lines = [line.split() for line in first] + [line.split() for out, _ in said for line in out.splitlines()]
    assert Counter(job_id for job_id, _, _ in lines) == Counter(entry.job_id.hex for entry in added)
    assert {tuple(rest) for _, *rest in lines} == {("1", "COMMITTED")}
    assert set(Job.objects.filter(queue=name).values_list("status", "claim_generation")) == {("succeeded", 1)}
    assert Attempt.objects.filter(job__queue=name).count() == 200
    assert "database is locked" not in "".join(err for _, err in said)
