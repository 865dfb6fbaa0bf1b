"""What a handler does to its process: the job ends, the others finish, the work goes on."""

from __future__ import annotations

import signal

from tests.processes.installation import Installation


def test_a_job_that_kills_its_worker_ends_and_the_others_finish(installation: Installation) -> None:
    installation.lease_seconds = 3
    poison = {
        installation.enqueue("proc.kill"): 2,  # its budget: it kills one worker, and one more
        installation.enqueue("proc.leave"): 1,
        installation.enqueue("proc.segfault"): 1,
    }
    innocent = installation.enqueue_many("proc.trace", 50)
    parent = installation.start("--processes", "2", "--concurrency", "2")
    installation.until(installation.all_ended, "the end of all jobs")

    for job_id, budget in poison.items():
        job = installation.job(job_id)
        assert (job.status, job.error_code) == ("failed", "LEASE_TIMEOUT_MAX_ATTEMPTS")
        assert [a.status for a in installation.attempts(job_id)] == ["lost"] * budget
        # Fewer, where the process was killed by another before this one began.
        assert len(installation.traces(job_id)) <= budget
    assert {installation.status(job_id) for job_id in innocent} == {"succeeded"}
    # Each killed the process that it ran in, and the parent has replaced each.
    dead = {trace.pid for job_id in poison for trace in installation.traces(job_id)}
    assert dead
    assert dead < set(parent.children)
    installation.until(lambda: len(parent.children) == 2 + len(dead), "the last replacement")
    parent.signal(signal.SIGTERM)
    assert parent.wait() == 0, parent.said


def test_a_job_that_wants_to_exit_or_all_memory_ends_alone(installation: Installation) -> None:
    quits = installation.enqueue("proc.quit")
    devours = installation.enqueue("proc.devour", gigabytes=16)
    innocent = installation.enqueue_many("proc.trace", 20)
    worker = installation.start("--drain", "--concurrency", "2", shell='ulimit -v 8000000; exec "$0" "$@"')
    assert worker.wait() == 0, worker.said

    assert installation.job(quits).error_code == "RUNTIME_HANDLER_EXITED"
    assert installation.job(devours).error_code == "RUNTIME_HANDLER_EXCEPTION"
    assert installation.job(devours).error_message.startswith("MemoryError")
    for job_id in (quits, devours):
        assert installation.status(job_id) == "failed"
        assert [a.status for a in installation.attempts(job_id)] == ["failed"]
    assert {installation.status(job_id) for job_id in innocent} == {"succeeded"}
    assert {trace.pid for trace in installation.traces()} == {worker.pid}


def test_a_child_that_a_handler_forked_runs_nobody_elses_job_and_ends(installation: Installation) -> None:
    codes = {"returns": "0", "raises": "1", "exits": "3"}
    forks = {how: installation.enqueue("proc.fork", how=how) for how in codes}
    innocent = installation.enqueue_many("proc.trace", 30)  # claimed ahead, and waiting in the same process
    worker = installation.start("--drain", "--concurrency", "1")
    assert worker.wait() == 0, worker.said
    for how, job_id in forks.items():
        assert [(a.status, a.result) for a in installation.attempts(job_id)] == [("committed", codes[how])]
    assert {installation.status(job_id) for job_id in innocent} == {"succeeded"}
    assert len(installation.traces()) == 33
    assert {trace.pid for trace in installation.traces()} == {worker.pid}
