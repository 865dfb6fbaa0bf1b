"""A scenario with an effect slot: the product's own verbs on `Job`, in the throw-away database."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model

from jobs import admission, canon, handlers
from jobs.drills.database import ALIAS, ThrowAway
from jobs.drills.moment import instant, seconds
from jobs.drills.record import Row
from jobs.drills.scenarios import LEASE_SECONDS
from jobs.drills.step import Action, Returned, Step
from jobs.effect_kinds import EffectKind, Found, NotFound, Request
from jobs.handlers import Options
from jobs.hooks import JobHooks
from jobs.inquiry import inquire
from jobs.models import Case, EffectSlot, Job, Proposal
from jobs.operations import cases, rulings
from jobs.outcomes import Ending, Lease
from jobs.runtime import DurableJobRuntime
from jobs.status import EffectStatus, JobStatus, WaitReason
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Word
from jobs.vocabulary import JOB

KIND, EFFECT, REQUESTER, APPROVER = "drill.trace", "drill.charge", "requester", "approver"
PAYLOAD = {"amount": "42.00", "currency": "EUR"}


class SlotCourse:
    """The workers of one scenario, their leases, and the one effect that they want to take place once."""

    def __init__(self, replay: str, database: ThrowAway) -> None:
        self.database = database
        # Hooks of its own: what the installation has hung on the product's must not hear of a drill's jobs.
        self.runtime = DurableJobRuntime(JOB, hooks=JobHooks(), using=ALIAS)
        self.effects = EffectRuntime(JOB, hooks=JobHooks(), using=ALIAS)
        self.leases: dict[str, Lease] = {}
        self.job_id = uuid.UUID(int=0)
        approval = "always" if replay == "non_replayable" else "never"
        # Handed over, never registered: no worker and no page of the product hears of it.
        self.kind = EffectKind(name=EFFECT, send=self._send, replay=replay, approval=approval)
        if replay == "queryable":
            self.kind.inquire(self._look_outside)
        text = canon.canonical(PAYLOAD)
        self.ask = Ask(self.kind, "charge", text, canon.digest(text), PAYLOAD)

    def perform(self, step: Step) -> Returned:
        """Do what the step says and return what its actor was told."""
        now, actor = instant(step.t), step.actor
        match step.action:
            case Action.ENQUEUE:
                self._enqueue(now)
                return None
            case Action.CLAIM:
                lease = self.runtime.claim_job(self.job_id, worker_id=actor, ttl=LEASE_SECONDS, now=now)
                self.leases |= {actor: lease} if lease else {}
                return lease.generation if lease else None
            case Action.EXIT:
                self.database.reopen()
                return None
            case Action.APPROVE:
                return self._approve(now)
            case Action.INQUIRE:
                found = inquire(self.effects, self.ask.id_for(self.leases[actor]), self.kind)
                return "found" if found is EffectStatus.COMMITTED else "not found"
        if actor not in self.leases:
            return "no lease to present"
        return self._present(step, self.leases[actor], now)

    def look(self) -> Row:
        """Return the job's row in the traces' words, times in seconds, and what became of the effect."""
        job = Job.objects.using(ALIAS).get(pk=self.job_id)
        slot = EffectSlot.objects.using(ALIAS).filter(job_id=self.job_id).first()
        word = "done" if job.status == JobStatus.SUCCEEDED else job.status
        until = seconds(job.lease_expires_at)
        return Row(word, job.claim_generation, until, self._acted(), slot.status if slot else None)

    def _enqueue(self, now: datetime) -> None:
        """Add the job. Its kind is known for this call only, for the lease that the scenarios are about."""

        def trace() -> None: ...

        handlers.job(KIND, lease=LEASE_SECONDS)(trace)
        try:
            options = Options(enqueued_by=REQUESTER)
            self.job_id = Job.objects.db_manager(ALIAS).enqueue(KIND, {}, options=options, now=now).job_id
        finally:
            handlers.forget(KIND)

    def _present(self, step: Step, lease: Lease, now: datetime) -> Returned:
        """Present a lease, however old: to refuse it is the fence's business, not the drill's."""
        if step.action is Action.FINISH_DONE:
            return self.runtime.commit([(lease, *admission.result(None))], now=now)[0].landed
        gate = self.effects.gate(lease, self.ask, grant_id=uuid.uuid4(), now=now)
        if gate.word is Word.APPROVAL and gate.slot is not None and step.action is Action.ASK_APPROVAL:
            wait = Ending.wait(lease, WaitReason.APPROVAL, seconds=None, effect_id=gate.slot.id)
            (outcome,) = self.runtime.end([wait], now=now)
            return outcome.status.value if outcome.status else outcome.code.value
        if gate.word is Word.GRANTED and gate.slot is not None and step.action is Action.ACT_GRANTED:
            try:
                self._send(Request(key=gate.slot.id, payload=json.loads(gate.slot.payload)))
            except TimeoutError:
                return "timeout"
        return gate.word.value

    def _approve(self, now: datetime) -> bool:
        people = get_user_model()._default_manager.using(ALIAS)  # noqa: SLF001
        person = people.create(username=APPROVER, is_superuser=True)
        case = Case.objects.using(ALIAS).get(job_id=self.job_id)
        view = cases.look(case.pk, using=ALIAS, now=now)
        asked = Proposal.objects.using(ALIAS).get(case=case)
        rulings.approve(
            asked.pk, actor=person, snapshot=view.snapshot, reason="a drill", using=ALIAS, now=now
        )
        return True

    # -- the outside world: the key is all that it goes by

    def _send(self, request: Request) -> Any:
        return self.database.outside.act(request.key, "sender", answers=False)

    def _look_outside(self, request: Request) -> Found | NotFound:
        found = self.database.outside.count(request.key)
        return Found({"acted": found}, payload=request.payload) if found else NotFound()

    def _acted(self) -> int:
        keys = EffectSlot.objects.using(ALIAS).filter(job_id=self.job_id).values_list("id", flat=True)
        return sum(self.database.outside.count(key) for key in keys)
