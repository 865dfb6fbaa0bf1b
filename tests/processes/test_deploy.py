"""Starting: next to workers of another release, with a set-up that cannot work, with nobody to talk to."""

from __future__ import annotations

import os
import signal

import pytest

from jobs.status import JobStatus
from tests.processes.installation import Installation


def test_an_old_worker_leaves_kinds_it_does_not_know_to_a_new_one(installation: Installation) -> None:
    """A rolling deploy: both serve the same queue, and only one has the new code."""
    new = installation.enqueue("proc.new")
    old_worker = installation.start()
    known = installation.enqueue("proc.trace")
    installation.until_succeeded(known)
    job = installation.job(new)
    assert (job.status, job.attempt_count, job.hold_reason) == (JobStatus.PENDING, 0, "")

    new_worker = installation.start(environment={"PROCESSES_NEW_RELEASE": "1"})
    installation.until_succeeded(new)
    assert [trace.pid for trace in installation.traces(new)] == [new_worker.pid]
    assert [a.generation for a in installation.attempts(new)] == [1]
    assert old_worker.process.poll() is None


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"INTERLOCK_HEARTBEAT_SECONDS": "30"},
            "INTERLOCK_HEARTBEAT_SECONDS must be at most a third of INTERLOCK_LEASE_SECONDS.",
        ),
        (
            {"INTERLOCK_HEARTBEAT_SECONDS": "15", "PROCESSES_SHORT_LEASE": "40"},
            "kind proc.short has a lease of 40 s, which must be at least three heartbeats of 15 s",
        ),
        (
            {"INTERLOCK_FAILPOINTS": "commit.before=kill"},
            "INTERLOCK_FAILPOINTS is for tests only",
        ),
    ],
    ids=["lease", "lease of a kind", "failpoints"],
)
def test_a_worker_that_cannot_work_right_does_not_start(
    installation: Installation, environment: dict[str, str], sentence: str
) -> None:
    job_id = installation.enqueue("proc.trace")
    worker = installation.start(cold=True, environment=environment)
    assert worker.wait() == 1
    assert sentence in worker.said
    assert "Traceback" not in worker.said
    assert installation.job(job_id).attempt_count == 0


def test_it_works_when_nobody_reads_what_it_writes(installation: Installation) -> None:
    """Its output was a pipe to somebody who has gone: every line fails to be written."""
    read, write = os.pipe()
    worker = installation.start(output=write)
    os.close(write)
    assert os.read(read, 7) == b"worker "
    os.close(read)
    _still_works(installation)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_it_works_without_any_output(installation: Installation) -> None:
    """Descriptors 0, 1 and 2 are closed, so that the first things it opens get these numbers."""
    parent = installation.start("--processes", "2", shell='exec "$0" "$@" <&- >&- 2>&-')
    _still_works(installation)
    parent.signal(signal.SIGTERM)
    assert parent.wait() == 0


def _still_works(installation: Installation) -> None:
    # One of them is retried, which is logged.
    for kind in ("proc.fail_first", "proc.trace"):
        job_id = installation.enqueue(kind)
        installation.until_succeeded(job_id)
