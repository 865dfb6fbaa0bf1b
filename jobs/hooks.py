"""What is written beside a job row in the same transaction.

The ledger and a vocabulary are the protocol; a hook is what one table has besides. `Job` has attempts,
effect slots, a feed and people's callbacks; an adopted table may have mirrors or groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from jobs.ledger import cancel, cases, settle, slots, worker
from jobs.ledger.session import Encoded, Session
from jobs.ledger.settle import Ended
from jobs.outcomes import Lease
from jobs.status import TERMINAL, AttemptStatus, JobStatus

IdsCallback = Callable[[Sequence[Any]], None]


class RuntimeHooks:
    """The empty hooks: a table with nothing beside it. Each runs inside the transaction of its write."""

    def claimed(self, session: Session, taken: Sequence[Lease], *, traceparent: str = "") -> None:
        """Jobs were claimed, by a request of that trace."""

    def lost(
        self, session: Session, attempt_ids: Sequence[Any], job_ids: Sequence[Any], *, error_code: str
    ) -> None:
        """Attempts were superseded by a takeover."""

    def committed(self, session: Session, ids: Sequence[Any], leases: Encoded) -> None:
        """Results became canonical; `leases` is their encoded row list."""

    def ended(
        self, session: Session, landed: Sequence[Ended], rows: dict[Any, dict[str, Any]], *, verb: str
    ) -> None:
        """Attempts ended otherwise; `rows` holds what was asked, by job id."""


_ATTEMPT_STATUS = {
    "fail": AttemptStatus.FAILED,
    "release": AttemptStatus.RELEASED,
    "wait": AttemptStatus.WAITING,
    "skip": AttemptStatus.SKIPPED,
    "uncertain": AttemptStatus.UNCERTAIN,
    "acknowledge_cancel": AttemptStatus.CANCELLED,
    "recover": AttemptStatus.LOST,
    "force_cancel": AttemptStatus.CANCELLED,
}


def attempt_status(verb: str, target: JobStatus) -> AttemptStatus:
    """Return how an attempt's row closes: by its verb, except where the job's ending overruled the wish."""
    status = _ATTEMPT_STATUS[verb]
    if status == AttemptStatus.LOST:
        return status
    if target == JobStatus.CANCELLED:
        return AttemptStatus.CANCELLED
    if target == JobStatus.UNCERTAIN:
        return AttemptStatus.UNCERTAIN
    return status


def effect_id(job_id: str, revision: int, node_id: str, slot: str) -> str:
    """Return an effect's idempotency key: no attempt, no payload, length-prefixed parts (contract §6)."""
    parts = ("effect.v1", job_id, str(revision), node_id, slot)
    return hashlib.sha256(b"".join(b"%d:%s" % (len(p.encode()), p.encode()) for p in parts)).hexdigest()


class JobHooks(RuntimeHooks):
    """Attempts, effect slots, the feed, and the callbacks of people who must know in the same transaction."""

    def __init__(self) -> None:
        self.on_ended: list[IdsCallback] = []
        self.on_recovered: list[IdsCallback] = []

    def claimed(self, session: Session, taken: Sequence[Lease], *, traceparent: str = "") -> None:
        settle.open_attempts(session, [lease.job_id for lease in taken], traceparent=traceparent)
        worker.add_change(session, "claim", [[lease.job_id, "running"] for lease in taken])

    def lost(
        self, session: Session, attempt_ids: Sequence[Any], job_ids: Sequence[Any], *, error_code: str
    ) -> None:
        slots.executing_to_unknown(session, job_ids)
        settle.close_attempts(
            session,
            [{"attempt_id": a, "status": AttemptStatus.LOST, "error_code": error_code} for a in attempt_ids],
        )
        for callback in self.on_recovered:
            callback(job_ids)

    def committed(self, session: Session, ids: Sequence[Any], leases: Encoded) -> None:
        settle.close_committed(session, leases)
        cancel.close_unsent(session, ids)
        worker.add_change(session, "commit", [[job_id, "succeeded"] for job_id in ids])
        for callback in self.on_ended:
            callback(ids)

    def ended(
        self, session: Session, landed: Sequence[Ended], rows: dict[Any, dict[str, Any]], *, verb: str
    ) -> None:
        ids = [e.id for e in landed]
        if verb in _ATTEMPT_STATUS:
            slots.executing_to_unknown(session, ids)
            settle.close_attempts(session, [_closing(e, rows[e.id], verb) for e in landed if e.attempt_id])
        self._ask_people(session, landed, rows)
        over = [e.id for e in landed if e.status in TERMINAL]
        if over:
            cancel.close_unsent(session, over)
            cases.close_moot(session, over)
        row = rows[ids[0]]
        worker.add_change(
            session,
            verb,
            [[e.id, e.status.value] for e in landed],
            actor=row.get("actor") or "",
            reason=row.get("reason") or "",
        )
        if over:
            for callback in self.on_ended:
                callback(over)
        if verb == "recover":
            for callback in self.on_recovered:
                callback(ids)

    def _ask_people(self, session: Session, landed: Sequence[Ended], rows: dict[Any, dict[str, Any]]) -> None:
        """Open the cases that these endings leave to a person."""
        uncertain = [e.id for e in landed if e.status == JobStatus.UNCERTAIN]
        for job_id in uncertain:
            if other := rows[job_id].get("conflict"):
                slots.conflict(session, rows[job_id]["effect_id"], payload=other[0], digest=other[1])
        if uncertain:
            self._open_implicit(session, uncertain, rows)
            cases.open_for(session, uncertain)
        for e in landed:
            if e.status == JobStatus.WAITING and (effect_id := rows[e.id].get("effect_id")):
                cases.ask_approval(session, effect_id, e.id)

    @staticmethod
    def _open_implicit(session: Session, ids: Sequence[Any], rows: dict[Any, dict[str, Any]]) -> None:
        """Give an uncertain job that has no open slot one to rule on; the counter was set with the status."""
        for job in slots.without_open_slot(session, ids):
            job_id, slot = job["job_id"], f"job.{job.pop('generation')}"
            slots.insert_implicit(
                session,
                **job,
                effect_id=effect_id(str(job_id), job["revision"], "", slot),
                slot=slot,
                reference=(rows[job_id].get("reference") or "")[:200],
            )


def _closing(ended: Ended, row: dict[str, Any], verb: str) -> dict[str, Any]:
    return {
        "attempt_id": ended.attempt_id,
        "status": attempt_status(verb, ended.status),
        "error_code": row.get("error_code") or "",
        "error_message": row.get("error_message") or "",
        "traceback": row.get("traceback") or "",
        "log": row.get("log"),
    }
