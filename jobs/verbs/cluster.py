"""What a person does to all jobs at once: the epoch, claims, queues (contract §5, §9, §12)."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext as _

from jobs import admission, audit, wake
from jobs.canon import Json
from jobs.ledger import epoch as scheduler
from jobs.ledger import raising, timeline
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.outcomes import InvalidJob, Refused
from jobs.status import JobStatus
from jobs.verbs import audited
from jobs.verbs.base import Verbs, need_reason
from jobs.vocabulary import JOB


class Approval(NamedTuple):
    """A second person's yes to a raise that another one asked for."""

    proposal_id: uuid.UUID
    by: str
    signature: str
    note: str


class ClusterVerbs(Verbs):
    """Verbs on the scheduler and on queues."""

    def raise_epoch(
        self,
        *,
        expected: int,
        actor: str,
        reason: str,
        floor: int = 0,
        claims_open: bool | None = None,
        approval: Approval | None = None,
        now: datetime | None = None,
    ) -> int:
        """Refuse every older claim from now on; returns the new epoch (contract §5, §12).

        When this has returned, no authorising write of an older epoch is accepted, not even one whose
        transaction was under way. Writes no job row. `approval` is used up by it, in the same transaction.
        Raises Refused EPOCH_MOVED when the epoch is not `expected`, RAISE_DECIDED when the proposal was
        answered before or has run out; OperationalError after 2 s when a transaction holds it up: look at the
        holders, try again.
        """
        need_reason(reason)
        # A floor says that the person knows of the other life of this database, and takes this one.
        here = timeline.read(self.db) if floor else None

        def work(session: Session) -> int:
            before = scheduler.read(session)
            new = scheduler.raise_epoch(
                session,
                expected=expected,
                floor=floor,
                claims_open=claims_open,
                actor=actor,
                reason=reason,
                timeline=here,
            )
            if new is None:
                raise Refused("EPOCH_MOVED", expected=expected, found=scheduler.read(session).epoch)
            if approval is not None and not raising.decide(
                session, approval.proposal_id, "approved", by=approval.by, note=approval.note
            ):
                raise Refused("RAISE_DECIDED")
            approver = approval.signature if approval else ""
            _record(session, "raise_epoch", before, actor=actor, reason=reason, approver=approver)
            return new

        return transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def open_claims(
        self, *, actor: str, reason: str, seen: str | None = None, now: datetime | None = None
    ) -> bool:
        """Let workers claim again; False when they could.

        Raises Refused TIMELINE_MOVED after a failover, and CLAIMS_MOVED where somebody has closed them since
        `seen` (epoch.mark of when and by whom), or raised the epoch.
        """
        if timeline.moved(self.db):
            raise Refused("TIMELINE_MOVED")
        opened = self._set_claims(True, actor, reason, now, seen)
        if opened:
            timeline.forget_note(self.db)  # the clock's mark was forgotten if it lay ahead
        return opened

    def close_claims(self, *, actor: str, reason: str, now: datetime | None = None) -> bool:
        """Stop every claim; running jobs go on. False when closed. No claim lands after this returned."""
        return self._set_claims(False, actor, reason, now)

    def _set_claims(
        self, claims_open: bool, actor: str, reason: str, now: datetime | None, seen: str | None = None
    ) -> bool:
        need_reason(reason)

        def work(session: Session) -> bool:
            before = scheduler.read(session)
            mark = scheduler.mark(before.changed_by, before.changed_at)
            if seen not in (None, mark) and not before.claims_open:
                raise Refused("CLAIMS_MOVED", by=before.changed_by)
            done = scheduler.set_claims(session, claims_open=claims_open, actor=actor, reason=reason)
            if done:
                verb = "open_claims" if claims_open else "close_claims"
                _record(session, verb, before, actor=actor, reason=reason)
                wake.after_commit(self.db, {""})
            return done

        return transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def know_timeline(self, *, actor: str) -> bool:
        """Store which database this is, where nobody has; close claims where it is another than was stored.

        Returns whether it is the one. A worker says so when it registers and after it has reconnected.
        """
        if timeline.moved(self.db):
            self.close_claims(actor=actor, reason="timeline")
            return False
        here = timeline.read(self.db)
        if here:
            transact(
                lambda session: timeline.keep(session, here),
                using=self.db,
                vocabulary=JOB,
                durable=False,
                fenced=False,
            )
        return True

    def pause_queue(
        self,
        name: str,
        *,
        actor: str,
        reason: str,
        until: datetime | None = None,
        seen: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """Stop claims of one queue, for good or `until` an instant. No claim lands after this returned.

        With `seen` (a pause's epoch.mark; empty: it was seen open) only that pause is replaced: Refused
        QUEUE_MOVED names who paused it since.
        Raises InvalidJob naming `until` or the queue for what is no instant to come and no name of a queue.
        """
        need_reason(reason)
        until, name = admission.instant("until", until), admission.queue(name)

        def work(session: Session) -> None:
            before = scheduler.pauses(session, name)
            _need_seen(session, name, seen)
            # A local time that was taken for UTC: everybody would believe in a pause that is over.
            if not scheduler.pause(session, name, until=until, actor=actor, reason=reason):
                raise InvalidJob("until", _("an instant that is still to come"))
            _record_queue(session, "pause_queue", name, before, actor=actor, reason=reason)

        transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def resume_queue(
        self,
        name: str,
        *,
        actor: str,
        reason: str,
        seen: str | None = None,
        now: datetime | None = None,
    ) -> bool:
        """Open one queue again; False when it was open.

        With `seen` (a pause's epoch.mark) only that one is ended: Refused QUEUE_MOVED names who paused it
        since.
        """
        need_reason(reason)

        def work(session: Session) -> bool:
            before = scheduler.pauses(session, name, hold=True)
            _need_seen(session, name, seen)
            done = scheduler.resume(session, name, actor=actor, reason=reason)
            if done:
                _record_queue(session, "resume_queue", name, before, actor=actor, reason=reason)
                wake.after_commit(self.db, {name})
            return done

        # Fenced for its time-outs: it ends with the head of the audit chain locked, which others wait for.
        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False)

    def fence_worker(self, worker_id: str, *, actor: str, reason: str, now: datetime | None = None) -> int:
        """Refuse a worker for good and end its leases now; returns how many (contract §2).

        When this has returned, no claim, renewal or commit of that worker is accepted, not even one whose
        transaction was under way. Its jobs are taken back by the next recovery; each costs an attempt. Its
        code may still be running. Raises Refused WORKER_UNKNOWN or WORKER_FENCED naming who was first;
        OperationalError after 2 s when a transaction holds it up.
        """
        need_reason(reason)

        def work(session: Session) -> int:
            before = worker_rows.fenced(session, worker_id)
            if before is None:
                raise Refused("WORKER_UNKNOWN", worker=worker_id)
            if not worker_rows.fence(session, worker_id, actor=actor):
                raise Refused("WORKER_FENCED", worker=worker_id, by=before["fenced_by"])
            ended = worker_rows.end_leases(session, worker_id)
            changed = [[key, JobStatus.RUNNING.value] for key in ended]
            worker_rows.add_change(session, "fence_worker", changed, actor=actor, reason=reason)
            after: Json = {**(worker_rows.fenced(session, worker_id) or {}), "leases_ended": len(ended)}
            audited.append(
                session,
                "fence_worker",
                "worker",
                worker_id,
                actor=actor,
                reason=reason,
                before=before,
                after=after,
            )
            wake.after_commit(self.db, {""})
            return len(ended)

        return transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)


def _need_seen(session: Session, name: str, seen: str | None) -> None:
    by, mark = scheduler.paused(session, name)
    if mark and seen not in (None, mark):
        raise Refused("QUEUE_MOVED", queue=name, by=by)


def _record(
    session: Session,
    verb: str,
    before: scheduler.SchedulerState,
    *,
    actor: str,
    reason: str,
    approver: str = "",
) -> None:
    worker_rows.add_change(session, verb, [], actor=actor, reason=reason)
    after = scheduler.read(session)
    was, now = (
        {
            "epoch": state.epoch,
            "claims_open": state.claims_open,
            "timeline": state.timeline,
            "clock_high_water": state.clock_high_water and audit.stamp(state.clock_high_water),
        }
        for state in (before, after)
    )
    audited.append(
        session,
        verb,
        "scheduler",
        "1",
        actor=actor,
        reason=reason,
        before=was,
        after=now,
        approver=approver,
    )


def _record_queue(session: Session, verb: str, name: str, before: Json, *, actor: str, reason: str) -> None:
    worker_rows.add_change(session, verb, [], actor=actor, reason=f"{name}: {reason}"[:1000])
    after = scheduler.pauses(session, name)
    audited.append(session, verb, "queue", name, actor=actor, reason=reason, before=before, after=after)
