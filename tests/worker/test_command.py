"""manage.py runworker, as a process: its options, its exit codes, and what it may not load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from jobs.models import Worker as WorkerRow

ROOT = Path(__file__).resolve().parent.parent.parent


def environment(**more: str) -> dict[str, str]:
    """Return the settings of this test's database, for another process."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{found['NAME']}"
    else:
        host = found["HOST"]
        url = f"postgresql://{found['USER']}@/{found['NAME']}?host={host}"
        url += f"&port={found['PORT']}" if found["PORT"] else ""
    return {**os.environ, "DATABASE_URL": url, **more}


def start(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "runworker", *options],
        cwd=ROOT,
        env=environment(),
        stderr=subprocess.PIPE,
    )


def first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return process.stderr.readline().decode()


@pytest.mark.parametrize(
    "options",
    [
        ["--queues", ","],
        ["--queues", "mail;print"],
        ["--queues", "\udcff"],
        ["--concurrency", "0"],
        ["--concurrency", "-1"],
        ["--grace", "soon"],
        ["--grace", "-1"],
    ],
)
def test_a_wrong_option_is_refused(options: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("runworker", *options)


def test_a_wrong_failpoint_is_refused_with_a_sentence(settings: Any) -> None:
    settings.FAILPOINTS = "nowhere=kill"
    with pytest.raises(CommandError, match="is no failpoint"):
        call_command("runworker", "--once")


@pytest.mark.django_db(transaction=True)
def test_drained_it_ends_with_code_0_and_has_told_its_id_first() -> None:
    process = start("--drain")
    line = first_line(process)
    process.communicate(timeout=60)
    assert process.returncode == 0
    worker = WorkerRow.objects.get()
    assert line.startswith(f"worker {worker.id}: ")
    assert worker.stopped_at is not None


@pytest.mark.looks_alike
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_an_idle_worker_with_code_0(number: signal.Signals) -> None:
    process = start()
    first_line(process)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.looks_alike
@pytest.mark.django_db(transaction=True)
def test_it_works_with_stdout_closed_and_nobody_reading_its_log() -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {sys.executable} manage.py runworker --drain >&-"],
        cwd=ROOT,
        env=environment(),
        stderr=write,
    )
    os.close(write)
    os.close(read)
    assert process.wait(60) == 0


@pytest.mark.looks_alike
@pytest.mark.django_db(transaction=True)
def test_without_a_database_it_waits_and_still_stops_when_told_to() -> None:
    broken = environment(DATABASE_URL="postgresql://nobody@127.0.0.1:1/nowhere")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "runworker"], cwd=ROOT, env=broken, stderr=subprocess.PIPE
    )
    first_line(process)
    assert process.stderr is not None
    assert b"loop failed, goes on" in process.stderr.readline()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_worker_loads_neither_the_api_nor_the_console() -> None:
    program = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; django.setup();"
        "import jobs.management.commands.runworker;"
        "print([m for m in ('rest_framework.views', 'config.urls', 'jobs.api.urls', 'console.pages')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.django_db(transaction=True)
def test_two_processes_drain_together_and_the_parent_ends_with_code_0() -> None:
    process = start("--processes", "2", "--drain")
    _, log = process.communicate(timeout=120)
    assert process.returncode == 0
    assert WorkerRow.objects.filter(stopped_at__isnull=False).count() == 2
    assert log.decode().count("\nworker ") == 2


@pytest.mark.looks_alike
@pytest.mark.django_db(transaction=True)
def test_a_signal_to_the_parent_stops_its_children_in_order() -> None:
    process = start("--processes", "2")
    while WorkerRow.objects.count() < 2:
        threading.Event().wait(0.05)
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert WorkerRow.objects.filter(stopped_at__isnull=False).count() == 2
