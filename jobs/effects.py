"""What `ctx.effect` does: gate, send, report; and what it makes of an earlier sending (contract §6).

A handler is run again from the top after every stop here, and comes back to the same gate: a committed slot
then answers from its record. No transaction is open while the provider is asked.
"""

from __future__ import annotations

import json
import sys
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings

from jobs import canon, redact
from jobs.borrowed import closing
from jobs.context import Context, LeaseLost
from jobs.delivery import deliver
from jobs.effect_kinds import AlreadyThere, Declined, EffectKind, Request, Sent
from jobs.effect_kinds import Verdict as Proof
from jobs.failpoints import failpoint
from jobs.inquiry import inquire
from jobs.ledger.slots import Slot
from jobs.status import EffectStatus
from jobs.stops import (
    ASK_AGAIN_SECONDS,
    LEAST_WAIT,
    SOON_SECONDS,
    AskLater,
    EffectAbandoned,
    EffectDeclined,
    EffectNotSent,
    InConflict,
    NeedsApproval,
    Uncertain,
    refused,
    what_next,
)
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Gate, Word, ask_of
from jobs.vocabulary import JOB
from jobs.worker import gone

if TYPE_CHECKING:
    from jobs.worker.held import Held


class Effect:
    """One passage of one attempt through one gate."""

    def __init__(
        self, held: Held, kind: str, slot: str, payload: Any, *, node_id: str = "", etag: str = ""
    ) -> None:
        limits = settings.INTERLOCK
        self.held = held
        self.ask: Ask = ask_of(
            kind,
            slot,
            payload,
            node_id=node_id,
            etag=etag,
            limit=limits["ARGUMENT_BYTES"],
            depth=limits["DEPTH"],
        )
        self.runtime = EffectRuntime(JOB, hooks=HOOKS, using=held.using)
        self.grant_id = uuid.uuid4().hex
        self._right = [None]

    @property
    def kind(self) -> EffectKind:
        return self.ask.kind

    def pass_gate(self) -> tuple[bool, Any]:
        """Return (True, what to send) with the permission in hand, or (False, the recorded response)."""
        held = self.held
        Context(held).checkpoint()
        gate = self.runtime.gate(held.lease, self.ask, grant_id=self.grant_id)
        for _ in range(3):
            if gate.word != Word.OPEN or gate.slot is None:
                break
            gate = self._reopen(gate.slot)
        return self._answer(gate)

    def _answer(self, gate: Gate) -> tuple[bool, Any]:
        slot = gate.slot
        match gate.word:
            case Word.GRANTED:
                assert slot is not None  # noqa: S101
                return True, self._request(slot)
            case Word.RECORDED:
                assert slot is not None  # noqa: S101
                return False, json.loads(slot.response or "null")
            case Word.REFUSED:
                raise refused(gate.outcome)
            case Word.APPROVAL:
                raise NeedsApproval(self.ask.id_for(self.held.lease))
            case Word.CONFLICT:
                # What stands is settled first, so that whoever rules need not rule on that too.
                if slot is not None and slot.status == EffectStatus.UNKNOWN and slot.inquirable:
                    gone.prove(self.runtime, slot)
                    inquire(self.runtime, slot.id, self.kind, actor=f"worker {self.held.lease.worker_id}")
                    asked = self.runtime.read(slot.id)
                    if asked is not None and asked.being_asked:
                        raise AskLater(SOON_SECONDS)  # by the reconciler, which was quicker
                raise InConflict(self.ask.id_for(self.held.lease), self.ask.payload, self.ask.digest)
            case Word.ABANDONED:
                raise EffectAbandoned(f"{self.kind.name} {self.ask.slot}: abandoned by a ruling")
        raise Uncertain(f"{self.kind.name} {self.ask.slot}: another process is about it")

    def _request(self, slot: Slot) -> Request:
        return Request(
            key=slot.id,
            payload=json.loads(slot.payload),
            fencing_token=self.held.lease.generation,
            etag=slot.etag,
            job_id=str(uuid.UUID(self.held.lease.job_id)),
        )

    # -- an earlier sending --

    def _reopen(self, slot: Slot) -> Gate:
        """Resolve what may have been sent before; returns the gate's next answer or raises what stops us."""
        if slot.status == EffectStatus.EXECUTING:
            raise Uncertain(f"{self.kind.name} {self.ask.slot}: this attempt is sending it already")
        if slot.replay == "idempotent" and not slot.key_expired:
            # The provider's own dedupe is the reconciliation.
            return self.runtime.grant_again(self.held.lease, slot, self.kind, grant_id=self.grant_id)
        if not slot.inquirable or self.kind.look is None:
            raise Uncertain(f"{self.kind.name} {self.ask.slot}: may have been sent, and cannot be asked for")
        gone.prove(self.runtime, slot)
        settled = inquire(self.runtime, slot.id, self.kind, actor=f"worker {self.held.lease.worker_id}")
        current = self.runtime.read(slot.id)
        if settled == EffectStatus.COMMITTED and current is not None:
            return Gate(Word.RECORDED, current)
        if settled == EffectStatus.ABSENT and current is not None:
            return self.runtime.grant_again(self.held.lease, current, self.kind, grant_id=self.grant_id)
        if current is None or current.status != EffectStatus.UNKNOWN:
            return self.runtime.gate(self.held.lease, self.ask, grant_id=self.grant_id)
        raise what_next(current)

    # -- sending --

    def act(self) -> Any:
        """Pass the gate, send, and say what came of it: all in the thread of whoever sends.

        Only this thread knows when it can send no more, so nobody else may say so.
        """
        granted, request = self.pass_gate()
        if not granted:
            return request
        if not self.take() or not self.may_send():
            self.unsent()
        before = sys.exception()
        try:
            value = self.kind.send(request)
        except BaseException as error:  # noqa: BLE001  (whatever it is, something may have been sent)
            return self.failed(error, before=before)
        return self.sent(value)

    def take(self) -> bool:
        """Take the right to send, or to keep it from being sent; True for one caller only."""
        try:
            self._right.pop()
        except IndexError:
            return False
        return True

    def may_send(self) -> bool:
        """Whether our attempt goes on and its lease surely holds: a grant that is too late is given back."""
        held = self.held
        if held.closed or held.lost or held.released or held.clock() >= held.surely_ends:
            return False
        failpoint("send.before")
        return True

    def unsent(self) -> None:
        """Give the permission back: nothing has left, and nothing will."""
        self.tell(EffectStatus.ABSENT, body="the attempt was over before anything was sent")
        raise LeaseLost("LEASE_EXPIRED")

    def sent(self, value: Any) -> Any:
        """Record a definite answer and return the response that every later run will get."""
        failpoint("report.sending")
        answer = value if isinstance(value, Sent) else Sent(value)
        limits = settings.INTERLOCK
        try:
            text = canon.canonical(answer.response, depth=limits["DEPTH"], limit=limits["RESULT_BYTES"])
        except canon.NotCanonical as error:
            # It has happened, whatever the answer looks like: that it cannot be kept is no reason for doubt.
            text = canon.canonical({"unreadable": str(error)[:500]}, depth=4, limit=4096)
        self.tell(EffectStatus.COMMITTED, response=text, reference=redact.plain(answer.reference))
        return json.loads(text)

    def failed(self, error: BaseException, *, before: BaseException | None = None) -> Any:
        """Record what an exception of the send function proves; returns the response if an inquiry finds one.

        Raises what the handler has to know otherwise: refused, not sent, or stop here.
        """
        failpoint("report.sending")
        body = redact.described(error, limit=settings.INTERLOCK["ERROR_BYTES"])
        proof = self.kind.judge(error, before=before)
        status = self.tell(EffectStatus.UNKNOWN if proof is Proof.UNKNOWN else EffectStatus.ABSENT, body=body)
        if status == EffectStatus.ABSENT:
            if isinstance(error, Declined):
                raise EffectDeclined(error.message or str(error), code=error.code) from error
            raise EffectNotSent(body) from error
        slot_id = self.ask.id_for(self.held.lease)
        there = isinstance(error, AlreadyThere)
        if there or self.kind.replay != "idempotent":
            inquire(self.runtime, slot_id, self.kind, actor=f"worker {self.held.lease.worker_id}")
        slot = self.runtime.read(slot_id)
        if slot is None:
            raise Uncertain(body) from error
        if slot.status == EffectStatus.COMMITTED:
            return json.loads(slot.response or "null")
        if slot.status != EffectStatus.UNKNOWN:
            raise AskLater(LEAST_WAIT) from error  # settled meanwhile by somebody else: the gate knows
        raise what_next(slot, sent_again=there) from error

    def tell(self, status: EffectStatus, **more: Any) -> EffectStatus | None:
        """Report until the database has heard it; kept on disk when it does not for too long (never sent
        again)."""
        values = {
            "effect": self.ask.id_for(self.held.lease),
            "attempt_id": self.held.lease.attempt_id,
            "grant_id": self.grant_id,
            "status": status.value,
            **more,
        }
        return deliver(self.runtime, values)


def perform(held: Held, *arguments: Any, **more: Any) -> Any:
    """Perform one effect of a plain handler and return the provider's response; see Context.effect."""
    return Effect(held, *arguments, **more).act()


async def perform_async(held: Held, *arguments: Any, **more: Any) -> Any:
    """The same for a coroutine handler: the database and a plain send function are asked in threads."""
    import asyncio

    effect = Effect(held, *arguments, **more)
    if not effect.kind.is_async:
        try:
            return await asyncio.to_thread(closing, effect.act)
        except asyncio.CancelledError as error:
            if effect.take():
                raise  # nothing has left, and nothing will
            # The thread cannot be cancelled: it may yet send, and then tells what came of it.
            raise AskLater(ASK_AGAIN_SECONDS) from error
    granted, request = await asyncio.to_thread(closing, effect.pass_gate)
    if not granted:
        return request
    if not effect.may_send():
        await asyncio.to_thread(closing, effect.unsent)
    before = sys.exception()
    try:
        tell = partial(effect.sent, await effect.kind.send(request))
    except BaseException as error:  # noqa: BLE001
        tell = partial(effect.failed, error, before=before)
    try:
        # Shielded: a cancelled coroutine must still say what it knows, which is nothing.
        return await asyncio.shield(asyncio.to_thread(closing, tell))
    except asyncio.CancelledError as error:
        raise AskLater(ASK_AGAIN_SECONDS) from error  # it is being told: the next run knows
