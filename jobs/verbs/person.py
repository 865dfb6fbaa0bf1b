"""What a person does to one job: cancel, force cancel, retry, revise, hold (contract §3, §7)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.db.models import F

from jobs import admission, wake
from jobs.canon import Json
from jobs.ledger import cancel as people
from jobs.ledger import cases, settle
from jobs.ledger import claim as claims
from jobs.ledger import enqueue as inserts
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session
from jobs.outcomes import Refused
from jobs.status import IDLE, TERMINAL, EffectStatus, HoldReason, JobStatus
from jobs.verbs import attributes, audited
from jobs.verbs.base import HOOKS, Verbs, need_reason, need_short


class PersonVerbs(Verbs):
    """A person's verbs. Each joins the caller's transaction: its audit row stands and falls with it."""

    def cancel(
        self,
        job_id: uuid.UUID,
        *,
        actor: str,
        reason: str = "",
        state_version: int | None = None,
        now: datetime | None = None,
    ) -> JobStatus:
        """Cancel a job and its descendants; returns the job's status afterwards (contract §7).

        `cancelled` at once when nothing runs; `running` means that the request is recorded and the holder
        will acknowledge; `uncertain` that an open effect has to be settled first. A second request changes
        nothing. Raises Refused NOT_FOUND, ALREADY_ENDED naming how it ended, REASON_TOO_LONG, or VERSION when
        a `state_version` is given and the job is not at it any more.
        """
        need_short(reason)

        def work(session: Session) -> JobStatus:
            key, rows = _locked_family(session, job_id)
            own = rows[key]
            if own.status in TERMINAL and own.status != JobStatus.CANCELLED:
                raise Refused("ALREADY_ENDED", status=own.status.value)
            if state_version is not None:
                _same_version(own, state_version)
            after = _cancel(session, rows.values(), key=key, actor=actor, reason=reason)
            others = {job_id: status for job_id, status in after.items() if job_id != key}
            audited.job(session, "cancel", own, actor=actor, reason=reason, descendants=others)
            return after.get(key, own.status)

        return self._operate(work, now)

    def force_cancel(
        self, job_id: uuid.UUID, *, state_version: int, actor: str, reason: str, now: datetime | None = None
    ) -> JobStatus:
        """Take a job away from whoever runs it; returns `cancelled`, or `uncertain` with an open effect.

        It overrules the worker, not the database: the generation grows, so the old attempt can write
        nothing more, but its code may still be running. Raises Refused VERSION when the job is not at
        `state_version` any more, ALREADY_ENDED, NOT_FOUND.
        """
        need_reason(reason)

        def work(session: Session) -> JobStatus:
            key, rows = _locked_family(session, job_id)
            row = rows.pop(key)
            if row.status in TERMINAL:
                raise Refused("ALREADY_ENDED", status=row.status.value)
            _same_version(row, state_version)
            ending = _operator_row(row, actor=actor, reason=reason) | {"bump": 1}
            ending["excused"] = int(row.status == JobStatus.RUNNING)
            landed = settle.end(session, [ending], fenced_by="unfinished")
            HOOKS.ended(session, landed, {key: ending}, verb="force_cancel")
            others = _cancel(session, rows.values(), key=key, actor=actor, reason=reason)
            audited.job(session, "force_cancel", row, actor=actor, reason=reason, descendants=others)
            return landed[0].status

        return self._operate(work, now)

    def retry(
        self,
        job_id: uuid.UUID,
        *,
        state_version: int,
        actor: str,
        reason: str,
        deadline_at: datetime | None = None,
        now: datetime | None = None,
    ) -> JobStatus:
        """Bring a failed, cancelled or skipped job back with a fresh budget; returns its status.

        Generations, attempts and slots are kept. Raises Refused VERSION, NOT_ENDED, SUCCEEDED, KEY_TAKEN
        (naming the holder), PARENT_CANCELLED, DEADLINE_PASSED, EFFECT_ABANDONED, CONTRADICTION; InvalidJob
        for a `deadline_at` that is no instant.
        """
        need_reason(reason)
        deadline_at = admission.instant("deadline_at", deadline_at)

        def work(session: Session) -> JobStatus:
            key, row = _locked(session, job_id, with_parent=True)
            if row.status == JobStatus.SUCCEEDED:
                raise Refused("SUCCEEDED")
            if row.status not in TERMINAL:
                raise Refused("NOT_ENDED", status=row.status.value)
            _same_version(row, state_version)
            if row.hold_reason == HoldReason.CONTRADICTION or cases.contradicted(session, key):
                raise Refused("CONTRADICTION")
            parent = people.read(session, [row.parent_id]).get(row.parent_id) if row.parent_id else None
            if parent and (parent.status == JobStatus.CANCELLED or parent.cancel_requested):
                raise Refused("PARENT_CANCELLED", parent_id=str(uuid.UUID(row.parent_id)))
            if row.unique_key:
                holder = inserts.holders(session, [{"unique_key": row.unique_key}]).get(row.unique_key)
                if holder and holder.id != key:
                    raise Refused("KEY_TAKEN", key=row.unique_key, job_id=str(uuid.UUID(holder.id)))
            done = people.retry(session, job_id, state_version=state_version, deadline=deadline_at)
            if done is None:
                abandoned = self.filter(
                    pk=job_id,
                    effects__status=EffectStatus.ABANDONED,
                    effects__grants__gt=0,
                    effects__revision=F("revision"),
                ).exists()
                raise Refused("EFFECT_ABANDONED" if abandoned else "DEADLINE_PASSED")
            status, _version, queue = done
            worker_rows.add_change(session, "retry", [[key, status.value]], actor=actor, reason=reason)
            audited.job(session, "retry", row, actor=actor, reason=reason)
            wake.after_commit(self.db, {queue})
            return status

        try:
            return self._operate(work, now)
        except IntegrityError:
            # Somebody enqueued under the key between our look and our write.
            key = self.only("unique_key").get(pk=job_id).unique_key
            holder = self.filter(unique_key=key).exclude(pk=job_id).order_by("-id").first() if key else None
            if holder is None:
                raise
            raise Refused("KEY_TAKEN", key=key, job_id=str(holder.pk)) from None

    def revise(
        self,
        job_id: uuid.UUID,
        arguments: Mapping[str, Any],
        *,
        state_version: int,
        actor: str,
        reason: str,
        effects: str = "",
        now: datetime | None = None,
    ) -> int:
        """Give a job another input; returns its new revision. Whoever runs it gets STALE_INPUT and releases.

        `effects` is `repeat_effects` or `keep_effects` where committed effects exist. Raises Refused
        SUCCEEDED, UNCERTAIN, VERSION, EFFECT_OPEN, EFFECTS_COMMITTED; InvalidJob for a bad input.
        """
        need_reason(reason)

        def work(session: Session) -> int:
            key, row = _locked(session, job_id)
            if row.status == JobStatus.SUCCEEDED:
                raise Refused("SUCCEEDED")
            if row.status == JobStatus.UNCERTAIN:
                raise Refused("UNCERTAIN")
            _same_version(row, state_version)
            if row.open_effects:
                raise Refused("EFFECT_OPEN")
            job = self.only("kind").get(pk=job_id)
            text, digest = admission.arguments(job.kind, arguments)
            committed = job.effects.filter(status=EffectStatus.COMMITTED).exists()
            if committed and effects not in ("repeat_effects", "keep_effects"):
                raise Refused("EFFECTS_COMMITTED")
            people.close_unsent(session, [key], statuses=("prepared", "absent"))
            done = people.revise(session, job_id, text=text, digest=digest, state_version=state_version)
            if done is None:
                raise Refused("VERSION", seen=state_version, found=row.state_version)
            attributes.renew(session, key, job.kind, text)
            worker_rows.add_change(session, "revise", [[key, done[0].value]], actor=actor, reason=reason)
            audited.job(session, "revise", row, actor=actor, reason=reason)
            return done[2]

        return self._operate(work, now)

    def hold(
        self,
        job_id: uuid.UUID,
        *,
        actor: str,
        reason: str,
        hold_reason: HoldReason = HoldReason.OPERATOR,
        state_version: int | None = None,
        now: datetime | None = None,
    ) -> bool:
        """Keep a job from being claimed until `unhold`; a running commit answers HELD. False if held so."""
        return self._set_hold(job_id, hold_reason.value, "hold", actor, reason, state_version, now)

    def unhold(
        self,
        job_id: uuid.UUID,
        *,
        actor: str,
        reason: str,
        state_version: int | None = None,
        now: datetime | None = None,
    ) -> bool:
        """Lift a hold; a due job becomes claimable at once. False when there was none."""
        return self._set_hold(job_id, "", "unhold", actor, reason, state_version, now)

    def quarantine(
        self, job_ids: Sequence[uuid.UUID], *, actor: str, reason: str, now: datetime | None = None
    ) -> int:
        """Hold a page of jobs as `quarantine`; returns how many. The ended and the held stay as they are.

        One audit entry for the page, which names its jobs.
        """
        need_reason(reason)

        def work(session: Session) -> int:
            session.lock(sorted(session.key(job_id) for job_id in job_ids))
            held = people.hold_many(session, job_ids, HoldReason.QUARANTINE.value)
            if held:
                changed = [[key, status.value] for key, status in sorted(held.items())]
                worker_rows.add_change(session, "hold", changed, actor=actor, reason=reason)
                named: list[Json] = [str(uuid.UUID(key)) for key in sorted(held)]
                audited.append(
                    session,
                    "quarantine",
                    "jobs",
                    str(named[0]),
                    actor=actor,
                    reason=reason,
                    before={"hold_reason": ""},
                    after={"hold_reason": HoldReason.QUARANTINE.value, "held": len(held), "jobs": named},
                )
            return len(held)

        return self._operate(work, now)

    def _set_hold(
        self,
        job_id: uuid.UUID,
        hold: str,
        verb: str,
        actor: str,
        reason: str,
        seen: int | None,
        now: datetime | None,
    ) -> bool:
        need_reason(reason)

        def work(session: Session) -> bool:
            key, row = _locked(session, job_id)
            if row.status in TERMINAL:
                raise Refused("ALREADY_ENDED", status=row.status.value)
            if seen is not None:
                _same_version(row, seen)
            done = people.hold(session, job_id, hold, seen=seen)
            if done:
                worker_rows.add_change(session, verb, [[key, done[0].value]], actor=actor, reason=reason)
            if done and not hold:
                claims.promote_id(session, job_id)
                wake.after_commit(self.db, {""})
            audited.job(session, verb, row, actor=actor, reason=reason)
            return done is not None

        return self._operate(work, now)


def _locked_family(session: Session, job_id: uuid.UUID) -> tuple[Any, dict[Any, people.Row]]:
    """Lock a job and its descendants, parents before children as their ids sort."""
    key = session.key(job_id)
    ids: list[Any] = []
    # A child may be born until its parent is locked, so look again until nothing new is found.
    while born := [i for i in people.family(session, job_id) if i not in ids]:
        session.lock(sorted(born))
        ids += born
    rows = people.read(session, ids)
    if key not in rows:
        raise Refused("NOT_FOUND", job_id=str(job_id))
    return key, rows


def _locked(session: Session, job_id: uuid.UUID, *, with_parent: bool = False) -> tuple[Any, people.Row]:
    key = session.key(job_id)
    if with_parent:  # the parent is locked first, as everywhere
        row = people.read(session, [key]).get(key)
        session.lock([row.parent_id] if row and row.parent_id else [])
    session.lock([key])
    row = people.read(session, [key]).get(key)
    if row is None:
        raise Refused("NOT_FOUND", job_id=str(job_id))
    return key, row


def _cancel(
    session: Session, rows: Iterable[people.Row], *, key: Any, actor: str, reason: str
) -> dict[Any, JobStatus]:
    """Cancel the idle of `rows`, record the request on the others; returns the status of those changed."""
    inherited = f"parent {uuid.UUID(key)} cancelled"
    found = list(rows)
    endings = {
        row.id: _operator_row(row, actor=actor, reason=reason if row.id == key else inherited)
        for row in found
        if row.status in IDLE
    }
    landed = settle.end(session, list(endings.values()), fenced_by="idle")
    if landed:
        HOOKS.ended(session, landed, endings, verb="cancel")
    requested = people.request(session, [row.id for row in found], actor=actor, reason=reason)
    if requested:
        changed = [[job_id, status.value] for job_id, status in requested.items()]
        worker_rows.add_change(session, "cancel", changed, actor=actor, reason=reason)
    return {e.id: e.status for e in landed} | requested


def _same_version(row: people.Row, seen: int) -> None:
    if row.state_version != seen:
        raise Refused("VERSION", seen=seen, found=row.state_version, status=row.status.value)


def _operator_row(row: people.Row, *, actor: str, reason: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "attempt_id": row.attempt_id,
        "generation": row.claim_generation,
        "state_version": row.state_version,
        "wish": JobStatus.CANCELLED,
        "retry": 0,
        "excused": 0,
        "bump": 0,
        "forced": 1,
        "delay": None,
        "at_once": 0,
        "wait_reason": "",
        "error_code": "JOB_CANCELLED",
        "error_message": "",
        "spent_code": "",
        "actor": actor,
        "reason": reason,
    }
