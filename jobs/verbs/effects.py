"""What becomes of one effect: prepare and grant, report, resolve (contract §4, §6).

Prepare and grant are the holder's and fenced. A report and an inquiry's answer authorise nothing, so they are
never refused; whether they decide is a matter of the slot's grant and version.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from jobs import measures, redact, wake
from jobs.effect_kinds import EffectKind
from jobs.failpoints import failpoint
from jobs.fenced import Fenced
from jobs.ledger import cancel as people
from jobs.ledger import cases, inquiries, reports, settle, slots
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import Session, transact
from jobs.ledger.slots import NotGranted, Slot
from jobs.outcomes import Code, Lease, Outcome, Refused
from jobs.status import IDLE, TERMINAL, EffectStatus, JobStatus
from jobs.verbs.gate import Ask, Gate, Word

BODY_BYTES = 8 * 1024


class EffectRuntime(Fenced):
    """The verbs of effect slots, of `Job` only."""

    # -- the holder's --------------------------------------------------------------------------------------

    def gate(self, lease: Lease, ask: Ask, *, grant_id: Any, now: datetime | None = None) -> Gate:
        """Bind the payload and, where nothing stands against it, permit this attempt to send it: one
        transaction.

        GRANTED is durable when this has returned. The same attempt and `grant_id` again are GRANTED again. An
        effect that may have been sent before is OPEN; nothing is decided about it here. Without a `grant_id`
        nothing is permitted: PREPARED says that `grant_again` may ask for it.
        """

        def work(session: Session) -> Gate:
            token = lease.token()
            session.lock([token["id"]])
            if not slots.may(session, "prepare", token):
                return Gate(Word.REFUSED, outcome=self._refuse(session, token, "prepare"))
            slot = self._bind(session, lease, ask)
            word = self._standing(slot, ask, token, grant_id)
            if word is None and grant_id is None:
                word = Word.PREPARED
            if word is None:
                word = self._grant(session, token, slot, ask.kind, grant_id)
                slot = slots.find(session, slot.id) or slot
            failpoint("grant.sent")
            return Gate(word, slot)

        return self._gate("prepare", lease, work, now)

    def grant_again(
        self, lease: Lease, slot: Slot, kind: EffectKind, *, grant_id: Any, now: datetime | None = None
    ) -> Gate:
        """Permit a sending of a slot as it was read: prepared, proven absent, or once more under its key.

        The same attempt and `grant_id` again are GRANTED again. OPEN when the slot has moved on since; read
        it again.
        """

        def work(session: Session) -> Gate:
            token = lease.token()
            session.lock([token["id"]])
            if not slots.may(session, "grant", token):
                return Gate(Word.REFUSED, outcome=self._refuse(session, token, "grant"))
            current = slots.find(session, slot.id)
            if current is not None and _is_granted(current, token, grant_id):
                return Gate(Word.GRANTED, current)
            if current is None or current.version != slot.version:
                return Gate(Word.OPEN, current)
            word = self._grant(session, token, current, kind, grant_id)
            failpoint("grant.sent")
            return Gate(word, slots.find(session, slot.id))

        return self._gate("grant", lease, work, now)

    def _gate(self, point: str, lease: Lease, work: Any, now: datetime | None) -> Gate:
        failpoint("grant.before")
        answers: list[Gate] = []

        def judge(session: Session) -> list[Outcome]:
            gate = work(session)
            answers[:] = [gate]
            return [gate.outcome or Outcome(Code.LANDED)]

        outcomes = self._judge(point, [lease], judge, now)
        failpoint("grant.after")
        return answers[0] if answers else Gate(Word.REFUSED, outcome=outcomes[0])  # not even judged: TIMELINE

    @staticmethod
    def _bind(session: Session, lease: Lease, ask: Ask) -> Slot:
        values = ask.values(lease)
        slots.insert(session, values)
        slot = slots.find(session, values["id"])
        assert slot is not None, values["id"]  # noqa: S101  (slots are never deleted under a running job)
        if slot.status == EffectStatus.ABANDONED and slots.reopen(session, values, slot.version):
            return slots.find(session, slot.id) or slot
        return slot

    @staticmethod
    def _standing(slot: Slot, ask: Ask, token: dict[str, Any], grant_id: Any) -> Word | None:
        """Return what keeps a slot from being sent now, or None."""
        if slot.in_conflict or (slot.payload_digest != ask.digest and not slot.use_recorded):
            return Word.CONFLICT
        match slot.status:
            case EffectStatus.COMMITTED:
                return Word.RECORDED
            case EffectStatus.ABANDONED:
                return Word.ABANDONED
            case EffectStatus.EXECUTING:
                return Word.GRANTED if _is_granted(slot, token, grant_id) else Word.OPEN
            case EffectStatus.UNKNOWN:
                return Word.OPEN
        return None

    def _grant(
        self, session: Session, token: dict[str, Any], slot: Slot, kind: EffectKind, grant_id: Any
    ) -> Word:
        needs = kind.asks_approval(slot.amount) or slot.key_expired
        try:
            with transaction.atomic(using=self.using):
                if not slots.grant(session, token, slot, grant_id=grant_id, needs_approval=needs):
                    return Word.APPROVAL
        except NotGranted:
            return Word.OPEN
        cases.close(session, slot.id, "approval", "ruled")
        return Word.GRANTED

    # -- information: never refused
    # ---------------------------------------------------------------------------

    def report(
        self,
        effect: str,
        *,
        attempt_id: Any,
        grant_id: Any,
        status: EffectStatus,
        response: str | None = None,
        reference: str = "",
        body: str = "",
        now: datetime | None = None,
    ) -> EffectStatus | None:
        """Record what the sender of one grant knows: committed, absent (refused, or proven not sent),
        unknown.

        Returns what the slot is now, or None where the report came too late to decide: then it is evidence,
        and where it contradicts what was recorded or ruled, a case is opened.
        """

        def work(session: Session) -> EffectStatus | None:
            job_id = slots.job_of(session, effect)
            if job_id is None:
                raise Refused("NOT_FOUND", job_id=effect)
            session.lock([job_id])
            done = reports.report(
                session,
                effect,
                attempt=attempt_id,
                grant_id=grant_id,
                status=status.value,
                response=response,
                reference=reference[:200],
            )
            inquiries.add_evidence(
                session,
                effect,
                source="report",
                outcome=status.value,
                decisive=done is not None,
                reference=reference,
                body=_body(body),
                attempt_id=attempt_id,
            )
            if done is None:
                self._late(session, effect, job_id, attempt_id, grant_id, status, response, reference)
            else:
                self._settled(session, effect, job_id, EffectStatus(done))
            failpoint("report.sent")
            return EffectStatus(done) if done else None

        failpoint("report.before")
        done = transact(work, using=self.using, vocabulary=self.vocabulary, now=now)
        failpoint("report.after")
        if done is None:
            measures.count("late_evidence")
        return done

    def resolve(
        self,
        slot: Slot,
        *,
        found: bool,
        matches: bool = True,
        asked: datetime,
        response: str = "null",
        reference: str = "",
        body: str = "",
        actor: str = "",
        now: datetime | None = None,
    ) -> EffectStatus | None:
        """Record an inquiry's answer about a slot as it was read before asking at `asked` (database's clock).

        Found and matching makes it committed. Not found makes it absent only once the former sender can
        send no
        more and `settle_by` has passed; everything else is evidence. Returns what the slot is now where the
        answer decided, or None.
        """

        def work(session: Session) -> EffectStatus | None:
            session.lock([slot.job_id])
            done = None
            if found and matches:
                done = reports.found(
                    session, slot.id, slot.version, response=response, reference=reference[:200]
                )
            elif not found:
                done = reports.missed(session, slot.id, slot.version, asked=asked)
            word = "found" if found and matches else "found_other" if found else "not_found"
            news = inquiries.last_answer(session, slot.id) != (word, reference[:200])
            inquiries.add_evidence(
                session,
                slot.id,
                source="inquiry",
                outcome=word,
                decisive=done is not None,
                reference=reference,
                body=_body(body),
                actor=actor,
            )
            if done is not None:
                self._settled(session, slot.id, slot.job_id, EffectStatus(done))
            else:
                inquiries.end_inquiry(session, slot.id)
                if news:
                    cases.touch(session, slot.id)
            return EffectStatus(done) if done else None

        return transact(work, using=self.using, vocabulary=self.vocabulary, now=now)

    def no_answer(self, slot: Slot, problem: str, *, actor: str = "", now: datetime | None = None) -> None:
        """Keep that an inquiry was not answered: evidence of nothing."""

        def work(session: Session) -> None:
            session.lock([slot.job_id])
            news = inquiries.last_answer(session, slot.id) != ("no_answer", "")
            inquiries.add_evidence(
                session,
                slot.id,
                source="inquiry",
                outcome="no_answer",
                decisive=False,
                body=_body(problem),
                actor=actor,
            )
            inquiries.end_inquiry(session, slot.id)
            if news:
                cases.touch(session, slot.id)

        transact(work, using=self.using, vocabulary=self.vocabulary, now=now)

    def begin_inquiry(
        self, effect: str, *, seconds: int = 60, now: datetime | None = None
    ) -> tuple[Slot, datetime] | None:
        """Take the turn to ask the provider about a slot; returns it as it is and the database's time.

        None where it is not unknown any more or somebody else asks. No transaction is open while one asks.
        """

        def work(session: Session) -> tuple[Slot, datetime] | None:
            job_id = slots.job_of(session, effect)
            session.lock([job_id] if job_id else [])
            if not inquiries.begin_inquiry(session, effect, seconds=seconds):
                return None
            slot = slots.find(session, effect)
            return (slot, session.clock()) if slot else None

        return transact(work, using=self.using, vocabulary=self.vocabulary, now=now)

    def read(self, effect: str, *, now: datetime | None = None) -> Slot | None:
        """Return a slot as it is now."""
        return transact(
            lambda s: slots.find(s, effect), using=self.using, vocabulary=self.vocabulary, now=now
        )

    def prove_gone(self, slot: Slot, proof: str, *, now: datetime | None = None) -> bool:
        """Record that the process which may have sent is gone, as of now; False where it was known or
        moot."""

        def work(session: Session) -> bool:
            session.lock([slot.job_id])
            done = inquiries.prove_gone(session, slot.id, slot.granted_attempt_id)
            if done:
                inquiries.add_evidence(
                    session,
                    slot.id,
                    source="proof",
                    outcome="sender_gone",
                    decisive=False,
                    body=proof,
                    attempt_id=slot.granted_attempt_id,
                )
                cases.touch(session, slot.id)
            return done

        return transact(work, using=self.using, vocabulary=self.vocabulary, now=now)

    # -- what follows
    # ------------------------------------------------------------------------------------------

    def _settled(self, session: Session, effect: str, job_id: Any, status: EffectStatus) -> None:
        reports.count_open(session, job_id)
        if status not in (EffectStatus.EXECUTING, EffectStatus.UNKNOWN):
            cases.close(session, effect, "unknown", "resolved")
            cases.void(session, effect)
        cases.touch(session, effect)
        move_on(session, job_id, using=self.using)

    def _late(
        self,
        session: Session,
        effect: str,
        job_id: Any,
        attempt_id: Any,
        grant_id: Any,
        status: EffectStatus,
        response: str | None,
        reference: str,
    ) -> None:
        """Keep a report that decides nothing; where it contradicts what is recorded, say so to a person."""
        slot = slots.find(session, effect)
        if slot is None:
            return
        says_yes = status == EffectStatus.COMMITTED
        own = (slot.granted_attempt_id, slot.grant_id) == (Session.key(attempt_id), Session.key(grant_id))
        denies = status == EffectStatus.ABSENT and slot.status == EffectStatus.COMMITTED and own
        closed = slot.status in (EffectStatus.ABSENT, EffectStatus.ABANDONED)
        if not denies and not (says_yes and (closed or _twice(slot, own=own))):
            cases.touch(session, effect)
            return
        measures.count("contradictions", kind=slot.kind)
        job = people.read(session, [job_id])[job_id]
        if says_yes and slot.status == EffectStatus.ABSENT:
            if job.status in TERMINAL:
                reports.record_late(
                    session, effect, slot.version, response=response, reference=reference[:200]
                )
            else:
                reports.doubt(session, effect, slot.version)
                reports.count_open(session, job_id)
                stop_idle(session, job, job_id, effect, self.hooks)
        cases.open_one(session, effect, "contradiction")


def _twice(slot: Slot, *, own: bool) -> bool:
    """Whether a sender who says that it happened speaks of another sending than the one that counts now.

    Where no provider's dedupe stands behind the key, that one was permitted because this had been proven or
    ruled not to have happened.
    """
    deduped = slot.replay == "idempotent" and not slot.key_expired
    return not own and slot.grants > 1 and not deduped


def _is_granted(slot: Slot, token: dict[str, Any], grant_id: Any) -> bool:
    """Whether this very permission was given before, and nothing has become of it yet."""
    mine = (slot.granted_attempt_id, slot.grant_id) == (token["attempt_id"], Session.key(grant_id))
    return slot.status == EffectStatus.EXECUTING and mine


def stop_idle(session: Session, job: Any, job_id: Any, effect: str, hooks: Any) -> None:
    """Make a job uncertain that nobody runs; whoever runs one is stopped by its open effect."""
    if job.status not in IDLE:
        return
    row = {
        "id": job_id,
        "attempt_id": None,
        "generation": job.claim_generation,
        "state_version": job.state_version,
        "wish": JobStatus.UNCERTAIN,
        "retry": 0,
        "excused": 0,
        "bump": 0,
        "forced": 0,
        "matter": 1,
        "delay": None,
        "at_once": 0,
        "wait_reason": "",
        "error_code": "",
        "error_message": "late evidence contradicts what was recorded",
        "spent_code": "",
        "effect_id": effect,
    }
    landed = settle.end(session, [row], fenced_by="idle")
    if landed:
        hooks.ended(session, landed, {job_id: row}, verb="doubt")


def move_on(session: Session, job_id: Any, *, using: str) -> JobStatus | None:
    """Move an uncertain job on if its last open matter is closed; returns its new status, or None."""
    done = reports.resolve_job(session, job_id)
    if done is None:
        return None
    status, queue = done
    if status in TERMINAL:
        people.close_unsent(session, [job_id])
        cases.close_moot(session, [job_id])
    worker_rows.add_change(session, "resolve", [[job_id, status.value]])
    if status == JobStatus.PENDING:
        wake.after_commit(using, {queue})
    return status


def _body(text: str) -> str:
    return redact.clean(text, limit=BODY_BYTES)
