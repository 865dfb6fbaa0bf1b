"""The zombie drill: on the installation's own database, a superseded worker tries every acceptance point.

Canary jobs of a reserved kind are claimed by a first owner, whose lease runs out, and taken over by a second.
Then the first one tries to write, once with its own token and once for each part of the fence with a token in
which that part alone is not current. The second owner must be able to write: a database that refuses
everybody proves nothing. The jobs end with that, and nothing of them was ever sent anywhere.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs import admission, canon
from jobs.drills import kept
from jobs.effect_kinds import EffectKind
from jobs.handlers import DRILL, Options
from jobs.ledger.clock import clock
from jobs.ledger.slots import Slot
from jobs.models import Drill, FenceRefusal, Job, Scheduler
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.outcomes import Code, Lease, Outcome
from jobs.status import WaitReason
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Gate, Word
from jobs.vocabulary import JOB

LEASE = 2
"""Seconds of the first owner's lease: so long the drill waits."""
DEADLINE = 300.0
"""Seconds after which any recovery pass ends what a drill that was killed has left."""
KEEP_THE_OWNER = ("renew", "prepare", "grant", "stage")
"""Points that take the job from nobody, even where they accept a zombie."""
PATIENCE = 5
"""How often a takeover is tried, or a renewal that found the row busy."""

OWN = "own"
LAPSED = "lease"
PARTS = (LAPSED, OWN, "generation", "attempt_id", "worker_id", "epoch")
"""What is wrong with the token: its lease is over and nobody has taken over yet; all of it, after the
takeover; one part alone, the rest being the second owner's."""


def _never(_request: Any) -> Any:
    raise AssertionError("a drill sends nothing")


# With an approval that nobody gives, not even a broken fence can make a slot of this kind be sent.
KIND = EffectKind(name=DRILL, send=_never, replay="non_replayable", approval="always")
_NULL = canon.canonical(None)
ASK = Ask(KIND, "drill", _NULL, canon.digest(_NULL), None)


class CannotDrill(Exception):
    """The drill cannot be carried out as things are; `args[0]` says why."""


@dataclass
class Canary:
    """One canary job, its two owners' leases, and what the first one's token lacks."""

    part: str
    job_id: uuid.UUID
    first: Lease
    slot: Slot
    second: Lease | None = None
    tries: list[dict[str, Any]] = field(default_factory=list)
    course: list[dict[str, Any]] = field(default_factory=list)
    """What its owners did, and when: few steps, beside which the tries can be told in their order."""

    @property
    def accepted(self) -> bool:
        """Whether something was accepted that must be refused."""
        return any(attempt["accepted"] for attempt in self.tries)

    def token(self) -> Lease:
        """Return what the zombie presents."""
        if self.second is None or self.part in (OWN, LAPSED):
            return self.first
        if self.part == "epoch":
            return self.second._replace(epoch=self.second.epoch - 1)
        return self.second._replace(**{self.part: getattr(self.first, self.part)})


def drill(*, by: str, using: str = DEFAULT_DB_ALIAS, sleep: Callable[[float], None] = time.sleep) -> Drill:
    """Carry the drill out and keep what came of it; returns its row.

    PASSED where every point refused, FAILED where one accepted, STOPPED where it could not be carried out:
    claims or the queue are closed, or the rightful owner could not write either. Raises DatabaseError; the
    row is then left unfinished, and so it is by a kill. Several at once do not meet: each has its own jobs.
    """
    number = kept.begin(DrillKind.ZOMBIE, by=by, using=using)
    course = _Course(using)
    note = ""
    try:
        course.run(sleep)
    except CannotDrill as problem:
        note = str(problem)
    tries = [attempt for canary in course.canaries for attempt in canary.tries]
    refused = sum(attempt["refused"] for attempt in tries)
    accepted = any(attempt["accepted"] for attempt in tries)
    if not note and not all(attempt["refused"] or attempt["accepted"] for attempt in tries):
        note = "a point gave no answer"
    verdict = DrillVerdict.FAILED if accepted else DrillVerdict.STOPPED if note else DrillVerdict.PASSED
    record = {
        "tries": tries,
        "course": [step for canary in course.canaries for step in canary.course],
        "refusals": course.refusals(),
        "jobs": [str(canary.job_id) for canary in course.canaries],
        "note": note,
    }
    return kept.finish(number, verdict, tried=len(tries), passed=refused, record=record, using=using)


class _Course:
    """The canaries of one drill, and the two workers."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.jobs = Job.objects.db_manager(using)
        self.effects = EffectRuntime(JOB, hooks=HOOKS, using=using)
        here = f"{socket.gethostname()[:100]}:{os.getpid()}"
        self.workers = [f"{here}:{uuid.uuid4().hex}-{name}" for name in ("drill-first", "drill-second")]
        self.canaries: list[Canary] = []
        self._begun = time.monotonic()
        self._began_at = clock(using)

    def run(self, sleep: Callable[[float], None]) -> None:
        """Play it from the first claim to the end of the jobs."""
        if not Scheduler.objects.using(self.using).get().claims_open:
            raise CannotDrill("claims are closed")
        for part in PARTS:
            self.canaries.append(self._canary(part))
        self._wait(sleep)
        for canary in self.canaries:
            if canary.part == LAPSED:
                self._try_all(canary)
        for canary in self.canaries:
            self._take_over(canary, sleep)
        for canary in self.canaries:
            if canary.part != LAPSED:
                self._try_all(canary)
        for canary in self.canaries:
            self._end(canary)

    def refusals(self) -> list[int]:
        """Return the numbers of the refusals that were kept of this drill."""
        jobs = [canary.job_id for canary in self.canaries]
        found = FenceRefusal.objects.using(self.using).filter(job_id__in=jobs)
        return list(found.order_by("id").values_list("id", flat=True))

    # -- the first owner gets a job and loses it

    def _canary(self, part: str) -> Canary:
        # Two attempts: the first owner's and the second's. What is left behind then ends by itself.
        options = Options(queue=DRILL, label="zombie drill", deadline=DEADLINE, max_attempts=2, priority=-100)
        job_id = self.jobs.enqueue(DRILL, {}, options=options).job_id
        first = self.jobs.claim_job(job_id, worker_id=self.workers[0], ttl=LEASE)
        if first is None:
            raise CannotDrill("the first owner could not claim")
        gate = self._gate(first)
        if gate.slot is None:
            raise CannotDrill("the first owner could not prepare")
        canary = Canary(part, job_id, first, gate.slot)
        self._note(canary, "claim", first)
        return canary

    def _wait(self, sleep: Callable[[float], None]) -> None:
        """Let all leases run out, by the database's clock."""
        for canary in self.canaries:
            end = canary.first.lease_expires_at
            while end is not None and (left := (end - clock(self.using)).total_seconds()) >= 0:
                sleep(left + 0.01)
            self._note(canary, "lapse", canary.first)

    def _take_over(self, canary: Canary, sleep: Callable[[float], None]) -> None:
        for _again in range(PATIENCE):  # a worker's recovery pass may be at the row just now
            canary.second = self.jobs.claim_job(canary.job_id, worker_id=self.workers[1])
            if canary.second is not None:
                self._note(canary, "take_over", canary.second)
            if canary.second is not None or canary.accepted:
                return
            sleep(0.1)
        raise CannotDrill("the second owner could not claim")

    # -- the zombie

    def _try_all(self, canary: Canary) -> None:
        """Try every point, until an ending is accepted: after that there is no owner to stand against."""
        for point, attempt in self._points(canary):
            outcome = attempt()
            for _again in range(PATIENCE):
                if outcome.code is Code.BUSY:
                    outcome = attempt()
            refused = outcome.code in (Code.FENCED, Code.CANCELLED, Code.STALE_INPUT)
            canary.tries.append(
                {
                    "t": self._seconds(),
                    "part": canary.part,
                    "point": point,
                    "answer": outcome.code.value,
                    "reason": outcome.reason,
                    "refused": refused,
                    "accepted": outcome.landed,
                }
            )
            if outcome.landed and point not in KEEP_THE_OWNER:
                return

    def _points(self, canary: Canary) -> Iterator[tuple[str, Callable[[], Outcome]]]:
        """Yield every verb of a job's holder (contract §4), as the zombie calls it."""
        jobs, lease = self.jobs, canary.token()
        yield "renew", lambda: jobs.renew(lease)
        yield "prepare", lambda: _outcome(self._gate(lease))
        yield (
            "grant",
            lambda: _outcome(self.effects.grant_again(lease, canary.slot, KIND, grant_id=uuid.uuid4())),
        )
        yield "stage", lambda: jobs.stage(lease, "late")
        yield "wait", lambda: jobs.wait(lease, WaitReason.TIMER, seconds=1)
        yield "release", lambda: jobs.release(lease)
        yield "fail", lambda: jobs.fail(lease, "HANDLER_CONTENT_FAILED", "late")
        yield "skip", lambda: jobs.skip(lease, "HANDLER_CONTENT_FAILED", "late")
        yield "uncertain", lambda: jobs.uncertain(lease, "late")
        yield "acknowledge_cancel", lambda: jobs.acknowledge_cancel(lease)
        yield "commit", lambda: jobs.commit(lease, "late")

    def _gate(self, lease: Lease) -> Gate:
        return self.effects.gate(lease, ASK, grant_id=uuid.uuid4())

    # -- the rightful owner

    def _end(self, canary: Canary) -> None:
        """Let the rightful owner renew and commit, which ends the job and closes its slot unsent."""
        if canary.second is None:
            return
        text, digest = admission.result(None)
        lease = canary.second
        does: dict[str, Callable[[], Outcome]] = {
            "renew": lambda: self.jobs.renew(lease),
            "commit": lambda: self.jobs.runtime.commit([(lease, text, digest)])[0],
        }
        for name, attempt in does.items():
            outcome = attempt()
            if outcome.landed:
                self._note(canary, name, lease._replace(lease_expires_at=outcome.lease_expires_at))
            elif not canary.accepted:
                raise CannotDrill(f"the rightful owner was refused too: {outcome.reason or outcome.code}")

    # -- the record

    def _note(self, canary: Canary, does: str, lease: Lease) -> None:
        """Keep what an owner did; times are in seconds since the drill began."""
        end = lease.lease_expires_at
        canary.course.append(
            {
                "t": self._seconds(),
                "part": canary.part,
                "does": does,
                "generation": lease.generation,
                "lease_until": round((end - self._began_at).total_seconds(), 3) if end else None,
            }
        )

    def _seconds(self) -> float:
        return round(time.monotonic() - self._begun, 6)


def _outcome(gate: Gate) -> Outcome:
    """Return a gate's answer as that of any other point: whatever is no refusal has let the zombie in."""
    if gate.word is Word.REFUSED and gate.outcome is not None:
        return gate.outcome
    return Outcome(Code.LANDED, reason=gate.word.value)
