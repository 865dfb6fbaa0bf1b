"""A worker that is killed anywhere loses nothing and does nothing twice.

For each failpoint a worker is started that dies there, on a job in a queue of the point's own. What it left
is written down, then everybody is fenced and one survivor finishes all of it. The processes are started once,
in the set-up of the first test; each point is then judged by itself.
"""

from __future__ import annotations

import signal
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from jobs.failpoints import NAMES
from jobs.models import Attempt, Job
from jobs.status import JobStatus
from tests.processes.conftest import Install
from tests.processes.installation import (
    Installation,
    Trace,
    WorkerProcess,
    committed_once,
)


class Left(NamedTuple):
    """What is found after a death: the job's status, its attempts', how often the handler was begun."""

    status: str
    attempts: list[str]
    begun: int


UNTOUCHED = Left("pending", [], 0)
CLAIMED = Left("running", ["running"], 0)
RUNNING = Left("running", ["running"], 1)
LEFT = {
    "claim.before": UNTOUCHED,
    "claim.sent": UNTOUCHED,
    "claim.after": CLAIMED,
    "run.before": CLAIMED,
    "run.after": RUNNING,
    "commit.before": RUNNING,
    "commit.sent": RUNNING,
    "commit.after": Left("succeeded", ["committed"], 1),
    "fail.before": RUNNING,
    "fail.sent": RUNNING,
    "fail.after": Left("pending", ["failed"], 1),
    "release.before": RUNNING,
    "release.after": Left("pending", ["released"], 1),
    "renew.before": RUNNING,
    "renew.sent": RUNNING,
    "renew.after": RUNNING,
    "beat.before": RUNNING,
    "beat.after": RUNNING,
    # Somebody else had died before, and the victim was about to take that job back.
    "recover.before": CLAIMED,
    "recover.sent": CLAIMED,
    "recover.after": Left("pending", ["lost"], 0),
}
POINTS = sorted(name for name in NAMES if not name.startswith(("grant.", "report.")))
"""Those of a job without effects; test_effects.py has the others."""
KINDS = {"fail": "proc.fail_first", "release": "proc.gate", "renew": "proc.gate", "beat": "proc.gate"}


@dataclass
class Death:
    """One victim and its job: at its death, and at the end of all."""

    point: str
    job_id: uuid.UUID
    code: int | None = None
    said: str = ""
    left: Left | None = None
    renewed: bool = False
    job: Job | None = None
    attempts: list[Attempt] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)


@pytest.fixture(scope="module")
def deaths(
    install: Install, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Death]:
    with django_db_blocker.unblock(), install(tmp_path_factory.mktemp("killed")) as installation:
        return _kill_at_every_point(installation)


def _kill_at_every_point(installation: Installation) -> dict[str, Death]:
    deaths = {point: Death(point, _enqueue(installation, point)) for point in POINTS}
    # First those that have to find something to take back, and the one that does take it back last.
    recovery = [deaths[f"recover.{moment}"] for moment in ("before", "sent", "after")]
    for death in recovery:
        assert installation.jobs.claim_job(death.job_id, worker_id="gone:1:first") is not None
    installation.raise_epoch()
    _die(installation, recovery[:2])
    _die(installation, recovery[2:])
    # A row is written at the start, when nothing is held yet, and again after ten seconds: die at the second.
    beats = [deaths["beat.before"], deaths["beat.after"]]
    waiting = [(death, _start(installation, death, "@2")) for death in beats]
    for death, victim in waiting:  # before anybody else works, who would take their jobs back
        _look(installation, death, victim)
    others = [death for death in deaths.values() if death not in [*recovery, *beats]]
    for pair in zip(others[::2], [*others[1::2], None], strict=False):
        _die(installation, [death for death in pair if death])

    installation.raise_epoch()
    installation.open_gate()
    queues = ",".join(_queue(point) for point in deaths)
    installation.finish("--queues", queues, "--kinds", "proc.trace,proc.gate,proc.fail_first")
    for death in deaths.values():
        death.job, death.attempts = installation.job(death.job_id), installation.attempts(death.job_id)
        death.traces = installation.traces(death.job_id)
    return deaths


def _enqueue(installation: Installation, point: str) -> uuid.UUID:
    kind = KINDS.get(point.partition(".")[0], "proc.trace")
    more = {"gate": installation.gate} if kind == "proc.gate" else {}
    return installation.enqueue(kind, queue=_queue(point), **more)


def _queue(point: str) -> str:
    return f"proc.{point}"


def _die(installation: Installation, deaths: list[Death]) -> None:
    started = [(death, _start(installation, death)) for death in deaths]
    for death, victim in started:
        if death.point.startswith("release"):
            installation.until_begun(death.job_id)
            victim.signal(signal.SIGTERM)
    for death, victim in started:
        _look(installation, death, victim)


def _start(installation: Installation, death: Death, nth: str = "") -> WorkerProcess:
    queues = ["--queues", _queue(death.point)]
    return installation.start(*queues, "--grace", "0", failpoints=f"{death.point}=kill{nth}")


def _look(installation: Installation, death: Death, victim: WorkerProcess) -> None:
    death.code, death.said = victim.wait(), victim.said
    job, attempts = installation.job(death.job_id), installation.attempts(death.job_id)
    begun = len(installation.traces(death.job_id))
    death.left = Left(job.status, [attempt.status for attempt in attempts], begun)
    if job.lease_expires_at is not None:
        lease = job.lease_expires_at - attempts[0].started_at
        death.renewed = lease > timedelta(seconds=installation.lease_seconds)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_this_point_leaves_what_can_be_taken_up_again(
    deaths: dict[str, Death], point: str
) -> None:
    death = deaths[point]
    assert death.code == -signal.SIGKILL, death.said
    assert death.left == LEFT[point]
    if point in ("renew.before", "renew.sent"):
        assert not death.renewed
    elif point == "renew.after":
        assert death.renewed


@pytest.mark.parametrize("point", POINTS)
def test_a_job_whose_worker_was_killed_at_this_point_succeeds_once(
    deaths: dict[str, Death], point: str
) -> None:
    death = deaths[point]
    assert death.job is not None
    assert death.job.status == JobStatus.SUCCEEDED, (death.job.error_code, death.job.error_message)
    assert committed_once(death.job, death.attempts)
    # Code that ran again is permitted; code that ran again after its result was committed is not.
    begun = [trace.generation for trace in death.traces if trace.word != "ended"]
    assert begun == sorted(set(begun))
    assert begun[-1] == death.attempts[-1].generation
