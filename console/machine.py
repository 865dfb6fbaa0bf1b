"""The state machine of a job, drawn from the transition table: where it is, was, and can go."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from console.moves import Move
from console.wording import words
from jobs.models import Attempt, Job
from jobs.status import TRANSITIONS, AttemptStatus, JobStatus

WIDTH, HEIGHT = 320, 240
BOX, TALL = 84, 26
ARROW = 6
PLACES: dict[JobStatus, tuple[int, int]] = {
    # Left edge and middle. Between the two in the middle column there is room for every line that passes.
    JobStatus.PENDING: (1, 42),
    JobStatus.BLOCKED: (1, 110),
    JobStatus.WAITING: (1, 178),
    JobStatus.RUNNING: (118, 18),
    JobStatus.UNCERTAIN: (118, 222),
    JobStatus.SUCCEEDED: (235, 18),
    JobStatus.SKIPPED: (235, 80),
    JobStatus.FAILED: (235, 142),
    JobStatus.CANCELLED: (235, 204),
}
LEADS = frozenset((t.source, t.target) for t in TRANSITIONS if t.source is not None and t.source != t.target)
"""The legal moves from one status to another."""


@dataclass(frozen=True)
class Node:
    """One status: its box, and what this job has to do with it: "here", "next", or nothing."""

    status: JobStatus
    word: str
    x: int
    y: int
    role: str
    passed: bool


@dataclass(frozen=True)
class Line:
    """One legal move; `head` is the arrow's path, drawn where the job can take it."""

    path: str
    head: str = ""


@dataclass(frozen=True)
class Machine:
    """What the template draws: the quiet lines first, then those that the job can take."""

    nodes: list[Node]
    quiet: list[Line]
    open: list[Line]
    description: str


def draw(job: Job, attempts: Sequence[Attempt], doubted: bool, moves: Sequence[Move]) -> Machine:
    """Return the machine for a job with its attempts and legal moves; `doubted`: a case of
    an unknown effect was opened."""
    here = JobStatus(job.status)
    been = passed(job, attempts, doubted)
    legal = {JobStatus(move.target) for move in moves}
    word = words()
    return Machine(
        nodes=[
            Node(status, word[status], *PLACES[status], _role(status, here, legal), status in been)
            for status in JobStatus
        ],
        quiet=[Line(_path(a, b)) for a, b in sorted(LEADS) if not (a == here and b in legal)],
        open=[Line(_path(a, b), _head(a, b)) for a, b in sorted(LEADS) if a == here and b in legal],
        description=_describe(here, been, legal),
    )


def passed(job: Job, attempts: Sequence[Attempt], doubted: bool) -> set[JobStatus]:
    """Return the statuses that the job certainly had before its present one, by what is read of it.

    What left no attempt behind is not told: that it was blocked, or failed before an operator's retry.
    """
    ends = [AttemptStatus(a.status) for a in attempts]
    been = {JobStatus.RUNNING, JobStatus.PENDING} if ends else set()
    if AttemptStatus.WAITING in ends:
        been.add(JobStatus.WAITING)
    if doubted or AttemptStatus.UNCERTAIN in ends:
        been.add(JobStatus.UNCERTAIN)
    return been - {JobStatus(job.status)}


def _role(status: JobStatus, here: JobStatus, legal: Collection[JobStatus]) -> str:
    return "here" if status == here else "next" if status in legal else ""


def _path(a: JobStatus, b: JobStatus) -> str:
    """Return the line from box to box; one that goes back lies a little lower than one that goes on."""
    (ax, ay), (bx, by) = PLACES[a], PLACES[b]
    if ax == bx:
        down = by > ay
        return f"M{ax + BOX // 2} {ay + (TALL // 2 if down else -TALL // 2)}V{_end(b, down=down)}"
    on = bx > ax
    start, end = (ax + BOX, bx) if on else (ax, bx + BOX)
    shift = -4 if on else 4
    middle = (start + end) / 2
    return f"M{start} {ay + shift}C{middle:g} {ay + shift} {middle:g} {by + shift} {end} {by + shift}"


def _head(a: JobStatus, b: JobStatus) -> str:
    (ax, ay), (bx, by) = PLACES[a], PLACES[b]
    if ax == bx:
        down = by > ay
        step = -ARROW if down else ARROW
        return f"M{bx + BOX // 2 - 4} {_end(b, down=down) + step}h8l-4 {-step}Z"
    on = bx > ax
    edge, step, shift = (bx, -ARROW, -4) if on else (bx + BOX, ARROW, 4)
    return f"M{edge + step} {by + shift - 4}v8l{-step} -4Z"


def _end(status: JobStatus, *, down: bool) -> int:
    return PLACES[status][1] + (-TALL // 2 if down else TALL // 2)


def _describe(here: JobStatus, been: Collection[JobStatus], legal: Collection[JobStatus]) -> str:
    word, order = words(), list(JobStatus)
    said = [_("The job is %(status)s.") % {"status": word[here]}]
    before, after = (", ".join(word[s] for s in order if s in group) for group in (been, legal))
    if before:
        said.append(_("It has been: %(statuses)s.") % {"statuses": before})
    if after:
        said.append(_("From here it can become: %(statuses)s.") % {"statuses": after})
    else:
        said.append(_("Nothing moves it from here."))
    return " ".join(said)
