"""Announcements of new work: none is swallowed by the pause between two, not even at a process's end."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.db import connection, connections

from jobs import wake
from tests.build import KIND
from tests.races.ground import queue
from tests.races.test_processes import ROOT, environment

TWICE = """
import sys

import django

django.setup()
from jobs import wake
from jobs.handlers import Options
from jobs.models import Job

wake.WINDOW = 0.5  # long enough for both to fall into one
for _ in range(2):
    Job.objects.enqueue(sys.argv[1], {}, options=Options(queue=sys.argv[2]))
"""


@pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database sends no notifications"
)
def test_a_process_that_enqueues_twice_and_ends_at_once_has_announced_both(transactional_db: None) -> None:
    name = queue()
    listener: Any = connections.create_connection("default")
    with listener.cursor() as cursor:
        cursor.execute(f"LISTEN {wake.CHANNEL}")
    subprocess.run(
        [sys.executable, "-c", TWICE, KIND, name], cwd=ROOT, env=environment(), check=True, timeout=60
    )
    heard = [n.payload for n in listener.connection.notifies(timeout=5, stop_after=2)]
    listener.close()
    assert heard == [name, name]


def test_a_forked_process_does_not_wait_for_its_parents_announcement() -> None:
    wake._trailing._due["default", "documents"] = float("inf")
    try:
        child = os.fork()
        if child == 0:
            os._exit(len(wake._trailing._due))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert wake._trailing._due, "the parent's own goes on"
    finally:
        wake._trailing._due.clear()
