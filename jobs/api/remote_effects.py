"""Effects of remote workers: prepare, grant, report, inquired (contract §6).

The sending is the worker's own; what its kind declares (replay policy, extractors, times) is registered here,
as for local workers. Every answer says in `next` what to do, so that a worker in any language need not know
the policies. A report is never refused to the worker whose attempt it is about, however late.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import canon, effect_kinds, stops
from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.fields import Anything, Choice, Flag, Id, Instant, Strict, Text, Whole
from jobs.api.leases import bad, payload_text
from jobs.api.presented import LARGEST, LeaseBody, Name, WorkerView, landed, lease_of, own
from jobs.api.schema import TEXT, Schema, record
from jobs.effect_kinds import EffectKind
from jobs.inquiry import INQUIRY_SECONDS
from jobs.ledger.clock import clock
from jobs.ledger.slots import Slot
from jobs.models import Attempt
from jobs.outcomes import Lease
from jobs.status import EffectStatus
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Gate, Word
from jobs.vocabulary import JOB
from jobs.worker import gone

_EFFECT_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)


def runtime() -> EffectRuntime:
    return EffectRuntime(JOB, hooks=HOOKS)


EFFECT = record(
    {
        "id": TEXT,
        "job_id": schema.ID,
        "slot": TEXT,
        "kind": TEXT,
        "status": schema.words(EffectStatus),
        "version": schema.WHOLE,
        "replay": TEXT,
        "inquirable": schema.FLAG,
        "payload": schema.ANYTHING,
        "etag": TEXT,
        "reference": TEXT,
        "response": schema.ANYTHING,
    }
)
EFFECT["properties"]["fencing_token"] = schema.WHOLE  # for whoever may send it
NEXT: Schema = {
    "type": "object",
    "properties": {
        "do": schema.words(["grant", "send", "use", "inquire", "prepare", "wait", "fail", "uncertain"]),
        "version": schema.WHOLE,
        "asked_at": schema.INSTANT,
        "reason": TEXT,
        "seconds": {"type": "number"},
        "effect_id": TEXT,
        "error_code": TEXT,
    },
    "required": ["do"],
}
GATE = record({"word": schema.words(Word), "effect": EFFECT, "next": NEXT})
SETTLED = record({"decided": schema.FLAG, "effect": EFFECT, "next": NEXT})


class PrepareBody(Strict):
    """The body of a prepare. With a `grant_id`, the permission to send is given at once where it can be."""

    lease = LeaseBody()
    kind = Text(least=1, most=120)
    slot = Name(most=120)
    payload = Anything(required=False)
    node_id = Name(least=0, most=120, required=False)
    etag = Text(most=200, required=False)
    grant_id = Id(required=False)


class PrepareView(WorkerView):
    """`/leases/{attempt}/effects`: bind a payload to an effect of the job."""

    bodies = {"POST": PrepareBody}
    answers = {"POST": {200: GATE}}

    def post(self, request: Request, attempt_id: str) -> Response:
        body = self.body(request)
        lease = lease_of(Caller.of(request), body["lease"], attempt_id)
        kind = effect_kinds.find(body["kind"])
        if kind is None:
            raise bad("/kind", _("no effect kind of this name is registered here"))
        text = payload_text(body.get("payload"))
        ask = Ask(
            kind,
            body["slot"],
            text,
            canon.digest(text),
            body.get("payload"),
            body.get("node_id", ""),
            body.get("etag", ""),
        )
        grant_id = body["grant_id"].hex if "grant_id" in body else None
        return Response(_answer(lease, kind, runtime().gate(lease, ask, grant_id=grant_id)))


class GrantBody(Strict):
    """The body of a grant: the effect's `version` as told, and an id that the caller gives the permission."""

    lease = LeaseBody()
    version = Whole(least=0, most=LARGEST)
    grant_id = Id()


class GrantView(WorkerView):
    """`/effects/{id}/grant`: the only permission to send; asked again with the same id it is given again."""

    bodies = {"POST": GrantBody}
    answers = {"POST": {200: GATE}}

    def post(self, request: Request, effect_id: str) -> Response:
        body = self.body(request)
        lease = lease_of(Caller.of(request), body["lease"], str(body["lease"]["attempt_id"]))
        slot = _slot_of(lease, effect_id)
        kind = effect_kinds.find(slot.kind)
        if kind is None:
            raise bad("", _("the effect's kind is not registered here any more"))
        gate = runtime().grant_again(
            lease, slot._replace(version=body["version"]), kind, grant_id=body["grant_id"].hex
        )
        return Response(_answer(lease, kind, gate))


class ReportBody(Strict):
    """The body of a report. `already_there`: the provider said "exists", "duplicate", 409 or 412."""

    lease = LeaseBody()
    grant_id = Id()
    status = Choice(["committed", "absent", "unknown"])
    response = Anything(required=False)
    reference = Text(required=False)  # cut where it is kept: nothing that is known is refused
    body = Text(required=False)
    already_there = Flag(required=False)


class ReportView(WorkerView):
    """`/effects/{id}/report`: what the sender knows; always kept, and `decided` where it was not too late."""

    bodies = {"POST": ReportBody}
    answers = {"POST": {200: SETTLED}}

    def post(self, request: Request, effect_id: str) -> Response:
        body = self.body(request)
        lease = _sender(Caller.of(request), body["lease"])
        slot = _slot_of(lease, effect_id)
        status = EffectStatus(body["status"])
        response = _response(body) if status == EffectStatus.COMMITTED else None
        done = runtime().report(
            slot.id,
            attempt_id=lease.attempt_id,
            grant_id=body["grant_id"].hex,
            status=status,
            response=response,
            reference=body.get("reference", ""),
            body=body.get("body", ""),
        )
        return Response(_after(slot.id, done, sent_again=body.get("already_there", False), may_ask=True))


class InquiredBody(Strict):
    """The body of an inquiry's answer, with `version` and `asked_at` as `next` gave them.

    `found` with the provider's `payload`, or `matches` where it keeps none; or a `problem`: no answer at all.
    """

    lease = LeaseBody()
    version = Whole(least=0, most=LARGEST)
    asked_at = Instant()
    found = Flag(required=False)
    matches = Flag(required=False)
    payload = Anything(required=False)
    response = Anything(required=False)
    reference = Text(required=False)
    problem = Text(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("found" in attrs) == ("problem" in attrs):
            raise serializers.ValidationError({"found": [_("Give either found or problem.")]})
        return attrs


class InquiredView(WorkerView):
    """`/effects/{id}/inquired`: what the provider said when it was asked."""

    bodies = {"POST": InquiredBody}
    answers = {"POST": {200: SETTLED}}

    def post(self, request: Request, effect_id: str) -> Response:
        body = self.body(request)
        lease = _sender(Caller.of(request), body["lease"])
        slot = _slot_of(lease, effect_id)._replace(version=body["version"])
        actor = f"worker {lease.worker_id}"
        if "problem" in body:
            runtime().no_answer(slot, body["problem"], actor=actor)
            return Response(_after(slot.id, None))
        text = _response(body)
        done = runtime().resolve(
            slot,
            found=body["found"],
            matches=body["matches"] if "matches" in body else _matches(body.get("payload"), slot),
            # What was asked in the future has not been answered.
            asked=min(body["asked_at"], clock()),
            response=text,
            reference=body.get("reference", ""),
            body=text if body["found"] else "",
            actor=actor,
        )
        return Response(_after(slot.id, done))


# -- whose it is ------------------------------------------------------------------------------------------


def _sender(caller: Caller, body: dict[str, Any]) -> Lease:
    """Return the lease under which something was sent, also one that was lost long ago."""
    own(caller, body["worker_id"], "/lease")
    attempt = Attempt.objects.filter(pk=body["attempt_id"], job_id=body["job_id"]).first()
    if attempt is None or attempt.worker_id != body["worker_id"]:
        raise bad("/lease/attempt_id", _("This worker has no such attempt."))
    return lease_of(caller, body, str(body["attempt_id"]))


def _slot_of(lease: Lease, effect_id: str) -> Slot:
    slot = runtime().read(effect_id) if _EFFECT_ID.fullmatch(effect_id) else None
    if slot is None or slot.job_id != lease.job_id:
        raise NotFound
    return slot


def _response(body: dict[str, Any]) -> str:
    limits = settings.INTERLOCK
    try:
        return canon.canonical(body.get("response"), depth=limits["DEPTH"], limit=limits["RESULT_BYTES"])
    except canon.NotCanonical as error:
        # It has happened, whatever the answer looks like: that it cannot be kept is no reason for doubt.
        return canon.canonical({"unreadable": str(error)[:500]}, depth=4, limit=4096)


def _matches(payload: Any, slot: Slot) -> bool:
    limits = settings.INTERLOCK
    try:
        text = canon.canonical(payload, depth=limits["DEPTH"], limit=limits["ARGUMENT_BYTES"])
    except canon.NotCanonical:
        return False
    return canon.digest(text) == slot.payload_digest


# -- what to do next --------------------------------------------------------------------------------------


def _answer(lease: Lease, kind: EffectKind, gate: Gate) -> dict[str, Any]:
    """Return what the gate answers, and what to do about it; raises Problem where the fence refused."""
    if gate.word == Word.REFUSED:
        assert gate.outcome is not None  # noqa: S101
        landed(gate.outcome)
    slot = gate.slot
    assert slot is not None  # noqa: S101  (only a refusal has none)
    match gate.word:
        case Word.PREPARED:
            todo: dict[str, Any] = {"do": "grant", "version": slot.version}
        case Word.GRANTED:
            todo = {"do": "send"}
        case Word.RECORDED:
            todo = {"do": "use"}
        case Word.APPROVAL:
            todo = {"do": "wait", "reason": "approval", "effect_id": slot.id}
        case Word.ABANDONED:
            todo = {"do": "fail", "error_code": "EFFECT_ABANDON_FAILED"}
        case Word.CONFLICT:
            # What stands is settled first, so that whoever rules need not rule on that too.
            todo = _inquire(slot) if slot.status == EffectStatus.UNKNOWN and slot.inquirable else {}
            todo = todo or {"do": "uncertain", "effect_id": slot.id}
        case _:
            todo = _reopen(slot)
    return {"word": gate.word, "effect": _shown(slot, lease), "next": todo}


def _reopen(slot: Slot) -> dict[str, Any]:
    """Return what to do about an effect that may have been sent before."""
    if slot.status in (EffectStatus.PREPARED, EffectStatus.ABSENT):
        return {"do": "grant", "version": slot.version}  # it moved on since it was read
    if slot.status == EffectStatus.UNKNOWN and slot.replay == "idempotent" and not slot.key_expired:
        # The provider's own dedupe is the reconciliation.
        return {"do": "grant", "version": slot.version}
    if slot.status == EffectStatus.UNKNOWN and slot.inquirable:
        gone.prove(runtime(), slot)
        return _inquire(slot) or {"do": "wait", "reason": "provider", "seconds": stops.SOON_SECONDS}
    return {"do": "uncertain"}


def _inquire(slot: Slot) -> dict[str, Any]:
    """Take the turn to ask the provider; nothing where somebody else asks already."""
    begun = runtime().begin_inquiry(slot.id, seconds=INQUIRY_SECONDS)
    return {"do": "inquire", "version": begun[0].version, "asked_at": begun[1]} if begun else {}


def _after(
    effect_id: str, done: EffectStatus | None, *, sent_again: bool = False, may_ask: bool = False
) -> dict[str, Any]:
    """Return what an effect is after a report or an inquiry, and what its worker does about it."""
    slot = runtime().read(effect_id)
    assert slot is not None  # noqa: S101  (slots are never deleted under a job that was claimed)
    match slot.status:
        case EffectStatus.COMMITTED:
            todo: dict[str, Any] = {"do": "use"}
        case EffectStatus.UNKNOWN:
            todo = {}
            if may_ask and slot.inquirable and (sent_again or slot.replay != "idempotent"):
                todo = _inquire(slot)
            todo = todo or _what_next(slot, sent_again)
        case _:
            todo = {"do": "prepare"}
    return {"decided": done is not None, "effect": _shown(slot), "next": todo}


def _what_next(slot: Slot, sent_again: bool) -> dict[str, Any]:
    stop = stops.what_next(slot, sent_again=sent_again)
    if isinstance(stop, stops.AskLater):
        return {"do": "wait", "reason": "provider", "seconds": stop.seconds}
    return {"do": "uncertain"}


def _shown(slot: Slot, lease: Lease | None = None) -> dict[str, Any]:
    """Return an effect as its worker needs it: `id` is the provider's idempotency key."""
    said = {
        "id": slot.id,
        "job_id": uuid.UUID(str(slot.job_id)),
        "slot": slot.slot,
        "kind": slot.kind,
        "status": slot.status,
        "version": slot.version,
        "replay": slot.replay,
        "inquirable": slot.inquirable,
        "payload": json.loads(slot.payload),
        "etag": slot.etag,
        "reference": slot.reference,
        "response": json.loads(slot.response) if slot.response else None,
    }
    return said | ({"fencing_token": lease.generation} if lease else {})
