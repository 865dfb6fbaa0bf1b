"""A worker that is killed anywhere loses nothing and does nothing twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jobs.failpoints import NAMES
from jobs.status import JobStatus
from tests.processes.installation import Installation, committed, generations_only_grow

KINDS = {"fail": "proc.fail_first", "release": "proc.gate", "renew": "proc.gate", "beat": "proc.gate"}


@pytest.mark.parametrize("point", sorted(NAMES))
def test_a_worker_killed_at_any_point_leaves_a_job_that_succeeds_once(
    installation: Installation, point: str
) -> None:
    verb = point.partition(".")[0]
    kind = KINDS.get(verb, "proc.trace")
    gate = {"gate": installation.file("gate")} if kind == "proc.gate" else {}
    job_id = installation.enqueue(kind, file=installation.file("trace"), **gate)
    if verb == "recover":
        # Somebody died before: the victim finds an expired lease and dies over that.
        lease = installation.jobs.claim_job(job_id, worker_id="gone:1:first")
        assert lease is not None
        _raise(installation)
    # A beat is written at the start too, when nothing is held yet; die at the second.
    nth = "@2" if verb == "beat" else ""
    grace = ["--grace", "0"] if verb == "release" else []
    victim = installation.start(*grace, failpoints=f"{point}=kill{nth}")
    if verb == "release":
        installation.until(lambda: installation.traces(), "the handler's start")
        victim.signal(signal.SIGTERM)
    assert victim.wait() == -signal.SIGKILL, victim.said

    _raise(installation)  # what the victim held is over now; its lease need not be waited for
    open_gate(installation)
    installation.drain()

    job, attempts = installation.job(job_id), installation.attempts(job_id)
    assert job.status == JobStatus.SUCCEEDED, (job.error_code, job.error_message)
    assert len(list(committed(attempts))) == 1
    assert generations_only_grow(attempts)
    assert not [a for a in attempts if a.status == "running"]
    # Code that ran again is permitted; code that ran again after its result was committed is not.
    last = max(generation for _, generation, _, _ in installation.traces())
    assert last == next(committed(attempts)).generation


def _raise(installation: Installation) -> None:
    epoch = installation.jobs.runtime.current_epoch()
    installation.jobs.raise_epoch(expected=epoch, actor="test", reason="the worker is gone")


def open_gate(installation: Installation) -> None:
    Path(installation.file("gate")).touch()


def test_an_expired_lease_is_taken_back_by_a_running_worker_without_a_restart(
    installation: Installation,
) -> None:
    job_id = installation.enqueue("proc.trace", file=installation.file("trace"))
    victim = installation.start(failpoints="commit.before=kill")
    survivor_log = victim.wait()
    assert survivor_log == -signal.SIGKILL
    installation.start()
    installation.until(lambda: installation.job(job_id).status == JobStatus.SUCCEEDED, "the recovery")
    assert [a.status for a in installation.attempts(job_id)] == ["lost", "committed"]


def test_a_job_that_kills_its_worker_ends_and_the_others_finish(installation: Installation) -> None:
    killer = installation.enqueue("proc.kill", file=installation.file("killed"))
    innocent = [installation.enqueue("proc.trace", file=installation.file("trace")) for _ in range(50)]
    parent = installation.start("--processes", "2", "--concurrency", "2")
    everyone = [killer, *innocent]
    installation.until(
        lambda: all(installation.job(i).status in ("succeeded", "failed") for i in everyone),
        "the end of all jobs",
        120,
    )
    assert installation.job(killer).status == JobStatus.FAILED
    assert installation.job(killer).error_code == "LEASE_TIMEOUT_MAX_ATTEMPTS"
    assert [a.status for a in installation.attempts(killer)] == ["lost"] * 3
    assert {installation.job(i).status for i in innocent} == {"succeeded"}
    parent.signal(signal.SIGTERM)
    assert parent.wait() == 0, parent.said


def test_children_do_not_outlive_a_killed_parent(installation: Installation) -> None:
    job_id = installation.enqueue(
        "proc.gate", file=installation.file("trace"), gate=installation.file("gate")
    )
    parent = installation.start("--processes", "2")
    installation.until(lambda: installation.traces(), "the handler's start")
    child = installation.traces()[0][2]
    assert child != parent.process.pid
    parent.signal(signal.SIGKILL)

    def gone() -> bool:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        # A zombie that nobody has reaped is gone too.
        return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"

    installation.until(gone, "the child's end")
    assert installation.job(job_id).status == JobStatus.RUNNING
