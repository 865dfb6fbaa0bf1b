"""Several processes under one parent: what dies is replaced, and nothing outlives the parent."""

from __future__ import annotations

import os
import resource
import signal

from jobs.status import JobStatus
from tests.processes.installation import Installation, state_of


def test_children_that_are_killed_are_replaced_and_finish_before_they_stop(
    installation: Installation,
) -> None:
    installation.lease_seconds = 3
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    parent = installation.start("--processes", "2", "--grace", "60")
    installation.until_begun(job_id)
    killed = parent.children
    for child in killed:  # both, so that the replacements have to do the work
        os.kill(child, signal.SIGKILL)
    installation.lengthen(job_id)
    installation.until(lambda: len(parent.children) == 4, "the replacements")
    installation.until_traces(2)  # one of them has taken the job over
    assert installation.traces()[0].pid in killed
    assert installation.traces()[1].pid in parent.children[2:]
    # A stop is passed on, and the handler that runs may finish.
    parent.signal(signal.SIGTERM)
    installation.until(lambda: '"stopping"' in parent.said, "the signal's effect")
    installation.open_gate()
    assert parent.wait() == 0, parent.said
    assert installation.status(job_id) == JobStatus.SUCCEEDED
    assert [a.status for a in installation.attempts(job_id)] == ["lost", "committed"]


def test_children_do_not_outlive_a_killed_parent(installation: Installation) -> None:
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    parent = installation.start("--processes", "2", "--grace", "0")
    installation.until_begun(job_id)
    parent.signal(signal.SIGKILL)
    installation.until(lambda: all(state_of(child) == "Z" for child in parent.children), "the children's end")
    # They stopped in an orderly way. Who hears of it last may take what the other has given back, and gives
    # it back too.
    assert installation.status(job_id) == JobStatus.PENDING
    assert {a.status for a in installation.attempts(job_id)} == {"released"}


def test_a_stop_that_comes_while_children_start_is_a_clean_one(installation: Installation) -> None:
    parent = installation.start("--processes", "2")
    installation.until(lambda: len(parent.children) == 2, "the children's start")
    parent.signal(signal.SIGTERM)
    assert parent.wait() == 0, parent.said


def test_a_machine_that_has_no_descriptor_left_costs_no_parent(installation: Installation) -> None:
    parent = installation.start("--processes", "2")
    installation.until(lambda: len(parent.children) == 2, "the children's start")
    usual = resource.prlimit(parent.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(parent.pid, resource.RLIMIT_NOFILE, (4, usual[1]))
    os.kill(parent.children[0], signal.SIGKILL)
    installation.until(lambda: '"child not started"' in parent.said, "the shortage")
    resource.prlimit(parent.pid, resource.RLIMIT_NOFILE, usual)
    installation.until_succeeded(installation.enqueue("proc.trace"))
    parent.signal(signal.SIGTERM)
    assert parent.wait() == 0, parent.said
