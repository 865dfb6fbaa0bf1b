"""Why a job is where it is: one reason, found in its row and in what it depends on besides that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Count, Subquery
from django.utils.translation import gettext as _

from jobs import awaited
from jobs.awaited import Awaited, Matter
from jobs.ledger.clock import clock
from jobs.sentences import sentence
from jobs.status import IDLE, HoldReason, JobStatus

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from jobs.models.job import Job
    from jobs.models.queue import Queue
    from jobs.models.scheduler import Scheduler
    from jobs.models.worker import Worker

WORKER_TTL = timedelta(seconds=90)
"""A worker not heard of for this long is taken for dead (contract §8)."""
ROWS = 1000
"""More workers or paused queues than this are not looked at for a sentence."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is where it is: a stable code, its parameters, and the sentence made of them."""

    code: str
    params: dict[str, Any]

    @property
    def text(self) -> str:
        return sentence(self.code, self.params)


class Silent(Protocol):
    """What is told of a worker that is not heard of any more."""

    id: str
    beat_at: datetime
    running: int


class Surroundings:
    """What a job's whereabouts depend on besides its own row; each part is read once, when first asked for.

    One object serves a whole page of jobs, so that a list costs as many queries as a single job.
    """

    def __init__(self, *, using: str = "default", now: datetime | None = None) -> None:
        self.using = using
        self._given = now

    @cached_property
    def now(self) -> datetime:
        """The database's clock."""
        return self._given or clock(self.using)

    @cached_property
    def scheduler(self) -> Scheduler:
        """The scheduler row; with it, as every page tells both, how many plans are being gone through."""
        from jobs.models import Plan, Scheduler
        from jobs.models.plan import PlanState

        running = Plan.objects.filter(state=PlanState.RUNNING).order_by().values("state")
        counted = Subquery(running.annotate(n=Count("pk")).values("n"))
        return Scheduler.objects.using(self.using).annotate(plans_running=counted).get()

    @cached_property
    def paused(self) -> dict[str, Queue]:
        """The queues that are closed at this moment, by name."""
        from jobs.models import Queue

        rows = Queue.objects.using(self.using).filter(paused_at__isnull=False).order_by("name")[:ROWS]
        return {q.name: q for q in rows if q.paused_until is None or q.paused_until > self.now}

    @cached_property
    def workers(self) -> list[Worker]:
        """The workers that have not stopped, the one heard of last first."""
        from jobs.models import Worker

        return list(
            Worker.objects.using(self.using).filter(stopped_at=None).order_by("-beat_at", "id")[:ROWS]
        )

    @cached_property
    def live(self) -> list[Worker]:
        """The workers that claim: heard of lately and not fenced."""
        since = self.now - WORKER_TTL
        return [w for w in self.workers if w.beat_at > since and w.fenced_at is None]

    @cached_property
    def live_epochs(self) -> list[int]:
        """The epoch that each of them claims under, where nothing else is asked about them."""
        beating = self._expected().filter(beat_at__gt=self.now - WORKER_TTL)
        return list(beating.values_list("scheduler_epoch", flat=True)[:ROWS])

    @cached_property
    def silent(self) -> Sequence[Silent]:
        """The workers that neither stopped nor were heard of lately; of a fenced one nothing is expected."""
        since = self.now - WORKER_TTL
        if "workers" in self.__dict__:
            return [w for w in self.workers if w.beat_at <= since and w.fenced_at is None]
        rows = self._expected().filter(beat_at__lte=since).order_by("-beat_at", "id")
        # Every page counts them: what they claim would be decoded of each for nothing.
        return list(rows.values_list("id", "beat_at", "running", named=True)[:ROWS])

    def _expected(self) -> QuerySet[Worker]:
        """Return the workers of which a beat is expected."""
        from jobs.models import Worker

        return Worker.objects.using(self.using).filter(stopped_at=None, fenced_at=None)


def explain(job: Job, *, using: str = "default", now: datetime | None = None) -> Explanation:
    """Return the one reason why `job` is where it is. Reads little, along indexes; writes nothing."""
    return explain_many([job], around=Surroundings(using=using, now=now))[0]


def explain_many(
    jobs: Iterable[Job], *, around: Surroundings | None = None, using: str = "default"
) -> list[Explanation]:
    """Explain a page of jobs in at most seven queries; `around` shares what has been read already."""
    around = around or Surroundings(using=using)
    page = list(jobs)
    people = awaited.of(page, using=around.using)
    return [_why(job, around, people) for job in page]


def _why(job: Job, around: Surroundings, people: Awaited) -> Explanation:
    return (
        _ended(job)
        or _running(job, around)
        or _uncertain(job, people)
        or _past_deadline(job, around)
        or _held_back(job, around, people)
        or _due(job, around)
    )


def _ended(job: Job) -> Explanation | None:
    if job.status == JobStatus.SUCCEEDED:
        return Explanation("WHY_SUCCEEDED", {"generation": job.claim_generation})
    if job.status == JobStatus.FAILED:
        spent = job.attempts_used >= job.max_attempts
        params = {
            "error_code": job.error_code,
            "error_message": job.error_message[:200],
            "max_attempts": job.max_attempts,
        }
        return Explanation("WHY_FAILED_SPENT" if spent else "WHY_FAILED", params)
    if job.status == JobStatus.CANCELLED:
        return Explanation("WHY_CANCELLED", {"by": job.cancel_requested_by or _("the system")})
    if job.status == JobStatus.SKIPPED:
        return Explanation("WHY_SKIPPED", {"error_code": job.error_code})
    return None


def _running(job: Job, around: Surroundings) -> Explanation | None:
    if job.status != JobStatus.RUNNING:
        return None
    worker = job.worker_id or ""
    epoch = around.scheduler.epoch
    lapsed = job.lease_expires_at is not None and job.lease_expires_at <= around.now
    if job.hold_reason == HoldReason.QUARANTINE and (lapsed or job.scheduler_epoch < epoch):
        return None  # recovery leaves it alone: what it waits for is that the hold is lifted
    if job.scheduler_epoch < epoch:
        return Explanation("WHY_OLD_EPOCH", {"claimed": job.scheduler_epoch, "epoch": epoch})
    if lapsed:
        # No lease outlives the deadline.
        return _late(job, around) or Explanation("WHY_EXPIRED", {"worker": worker})
    if job.cancel_requested_at:
        return Explanation("WHY_CANCEL_REQUESTED", {"by": job.cancel_requested_by, "worker": worker})
    return Explanation("WHY_RUNNING", {"worker": worker, "until": job.lease_expires_at})


def _uncertain(job: Job, people: Awaited) -> Explanation | None:
    if job.status != JobStatus.UNCERTAIN:
        return None
    conflict = people.conflict(job)
    # Before what is merely unknown: whether or not it was sent, it is this that a person must rule on. An
    # uncertain job without an open effect has nothing else.
    if conflict is not None or not job.open_effects:
        return Explanation("WHY_CONFLICT", _about(conflict))
    code = "WHY_UNCERTAIN_CANCEL" if job.cancel_requested_at else "WHY_UNCERTAIN"
    return Explanation(code, {"open": job.open_effects, **_about(people.unknown(job))})


def _about(matter: Matter | None) -> dict[str, Any]:
    return matter.params if matter is not None else {"effect": _("an outside effect")}


def _past_deadline(job: Job, around: Surroundings) -> Explanation | None:
    """Return that the job's time is over. Recovery ends it then, on hold or not, but for a quarantine."""
    idle = job.status in IDLE and job.hold_reason != HoldReason.QUARANTINE
    return _late(job, around) if idle else None


def _late(job: Job, around: Surroundings) -> Explanation | None:
    if job.deadline_at is None or job.deadline_at > around.now:
        return None
    return Explanation("WHY_DEADLINE_PASSED", {"at": job.deadline_at})


def _held_back(job: Job, around: Surroundings, people: Awaited) -> Explanation | None:
    if job.hold_reason:
        hold = people.holds.get(job.id)
        if hold is None:
            return Explanation("WHY_HELD", {"hold": job.hold_reason})
        said = {"hold": job.hold_reason, "by": hold.by, "at": hold.at, "reason": hold.reason}
        return Explanation("WHY_HELD_BY", said)
    if job.status == JobStatus.BLOCKED:
        return Explanation("WHY_BLOCKED", {"edges": job.unmet_edges})
    due = job.next_attempt_at
    if due is None:
        return Explanation("WHY_WAITING_APPROVAL", _about(people.approval(job)))
    if due <= around.now:
        return None
    if job.status == JobStatus.WAITING:
        return Explanation("WHY_WAITING", {"what": job.wait_reason, "at": due})
    if job.error_code:
        return Explanation(
            "WHY_RETRY", {"next": job.attempt_count + 1, "at": due, "error_code": job.error_code}
        )
    return Explanation("WHY_SCHEDULED", {"at": due})


def _due(job: Job, around: Surroundings) -> Explanation:
    since = job.next_attempt_at
    scheduler = around.scheduler
    if not scheduler.claims_open:
        return Explanation("WHY_CLAIMS_CLOSED", {"by": scheduler.changed_by, "reason": scheduler.reason})
    queue = around.paused.get(job.queue)
    if queue is not None:
        params = {
            "since": since,
            "queue": job.queue,
            "until": queue.paused_until,
            "by": queue.paused_by,
            "reason": queue.pause_reason,
        }
        return Explanation("WHY_QUEUE_PAUSED_UNTIL" if queue.paused_until else "WHY_QUEUE_PAUSED", params)
    serving = [w for w in around.live if job.queue in w.queues or "*" in w.queues]
    if not serving:
        return Explanation("WHY_NO_WORKER", {"queue": job.queue})
    if not any(job.kind in w.kinds for w in serving):
        return Explanation("WHY_UNKNOWN_KIND", {"kind": job.kind})
    return Explanation("WHY_READY", {"since": since})
