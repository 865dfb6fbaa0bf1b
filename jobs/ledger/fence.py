"""The fence: five parts, each predicate spelled once, and the refusal that names the first one broken (contract §4).

The predicates are spelled so that no index serves them: with a plain `status = 'running'` the planner
joined from the running index and read every lease in flight once for each ending.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from jobs.ledger.session import Session
from jobs.status import JobStatus


@dataclass(frozen=True, slots=True)
class Guard:
    """One named predicate. `needs` are the fields it is emitted for; `r` is the presented token, `t.now` is T."""

    name: str
    needs: str
    text: str

    @property
    def line(self) -> str:
        return f"?{self.needs}|   AND {self.text}"


STATUS = Guard("status", "status", "COALESCE(j.{status}, '') = {:running}")
ATTEMPT = Guard("attempt_id", "attempt_id", "j.{attempt_id} = r.attempt_id")
GENERATION = Guard("generation", "status", "j.{generation} = r.generation")
OWNER = Guard("worker_id", "worker_id", "j.{worker_id} = r.worker_id")
ROW_EPOCH = Guard("row_epoch", "scheduler_epoch", "j.{scheduler_epoch} = r.epoch")
EPOCH = Guard("epoch", "status", "(SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1) = r.epoch")
CANCEL = Guard("cancel", "cancel_generation", "j.{cancel_generation} = r.cancel_generation")
REVISION = Guard("revision", "revision", "j.{revision} = r.revision")
DIGEST = Guard("input_digest", "input_digest", "j.{input_digest} = r.input_digest")
LEASE = Guard("lease", "status", "j.{lease_expires_at} > t.now")
DEADLINE = Guard("deadline", "deadline_at", "(j.{deadline_at} IS NULL OR j.{deadline_at} > t.now)")
HOLD = Guard("hold", "hold_reason", "j.{hold_reason} = ''")
EFFECTS = Guard("open_effects", "open_effects", "j.{open_effects} = 0")
REQUESTED = Guard("cancel_requested", "cancel_requested_at", "j.{cancel_requested_at} IS NOT NULL")

ID = (STATUS, ATTEMPT, GENERATION, OWNER)
EPOCH_PART = (ROW_EPOCH, EPOCH)
INPUT = (REVISION, DIGEST)
TIME = (LEASE, DEADLINE)

VERBS: dict[str, tuple[Guard, ...]] = {
    "renew": (*ID, *EPOCH_PART, CANCEL, *TIME),
    "stage": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD),
    "commit": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD, EFFECTS),
    "end": (*ID, *EPOCH_PART, *TIME),
    "acknowledge_cancel": (*ID, REQUESTED),
}
"""The table of §4: what each verb asks for."""

EXPIRED = "j.{status} = {:running} AND (j.{lease_expires_at} <= t.now{or_old_epoch})"


def fence(verb: str) -> str:
    """Return the template lines of a verb's fence, each beginning with AND."""
    return "\n".join(guard.line for guard in VERBS[verb])


class Found(NamedTuple):
    """The locked row as a refusal sees it, and T."""

    status: JobStatus
    generation: int
    attempt_id: Any
    worker_id: Any
    scheduler_epoch: int | None
    cancel_generation: int | None
    revision: int | None
    input_digest: str | None
    lease_expires_at: datetime | None
    deadline_at: datetime | None
    hold_reason: str
    open_effects: int
    cancel_requested: bool
    result_commit_id: Any
    current_epoch: int
    now: datetime


READ_ROW = """
WITH t AS (SELECT {clock} AS now)
SELECT j.{status},
       j.{generation},
?attempt_id|       j.{attempt_id},
?!attempt_id|       NULL,
?worker_id|       j.{worker_id},
?!worker_id|       NULL,
?scheduler_epoch|       j.{scheduler_epoch},
?!scheduler_epoch|       NULL,
?cancel_generation|       j.{cancel_generation},
?!cancel_generation|       NULL,
?revision|       j.{revision},
?!revision|       NULL,
?input_digest|       j.{input_digest},
?!input_digest|       NULL,
       j.{lease_expires_at},
?deadline_at|       j.{deadline_at},
?!deadline_at|       NULL,
?hold_reason|       j.{hold_reason},
?!hold_reason|       '',
?open_effects|       j.{open_effects},
?!open_effects|       0,
?cancel_requested_at|       j.{cancel_requested_at} IS NOT NULL,
?!cancel_requested_at|       NULL,
?result_commit_id|       j.{result_commit_id},
?!result_commit_id|       NULL,
       (SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1),
       t.now
  FROM {table} AS j CROSS JOIN t
 WHERE j.{id} = %(id)s
"""


def read_row(session: Session, job_id: Any) -> Found | None:
    """Read what a refusal needs, under the lock that is already held; None when there is no such row."""
    rows = session.run(READ_ROW, id=job_id)
    if not rows:
        return None
    row = list(rows[0])
    row[0] = session.vocabulary.status_of(row[0])
    for index in (8, 9, 15):
        row[index] = session.moment(row[index])
    for index in (2, 13):
        row[index] = session.key(row[index])
    row[12] = bool(row[12])
    return Found(*row)


def reason(session: Session, found: Found | None, token: dict[str, Any], verb: str) -> str:
    """Return why `token` may not do `verb`: the first that applies, in the contract's order.

    Time only moves on, so what was refused at T is still refused when this reads a slightly later one;
    LEASE_EXPIRED is therefore the answer when nothing else is left.
    """
    if found is None:
        return "NOT_FOUND"
    has = session.vocabulary.has
    if token["epoch"] != found.current_epoch and verb != "acknowledge_cancel":
        return "EPOCH"
    if found.generation != token["generation"]:
        return "GENERATION"
    if has("attempt_id") and found.attempt_id != token["attempt_id"]:
        return "ATTEMPT"
    if has("worker_id") and found.status == JobStatus.RUNNING and found.worker_id != token["worker_id"]:
        return "OWNER"
    if found.status != JobStatus.RUNNING:
        return "STATUS"
    if has("scheduler_epoch") and found.scheduler_epoch != token["epoch"] and verb != "acknowledge_cancel":
        return "EPOCH"
    if verb == "acknowledge_cancel":
        return "STATUS"
    if verb != "end" and has("cancel_generation") and found.cancel_generation != token["cancel_generation"]:
        return "CANCELLED"
    if (
        verb in ("stage", "commit")
        and has("revision")
        and (found.revision != token["revision"] or found.input_digest != token["input_digest"])
    ):
        return "STALE_INPUT"
    if found.lease_expires_at is None or found.lease_expires_at <= found.now:
        return "LEASE_EXPIRED"
    if found.deadline_at is not None and found.deadline_at <= found.now:
        return "DEADLINE"
    if verb in ("stage", "commit") and found.hold_reason:
        return "HELD"
    if verb == "commit" and found.open_effects:
        return "EFFECT_UNRESOLVED"
    if verb == "commit" and has("result_commit_id"):
        return "NOT_STAGED"
    return "LEASE_EXPIRED"
