"""Recovery: what a lost worker left is taken back, and what is past its deadline is ended (contract §5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs import measures
from jobs.failpoints import failpoint
from jobs.fenced import Fenced
from jobs.ledger import recover, settle
from jobs.ledger.session import Session
from jobs.ledger.settle import Ended
from jobs.status import JobStatus


class Recovery(Fenced):
    """Ends the rows of one table that nobody holds any more."""

    def recover(self, *, limit: int = 200, now: datetime | None = None) -> list[Ended]:
        """Take back a page of expired leases and end idle jobs past their deadline; returns what was ended.

        Rows that somebody works on are skipped; the guard is judged again in the write, so a lease that was
        renewed meanwhile is left alone. Raises whatever a hook raises, with nothing written.
        """

        def work(session: Session) -> list[Ended]:
            ended = self._end_expired(session, recover.pick_expired(session, limit=limit))
            ended += self._end_late(session, recover.pick_past_deadline(session, limit=limit))
            failpoint("recover.sent")
            return ended

        return self._count_recovered(self._transact(work, now))

    def recover_one(self, job_id: Any, *, now: datetime | None = None) -> list[Ended]:
        """Take back one expired lease, or end one job past its deadline: a page that raised is retried so."""

        def work(session: Session) -> list[Ended]:
            key = session.key(job_id)
            ended = self._end_expired(session, recover.pick_expired(session, limit=1, only=key))
            return ended or self._end_late(session, recover.pick_past_deadline(session, limit=1, only=key))

        return self._count_recovered(self._transact(work, now))

    def lapsed_ids(self, *, limit: int = 200, now: datetime | None = None) -> list[Any]:
        """Return ids that a page would take back or end, without touching them."""

        def work(session: Session) -> list[Any]:
            rows = recover.pick_expired(session, limit=limit)
            return [r.id for r in rows + recover.pick_past_deadline(session, limit=limit)]

        return self._transact(work, now)

    def running(self, *, now: datetime | None = None) -> tuple[int, int]:
        """Return how many leases are held and how many of those have run out."""
        return self._transact(recover.count_running, now)

    def _end_expired(
        self, session: Session, lapsed: Sequence[Any], *, unless_pending: bool = False
    ) -> list[Ended]:
        if not lapsed:
            return []
        rows = {r.id: _recovery_row(r, wish=JobStatus.PENDING, bump=1) for r in lapsed}
        landed = settle.end(session, list(rows.values()), fenced_by="expired")
        if unless_pending:
            # A takeover that its own guards refused (claims closed, a hold): the row is not ours to requeue.
            pending = [e for e in landed if e.status == JobStatus.PENDING]
            if pending:
                raise NotOurs
        if landed:
            self.hooks.ended(session, landed, rows, verb="recover")
        overdue = {r.id: r.overdue for r in lapsed}
        return [e._replace(overdue=overdue[e.id]) for e in landed]

    def _end_late(self, session: Session, late: Sequence[Any]) -> list[Ended]:
        if not late:
            return []
        late_row = {"excused": 0, "retry": 0, "error_code": "JOB_DEADLINE_EXCEEDED"}
        rows = {r.id: _recovery_row(r, wish=JobStatus.FAILED, bump=0) | late_row for r in late}
        landed = settle.end(session, list(rows.values()), fenced_by="past_deadline")
        if landed:
            self.hooks.ended(session, landed, rows, verb="deadline")
        return landed

    @staticmethod
    def _count_recovered(ended: list[Ended]) -> list[Ended]:
        for entry in ended:
            measures.count(f"recovered.{entry.status}", queue=entry.queue, kind=entry.kind)
            if entry.overdue > 0:
                measures.observe("reclaim_delay", entry.overdue, queue=entry.queue)
        return ended


class NotOurs(Exception):
    """Rolls a takeover back that only its own guards refused."""


def _recovery_row(lapsed: Any, *, wish: JobStatus, bump: int) -> dict[str, Any]:
    return {
        "id": lapsed.id,
        "attempt_id": lapsed.attempt_id,
        "generation": lapsed.generation,
        "wish": wish,
        "retry": 1,
        "excused": int(lapsed.by_raise),
        "bump": bump,
        "forced": 0,
        "delay": 0.0,
        "at_once": 1,
        "wait_reason": "",
        "error_code": "LEASE_TIMEOUT_RECOVERED",
        "error_message": "",
        "spent_code": "LEASE_TIMEOUT_MAX_ATTEMPTS",
    }
