"""How a fenced verb is judged, counted and refused, whatever it does (contract §4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError

from jobs import measures
from jobs.hooks import RuntimeHooks, attempt_status
from jobs.ledger import fence, settle, timeline
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.outcomes import Code, Ending, Lease, Outcome
from jobs.status import JobStatus
from jobs.vocabulary import JobColumnVocabulary

log = logging.getLogger("interlock.runtime")
Result = TypeVar("Result")

REFUSALS_KEPT = 20
"""Refused writes kept per job; older ones only repeat what these say."""


class Fenced:
    """Runs verbs of the rows of one table in ledger transactions, and names what refused them.

    `vocabulary` names the table's columns and words, `hooks` write beside it in the same transaction,
    `using` is the database, `lease_seconds` the lease where the table has no column of its own.
    """

    def __init__(
        self,
        vocabulary: JobColumnVocabulary,
        *,
        hooks: RuntimeHooks | None = None,
        using: str = DEFAULT_DB_ALIAS,
        lease_seconds: int = 60,
    ) -> None:
        self.vocabulary = vocabulary
        self.hooks = hooks or RuntimeHooks()
        self.using = using
        self.lease_seconds = lease_seconds

    def _transact(self, work: Callable[[Session], Result], now: datetime | None) -> Result:
        return transact(work, using=self.using, vocabulary=self.vocabulary, now=now)

    def _judge(self, point: str, leases: Sequence[Lease], work: Any, now: datetime | None) -> list[Outcome]:
        """Run a fenced verb, count it, and keep its refusals in a transaction of their own afterwards."""
        refused: list[dict[str, Any]] = []
        if not leases:
            return []
        if point != "acknowledge_cancel" and timeline.moved(self.using):
            return self._elsewhere(point, leases, now)
        outcomes: list[Outcome] = transact(
            lambda s: self._collect(s, work, refused), using=self.using, vocabulary=self.vocabulary, now=now
        )
        self._checked(point, len(leases), sum(o.landed for o in outcomes))
        self._keep_refusals(point, refused, now)
        return outcomes

    def _elsewhere(self, point: str, leases: Sequence[Lease], now: datetime | None) -> list[Outcome]:
        """Refuse all: what these rows say of the leases is not what was said when they were claimed."""
        self._checked(point, len(leases), 0)
        refused = [self._refusal(lease.token(), None, "TIMELINE") for lease in leases]
        self._keep_refusals(point, refused, now)
        return [Outcome(Code.FENCED, reason="TIMELINE") for _lease in leases]

    def _keep_refusals(self, point: str, refused: list[dict[str, Any]], now: datetime | None) -> None:
        """Count refusals and write them down for people; the answers stand, even when that fails.

        Also in another life of the database than was claimed in: the row stands where the write was refused.
        """
        for row in refused:
            measures.count(f"refused.{point}.{row['reason']}")
        if not refused or self.vocabulary.table != "jobs_job":
            return

        def work(session: Session) -> None:
            for row in refused:
                worker_rows.add_refusal(session, **(row | {"point": point}))

        try:
            transact(work, using=self.using, vocabulary=self.vocabulary, now=now, fenced=False)
        except (DatabaseError, InterfaceError) as error:
            # Raised, it would hide from the worker which of its results have landed.
            log.warning("refusals not kept", extra={"point": point, "cause": str(error).splitlines()[:1]})

    @staticmethod
    def _collect(session: Session, work: Any, refused: list[dict[str, Any]]) -> list[Outcome]:
        refused.clear()  # the whole transaction may be run again
        session.refused = refused
        return work(session)  # type: ignore[no-any-return]

    @staticmethod
    def _checked(point: str, checked: int, accepted: int) -> None:
        measures.count(f"fence.{point}.checked", checked)
        measures.count(f"fence.{point}.accepted", accepted)

    def _refuse(
        self, session: Session, token: dict[str, Any], verb: str, *, ending: Ending | None = None
    ) -> Outcome:
        """Name why `token` was refused, from the locked row; an ending that had landed before is a replay."""
        found = fence.read_row(session, token["id"])
        reason = fence.reason(session, found, token, verb)
        if (
            found is not None
            and self.vocabulary.has("attempt_id")
            and found.attempt_id == token["attempt_id"]
        ):
            replay = self._replay(session, found, token, verb, ending)
            if replay is not None and replay.landed:
                return replay
            reason = replay.reason if replay else reason
        session.refused.append(self._refusal(token, found, reason))
        status = found.status if found else None
        if reason in ("CANCELLED", "STALE_INPUT"):
            number = found.cancel_generation if found else None
            return Outcome(Code(reason), reason=reason, status=status, cancel_generation=number)
        return Outcome(Code.FENCED, reason=reason, status=status)

    @staticmethod
    def _refusal(token: dict[str, Any], found: fence.Found | None, reason: str) -> dict[str, Any]:
        presented = ("generation", "epoch", "cancel_generation", "revision", "input_digest")
        return {
            "job_id": token["id"],
            "reason": reason,
            "worker": token["worker_id"],
            "attempt_id": token["attempt_id"],
            "keep": REFUSALS_KEPT,
            "presented": {name: token[name] for name in presented},
            "found": {}
            if found is None
            else {
                "status": found.status,
                "generation": found.generation,
                "epoch": found.current_epoch,
                "cancel_generation": found.cancel_generation,
                "revision": found.revision,
                "worker_id": found.worker_id,
            },
        }

    def _replay(
        self, session: Session, found: fence.Found, token: dict[str, Any], verb: str, ending: Ending | None
    ) -> Outcome | None:
        if verb == "commit" and found.result_commit_id == token["attempt_id"]:
            if settle.committed_digest(session, token["attempt_id"]) == token["result_digest"]:
                return Outcome(
                    Code.COMMITTED, replay=True, status=found.status, result_digest=token["result_digest"]
                )
            return Outcome(Code.FENCED, reason="RESULT_CONFLICT", status=found.status)
        if ending is not None and found.status != JobStatus.RUNNING:
            closed = settle.closed_as(session, token["attempt_id"])
            if closed == (attempt_status(ending.verb, found.status), ending.error_code):
                return Outcome(Code.LANDED, replay=True, status=found.status)
        return None
