"""The fence: five parts, each predicate spelled once, and the refusal that names the first one broken (contract §4).

The predicates on the row alone are spelled so that no index serves them and no planner takes them for rare.
With a plain `status = 'running'` it joined from the running index and read every lease in flight once for each
ending; with `COALESCE(status, '') = 'running'` it expected one such row, read a small table from end to end and
the whole row list again for each row of it.
"""

from __future__ import annotations

from collections.abc import Callable
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


STATUS = Guard("status", "status", "COALESCE(j.{status} = {:running}, false)")
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
HOLD = Guard("hold", "hold_reason", "COALESCE(j.{hold_reason} = '', false)")
EFFECTS = Guard("open_effects", "open_effects", "COALESCE(j.{open_effects} = 0, false)")
REQUESTED = Guard("cancel_requested", "cancel_requested_at", "j.{cancel_requested_at} IS NOT NULL")

ID = (STATUS, ATTEMPT, GENERATION, OWNER)
EPOCH_PART = (ROW_EPOCH, EPOCH)
INPUT = (REVISION, DIGEST)
TIME = (LEASE, DEADLINE)

VERBS: dict[str, tuple[Guard, ...]] = {
    "renew": (*ID, *EPOCH_PART, CANCEL, *TIME),
    "prepare": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD),
    "grant": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD),
    "stage": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD),
    "commit": (*ID, *EPOCH_PART, CANCEL, *INPUT, *TIME, HOLD, EFFECTS),
    "end": (*ID, *EPOCH_PART, *TIME),
    "acknowledge_cancel": (*ID, REQUESTED),
}
"""The table of §4: what each verb asks for."""

# *Expired*, the one expression of takeover, recovery, limits and drain (contract §2). A raise of the epoch
# therefore writes no job row: every older claim is expired from that moment.
EXPIRED = """
   AND j.{status} = {:running}
   AND (j.{lease_expires_at} <= t.now
?scheduler_epoch|        OR j.{scheduler_epoch} < (SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1)
       )
""".strip("\n")


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


Token = dict[str, Any]
HOLDER = frozenset({"renew", "prepare", "grant", "stage", "commit", "end"})
WRITERS = frozenset({"prepare", "grant", "stage", "commit"})
ALL = HOLDER | {"acknowledge_cancel"}

# The contract's order. Each line: the reason, the verbs it is for, the field it needs, and when it applies.
REASONS: tuple[tuple[str, frozenset[str], str, Callable[[Found, Token], bool]], ...] = (
    ("EPOCH", HOLDER, "status", lambda row, token: token["epoch"] != row.current_epoch),
    ("GENERATION", ALL, "status", lambda row, token: row.generation != token["generation"]),
    ("ATTEMPT", ALL, "attempt_id", lambda row, token: row.attempt_id != token["attempt_id"]),
    (
        "OWNER",
        ALL,
        "worker_id",
        lambda row, token: row.status == JobStatus.RUNNING and row.worker_id != token["worker_id"],
    ),
    ("STATUS", ALL, "status", lambda row, token: row.status != JobStatus.RUNNING),
    ("EPOCH", HOLDER, "scheduler_epoch", lambda row, token: row.scheduler_epoch != token["epoch"]),
    ("STATUS", frozenset({"acknowledge_cancel"}), "status", lambda row, token: True),
    (
        "CANCELLED",
        HOLDER - {"end"},
        "cancel_generation",
        lambda row, token: row.cancel_generation != token["cancel_generation"],
    ),
    (
        "STALE_INPUT",
        WRITERS,
        "revision",
        lambda row, token: (row.revision, row.input_digest) != (token["revision"], token["input_digest"]),
    ),
    (
        "LEASE_EXPIRED",
        HOLDER,
        "status",
        lambda row, token: row.lease_expires_at is None or row.lease_expires_at <= row.now,
    ),
    (
        "DEADLINE",
        HOLDER,
        "deadline_at",
        lambda row, token: row.deadline_at is not None and row.deadline_at <= row.now,
    ),
    ("HELD", WRITERS, "hold_reason", lambda row, token: row.hold_reason != ""),
    ("EFFECT_UNRESOLVED", frozenset({"commit"}), "open_effects", lambda row, token: row.open_effects > 0),
    ("NOT_STAGED", frozenset({"commit"}), "result_commit_id", lambda row, token: token.get("result") is None),
)


def reason(session: Session, found: Found | None, token: Token, verb: str) -> str:
    """Return why `token` may not do `verb`: the first that applies, in the contract's order.

    Time only moves on, so what was refused at T is still refused when this reads a slightly later one;
    LEASE_EXPIRED is therefore the answer when nothing else is left.
    """
    if found is None:
        return "NOT_FOUND"
    for name, verbs, needs, applies in REASONS:
        if verb in verbs and session.vocabulary.has(needs) and applies(found, token):
            return name
    return "LEASE_EXPIRED"
