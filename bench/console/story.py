"""What became of each job of the large ledger: the same for the same number, so that it can be told twice.

Jobs come in at a steady rate. Nearly all ended well; the newest hundredths are where work waits and runs.
A part of them left a case behind, most of these closed; one outage left many open ones alike within minutes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from jobs.models.case import CaseKind
from jobs.status import JobStatus

EVERY = timedelta(milliseconds=864)
"""A million jobs in ten days."""
RARE = 100_000
"""One job in so many has the rare kind, the rare queue and the rare error."""
ERRORS = (
    ("RENDER_DEADLINE_EXCEEDED", "page 14 took longer than 20 s"),
    ("PROVIDER_UNREACHABLE", "the provider closed the connection after 10.0 s"),
    ("HANDLER_CONTENT_FAILED", "page 3 has no media box"),
    ("RUNTIME_HANDLER_EXCEPTION", "LedgerUnavailable: the ledger answers 503"),
)
RARE_ERROR = ("PROVIDER_REGION_LOST", "the region has no endpoint")
RARE_KIND, RARE_QUEUE = "ledger.close_year", "year-end"
LARGE_QUEUES = ("billing", "mail", "render", "reports", "images", "documents", "imports", "exports")
QUEUES = (*LARGE_QUEUES, *(f"tenant-{n:02}" for n in range(30)))
COMMON_TAG, TAG, RARE_TAG = "eu", "vip", "year-2019"
INVOICE = "invoice"
"""The argument that all jobs are found by; documents have another label, and so another value."""
VERBS = ("settle", "post", "archive", "generate")
KIND = "documents.convert"
CHILDREN = 1000
UNCLAIMED = (JobStatus.PENDING, JobStatus.BLOCKED)
CLAIMED_ONCE = (JobStatus.RUNNING, JobStatus.WAITING)
ODD_ENDS = (*[JobStatus.FAILED] * 5, JobStatus.CANCELLED, JobStatus.SKIPPED)
RETRIES = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4)
"""Attempts that an ended job took; a job of the rare kind took thirty."""


class Matter(NamedTuple):
    """A case that a job left behind."""

    kind: CaseKind
    open: bool
    outage: bool


class Tale:
    """One job. `number` counts from the oldest; `mix` is as good as random, and the same each time."""

    __slots__ = (
        "attempts",
        "created",
        "id",
        "kind",
        "label",
        "matter",
        "mix",
        "number",
        "queue",
        "rare",
        "status",
    )

    def __init__(
        self, number: int, mix: int, created: datetime, status: JobStatus, matter: Matter | None, rare: bool
    ) -> None:
        self.number, self.mix, self.created, self.status = number, mix, created, status
        self.matter, self.rare = matter, rare
        self.id = stamped(created, number, "a")
        self.attempts = _attempts(status, mix, rare)
        self.label = f"INV-2026-{number:07}" if mix & 1 else f"DOC-{number:07}"
        if rare:
            self.queue, self.kind = RARE_QUEUE, RARE_KIND
            return
        # Two jobs of three are in the large queues.
        names = QUEUES if mix % 3 == 0 else LARGE_QUEUES
        self.queue = queue = names[(mix >> 4) % len(names)]
        if matter:
            self.kind = "billing.settle"
        else:
            self.kind = KIND if queue == "documents" else f"{queue}.{VERBS[(mix >> 9) % 4]}"

    @property
    def tags(self) -> list[str]:
        """A common tag on half of the jobs, another on a tenth, a rare one."""
        worn = {COMMON_TAG: self.mix >> 2 & 1, TAG: self.mix % 10 == 3, RARE_TAG: self.rare}
        return [tag for tag, on in worn.items() if on]

    @property
    def error(self) -> tuple[str, str]:
        return RARE_ERROR if self.rare else ERRORS[(self.mix >> 6) % len(ERRORS)]

    def attempt_id(self, turn: int) -> str:
        """Return the id of the attempt with that number, counted from one."""
        return stamped(self.created + timedelta(seconds=turn), self.number * 64 + turn, "b")

    def started(self, turn: int) -> datetime:
        """Return when that attempt began."""
        return self.created + timedelta(seconds=20 * turn - 18, microseconds=self.number % 997 + 1)

    def ended(self, turn: int) -> datetime:
        """Return when that attempt ended."""
        return self.started(turn) + timedelta(milliseconds=300 + self.mix % 9000)

    def worker(self, turn: int) -> str:
        """Return who made it."""
        return worker((self.mix >> 3) + turn)


def _attempts(status: JobStatus, mix: int, rare: bool) -> int:
    if status in UNCLAIMED:
        return 0
    if status in CLAIMED_ONCE:
        return 1
    return 30 if rare else RETRIES[(mix >> 5) % len(RETRIES)]


def _mixed(number: int) -> int:
    mix = (number * 2_654_435_761 + 97) % 2**32
    mix = (mix ^ mix >> 15) * 2_246_822_519 % 2**32
    return mix ^ mix >> 13


def stamped(moment: datetime, number: int, sort: str) -> str:
    """Return an id of version 7: the time first, then what makes it the only one of its sort."""
    milliseconds = round(moment.timestamp() * 1000)
    return f"{milliseconds:012x}7{number & 0xFFF:03x}{sort}{number:015x}"


def worker(number: int) -> str:
    """Return the id of one of forty workers."""
    number %= 40
    return f"app-{number:02}:{2000 + number}:{number * 2_654_435_761 % 2**32:08x}"


@dataclass(frozen=True)
class Story:
    """So many jobs until `now`."""

    jobs: int
    now: datetime

    def tales(self) -> Iterator[Tale]:
        """Yield the jobs, the oldest first."""
        for number in range(self.jobs):
            yield self.tale(number)

    def tale(self, number: int) -> Tale:
        """Return what became of one job."""
        mix = _mixed(number)
        left = self.jobs - number
        created = self.now - EVERY * left
        matter = self.matter(number)
        rare = number % RARE == min(RARE, self.jobs) // 2
        status = self._status(number, left, matter, rare)
        return Tale(number, mix, created, status, matter, rare)

    def mattering(self) -> Iterator[Tale]:
        """Yield the jobs that left a case behind."""
        return (self.tale(number) for number in range(self.jobs) if self.matter(number))

    def matter(self, number: int) -> Matter | None:
        """Return the case of a job: one in two hundred has an open one, four of them a closed one."""
        first = int(self.jobs * 0.95)
        if first <= number < first + self.jobs // 100 and number % 5 == 0:
            return Matter(CaseKind.UNKNOWN, open=True, outage=True)
        if number >= self.jobs * 0.97:
            return None
        if number >= self.jobs * 0.82 and number % 50 == 3:
            kind = (CaseKind.CONFLICT, CaseKind.APPROVAL, CaseKind.CONTRADICTION)
            odd = number // 50 % 6
            return Matter(kind[odd] if odd < 3 else CaseKind.UNKNOWN, open=True, outage=False)
        if number % 40 == 7:
            return Matter(CaseKind.UNKNOWN, open=False, outage=False)
        return None

    @cached_property
    def parent(self) -> Tale:
        """The job that has a thousand children, those that came just after it."""
        return self.tale(self.jobs // 2 + 1)

    def parent_of(self, tale: Tale) -> str | None:
        """Return the parent's id of a job that is a child."""
        after = tale.number - self.parent.number
        if 0 < after <= CHILDREN:
            return self.parent.id
        return self.tale(tale.number - 1).id if tale.number % 100 == 51 else None

    def _status(self, number: int, left: int, matter: Matter | None, rare: bool) -> JobStatus:
        if matter and matter.open:
            if matter.kind == CaseKind.APPROVAL:
                return JobStatus.WAITING
            return JobStatus.SUCCEEDED if matter.kind == CaseKind.CONTRADICTION else JobStatus.UNCERTAIN
        if rare:
            return JobStatus.FAILED
        if left <= max(self.jobs // 50, 60):
            for bound, status in (
                (40, JobStatus.PENDING),
                (46, JobStatus.WAITING),
                (47, JobStatus.RUNNING),
                (48, JobStatus.BLOCKED),
            ):
                if left % 60 < bound:
                    return status
        # Of all that ended one in sixteen did not end well.
        return ODD_ENDS[number % 110] if number % 110 < len(ODD_ENDS) else JobStatus.SUCCEEDED
