"""`Job.objects`: the runtime of Job plus typed verbs (contract §3 to §5)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import IntegrityError, models

from jobs import admission, wake
from jobs.hooks import JobHooks
from jobs.ledger import cancel as people
from jobs.ledger import enqueue as inserts
from jobs.ledger import epoch as scheduler
from jobs.ledger import settle
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.models.protected import ProtectedQuerySet
from jobs.outcomes import Ending, Enqueued, InvalidJob, KeyConflict, Lease, Outcome, Refused
from jobs.runtime import DurableJobRuntime
from jobs.status import IDLE, TERMINAL, EffectStatus, HoldReason, JobStatus, WaitReason
from jobs.vocabulary import JOB

if TYPE_CHECKING:
    from jobs.handlers import Options
    from jobs.models.job import Job

HOOKS = JobHooks()
"""One set for the process; append callbacks to `HOOKS.on_ended` and `HOOKS.on_recovered`."""
BATCH = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""One statement's rows and arguments: more would be one huge parameter."""
Result = TypeVar("Result")


class JobManager(models.Manager.from_queryset(ProtectedQuerySet)):  # type: ignore[misc]
    """Every write on jobs. Reads are those of a query set; its writing methods are refused."""

    if TYPE_CHECKING:
        model: type[Job]

    @property
    def runtime(self) -> DurableJobRuntime:
        """The set-based verbs, for workers."""
        return DurableJobRuntime(JOB, hooks=HOOKS, using=self.db)

    # -- enqueue -----------------------------------------------------------------------------------------

    def enqueue(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        options: Options | None = None,
        now: datetime | None = None,
    ) -> Enqueued:
        """Add one job in the caller's transaction: it exists exactly if that commits (contract §3).

        Returns the job's id; `created` is false when the unique key's job was there already with the same
        kind and input. Raises InvalidJob naming the field and the limit, KeyConflict when the key is held by
        another input, Refused PARENT_CANCELLED.
        """
        answer = self.enqueue_many([(kind, arguments, options)], now=now)[0]
        if isinstance(answer, KeyConflict):
            raise answer
        return answer

    def enqueue_many(
        self,
        calls: Iterable[tuple[str, Mapping[str, Any], Options | None]],
        *,
        now: datetime | None = None,
    ) -> list[Enqueued | KeyConflict]:
        """Add many jobs, all or none, in statements of a thousand; answers in the order given.

        A held key with another input is answered by a KeyConflict in its place and stops nothing else.
        """
        rows = [admission.row(kind, arguments, options) for kind, arguments, options in calls]
        answers: list[Enqueued | KeyConflict] = []
        if not rows:
            return answers

        def work(session: Session) -> list[Enqueued | KeyConflict]:
            self._check_parents(session, rows)
            done: list[Enqueued | KeyConflict] = []
            for part in _parts(rows):
                done += self._insert(session, part)
            wake.after_commit(self.db, {row["queue"] for row in rows})
            return done

        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False, fenced=False)

    def _insert(self, session: Session, rows: Sequence[dict[str, Any]]) -> list[Enqueued | KeyConflict]:
        created = inserts.insert(session, rows)
        left = [row for row in rows if row["id"] not in created]
        answers: dict[Any, Enqueued | KeyConflict] = {}
        for _ in range(3):
            if not left:
                break
            held = inserts.holders(session, left)
            again = []
            for row in left:
                holder = held.get(row["unique_key"])
                if holder is None:
                    again.append(row)  # the holder has ended meanwhile
                elif (holder.kind, holder.input_digest) == (row["kind"], row["input_digest"]):
                    answers[row["id"]] = Enqueued(uuid.UUID(holder.id), created=False)
                else:
                    answers[row["id"]] = KeyConflict(row["unique_key"], uuid.UUID(holder.id), holder.status)
            left = []
            if again:
                created |= inserts.insert(session, again)
                left = [row for row in again if row["id"] not in created]
        if left:
            raise Refused("KEY_CONTENDED", key=left[0]["unique_key"])
        return [answers.get(row["id"]) or Enqueued(uuid.UUID(row["id"]), created=True) for row in rows]

    @staticmethod
    def _check_parents(session: Session, rows: Sequence[dict[str, Any]]) -> None:
        wanted = sorted({row["parent_id"] for row in rows if row["parent_id"]})
        if not wanted:
            return
        found = inserts.lock_parents(session, wanted)
        for parent_id in wanted:
            if parent_id not in found:
                raise InvalidJob("parent_id", f"there is no job {uuid.UUID(parent_id)}")
            status, cancel_requested = found[parent_id]
            if status == JobStatus.CANCELLED or cancel_requested:
                raise Refused("PARENT_CANCELLED", parent_id=str(uuid.UUID(parent_id)))

    # -- the worker's verbs ---------------------------------------------------------------------------------

    def claim(
        self,
        *,
        worker_id: str,
        queues: Sequence[str],
        kinds: Sequence[str],
        max_claims: int = 1,
        ttl: int | None = None,
        epoch: int | None = None,
        now: datetime | None = None,
    ) -> list[Lease]:
        """Take up to `max_claims` due jobs; see DurableJobRuntime.claim."""
        return self.runtime.claim(
            worker_id=worker_id,
            queues=queues,
            kinds=kinds,
            max_claims=max_claims,
            ttl=ttl or LONGEST_LEASE,
            epoch=epoch,
            now=now,
        )

    def claim_job(
        self, job_id: uuid.UUID, *, worker_id: str, now: datetime | None = None, **more: Any
    ) -> Lease | None:
        """Take one job by id, also by takeover of an expired lease; see DurableJobRuntime.claim_job."""
        more.setdefault("ttl", LONGEST_LEASE)
        return self.runtime.claim_job(job_id, worker_id=worker_id, now=now, **more)

    def renew(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Extend one lease; workers renew all of theirs at once with `runtime.renew`."""
        return self.runtime.renew([lease], now=now)[0]

    def stage(self, lease: Lease, result: Any, *, now: datetime | None = None) -> Outcome:
        """Keep a result for one attempt, fenced, without making it the job's (contract §5)."""
        text, digest = admission.result(result)
        return self.runtime.stage(lease, text, digest, now=now)

    def commit(
        self,
        lease: Lease,
        result: Any = None,
        *,
        staged_digest: str | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """Make `result`, or the staged one of `staged_digest`, the job's one canonical result."""
        if staged_digest is not None:
            return self.runtime.commit([(lease, None, staged_digest)], now=now)[0]
        text, digest = admission.result(result)
        return self.runtime.commit([(lease, text, digest)], now=now)[0]

    def commit_many(
        self, results: Sequence[tuple[Lease, Any]], *, now: datetime | None = None
    ) -> list[Outcome]:
        """Commit many results in one statement; outcomes in order, each judged alone."""
        prepared = [(lease, *admission.result(value)) for lease, value in results]
        return self.runtime.commit(prepared, now=now)

    def fail(
        self,
        lease: Lease,
        error_code: str,
        message: str = "",
        *,
        retry_after: float | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """End the attempt as failed. `retry_after` seconds overrides what the code's registry entry says."""
        return self._end(admission.failure(lease, error_code, message, retry_after=retry_after), now)

    def release(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Give the job back unharmed; costs no attempt."""
        return self._end(Ending.release(lease), now)

    def wait(
        self,
        lease: Lease,
        reason: WaitReason = WaitReason.TIMER,
        *,
        seconds: float | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """Give the lease up until `seconds` from now; an approval has no due time."""
        return self._end(
            Ending.wait(lease, reason, seconds=seconds, total=admission.longest_wait(lease.kind)), now
        )

    def skip(
        self, lease: Lease, error_code: str, message: str = "", *, now: datetime | None = None
    ) -> Outcome:
        """End the job as skipped: there is nothing to do."""
        return self._end(Ending.skip(lease, error_code, message), now)

    def uncertain(
        self, lease: Lease, note: str, *, reference: str = "", now: datetime | None = None
    ) -> Outcome:
        """Stop because nobody knows whether an outside effect took place."""
        return self._end(Ending.uncertain(lease, note, reference=reference), now)

    def acknowledge_cancel(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Stop because a cancel was requested."""
        return self._end(Ending.acknowledge_cancel(lease), now)

    def _end(self, ending: Ending, now: datetime | None) -> Outcome:
        return self.runtime.end([ending], now=now)[0]

    def recover(self, *, limit: int = 200, now: datetime | None = None) -> list[settle.Ended]:
        """Take back expired leases and end what is past its deadline; see DurableJobRuntime.recover."""
        return self.runtime.recover(limit=limit, now=now)

    # -- a person's verbs -----------------------------------------------------------------------------------

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
        _need_short(reason)

        def work(session: Session) -> JobStatus:
            key, rows = self._locked_family(session, job_id)
            own = rows[key]
            if own.status in TERMINAL and own.status != JobStatus.CANCELLED:
                raise Refused("ALREADY_ENDED", status=own.status.value)
            if state_version is not None:
                _same_version(own, state_version)
            after = _cancel(session, rows.values(), key=key, actor=actor, reason=reason)
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
        _need_reason(reason)

        def work(session: Session) -> JobStatus:
            key, rows = self._locked_family(session, job_id)
            row = rows.pop(key)
            if row.status in TERMINAL:
                raise Refused("ALREADY_ENDED", status=row.status.value)
            _same_version(row, state_version)
            ending = _operator_row(row, actor=actor, reason=reason) | {"bump": 1}
            ending["excused"] = int(row.status == JobStatus.RUNNING)
            landed = settle.end(session, [ending], fenced_by="unfinished")
            HOOKS.ended(session, landed, {key: ending}, verb="force_cancel")
            _cancel(session, rows.values(), key=key, actor=actor, reason=reason)
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
        (naming the holder), PARENT_CANCELLED, DEADLINE_PASSED, EFFECT_ABANDONED, CONTRADICTION.
        """
        _need_reason(reason)

        def work(session: Session) -> JobStatus:
            key, row = self._locked(session, job_id, with_parent=True)
            if row.status == JobStatus.SUCCEEDED:
                raise Refused("SUCCEEDED")
            if row.status not in TERMINAL:
                raise Refused("NOT_ENDED", status=row.status.value)
            _same_version(row, state_version)
            if row.hold_reason == HoldReason.CONTRADICTION:
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
                    pk=job_id, effects__status=EffectStatus.ABANDONED, effects__grants__gt=0
                ).exists()
                raise Refused("EFFECT_ABANDONED" if abandoned else "DEADLINE_PASSED")
            status, _version, queue = done
            worker_rows.add_change(session, "retry", [[key, status.value]], actor=actor, reason=reason)
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
        _need_reason(reason)

        def work(session: Session) -> int:
            key, row = self._locked(session, job_id)
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
            worker_rows.add_change(session, "revise", [[key, done[0].value]], actor=actor, reason=reason)
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
        _need_reason(reason)

        def work(session: Session) -> bool:
            key, row = self._locked(session, job_id)
            if row.status in TERMINAL:
                raise Refused("ALREADY_ENDED", status=row.status.value)
            if seen is not None:
                _same_version(row, seen)
            done = people.hold(session, job_id, hold, seen=seen)
            if done:
                worker_rows.add_change(session, verb, [[key, done[0].value]], actor=actor, reason=reason)
            return done is not None

        return self._operate(work, now)

    # -- the cluster ---------------------------------------------------------------------------------

    def raise_epoch(
        self,
        *,
        expected: int,
        actor: str,
        reason: str,
        floor: int = 0,
        claims_open: bool | None = None,
        now: datetime | None = None,
    ) -> int:
        """Refuse every older claim from now on; returns the new epoch (contract §5, §12).

        When this has returned, no authorising write of an older epoch is accepted, not even one whose
        transaction was under way. Writes no job row. Raises Refused EPOCH_MOVED when the epoch is not
        `expected`; OperationalError after 2 s when a transaction holds it up: look at the holders, try again.
        """
        _need_reason(reason)

        def work(session: Session) -> int:
            new = scheduler.raise_epoch(
                session, expected=expected, floor=floor, claims_open=claims_open, actor=actor, reason=reason
            )
            if new is None:
                raise Refused("EPOCH_MOVED", expected=expected, found=scheduler.read(session).epoch)
            worker_rows.add_change(session, "raise_epoch", [], actor=actor, reason=reason)
            return new

        return transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def open_claims(self, *, actor: str, reason: str, now: datetime | None = None) -> bool:
        """Let workers claim again; False when they could."""
        return self._set_claims(True, actor, reason, now)

    def close_claims(self, *, actor: str, reason: str, now: datetime | None = None) -> bool:
        """Stop every claim; running jobs go on. False when closed. No claim lands after this returned."""
        return self._set_claims(False, actor, reason, now)

    def _set_claims(self, claims_open: bool, actor: str, reason: str, now: datetime | None) -> bool:
        _need_reason(reason)

        def work(session: Session) -> bool:
            done = scheduler.set_claims(session, claims_open=claims_open, actor=actor, reason=reason)
            if done:
                verb = "open_claims" if claims_open else "close_claims"
                worker_rows.add_change(session, verb, [], actor=actor, reason=reason)
                wake.after_commit(self.db, {""})
            return done

        return transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def pause_queue(
        self,
        name: str,
        *,
        actor: str,
        reason: str,
        until: datetime | None = None,
        now: datetime | None = None,
    ) -> None:
        """Stop claims of one queue, for good or `until` an instant. No claim lands after this returned."""
        _need_reason(reason)

        def work(session: Session) -> None:
            scheduler.pause(session, name, until=until, actor=actor, reason=reason)
            worker_rows.add_change(session, "pause_queue", [], actor=actor, reason=f"{name}: {reason}"[:1000])

        transact(work, using=self.db, vocabulary=JOB, now=now, exclusive=True, durable=False)

    def resume_queue(self, name: str, *, actor: str, reason: str, now: datetime | None = None) -> bool:
        """Open one queue again; False when it was open."""
        _need_reason(reason)

        def work(session: Session) -> bool:
            done = scheduler.resume(session, name, actor=actor, reason=reason)
            if done:
                worker_rows.add_change(
                    session, "resume_queue", [], actor=actor, reason=f"{name}: {reason}"[:1000]
                )
                wake.after_commit(self.db, {name})
            return done

        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False, fenced=False)

    # -- shared --------------------------------------------------------------------------------------

    def _operate(self, work: Callable[[Session], Result], now: datetime | None) -> Result:
        """Run a person's verb, in the caller's transaction if there is one: its audit row goes along."""
        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False)

    @staticmethod
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

    @staticmethod
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


LONGEST_LEASE = int(timedelta(days=1).total_seconds())
"""A claim asks for the job's own lease, which its kind declared; this is no bound of its own."""


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


def _parts(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row["input"])
        if part and (len(part) == BATCH or size > BATCH_BYTES):
            yield part
            part, size = [], len(row["input"])
        part.append(row)
    yield part


def _need_reason(reason: str) -> None:
    if not reason.strip():
        raise Refused("REASON_MISSING")
    _need_short(reason)


def _need_short(reason: str) -> None:
    if len(reason) > 1000:
        raise Refused("REASON_TOO_LONG", limit=1000)


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
