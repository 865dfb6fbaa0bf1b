"""Asking a provider what became of an effect: worker, reconciler and console come here (contract §6)."""

from __future__ import annotations

import json
import uuid

from django.conf import settings

from jobs import canon, measures, redact
from jobs.effect_kinds import EffectKind, Found, NotFound, Request
from jobs.ledger.slots import Slot
from jobs.status import EffectStatus
from jobs.verbs.effects import EffectRuntime

INQUIRY_SECONDS = 60
"""For how long one process has the turn to ask about a slot."""


def inquire(
    runtime: EffectRuntime, effect_id: str, kind: EffectKind, *, actor: str = ""
) -> EffectStatus | None:
    """Ask the provider what became of an unknown slot and record the answer; returns what that settled, or
    None.

    Worker, reconciler and console come through here. Nothing is asked while another process has the turn.
    """
    if kind.look is None:
        return None
    begun = runtime.begin_inquiry(effect_id, seconds=INQUIRY_SECONDS)
    if begun is None:
        return None
    slot, asked = begun
    measures.count("inquiries", kind=kind.name)
    request = Request(
        key=slot.id, payload=json.loads(slot.payload), etag=slot.etag, job_id=str(uuid.UUID(slot.job_id))
    )
    try:
        answer = kind.look(request)
    except BaseException as error:  # whatever it is, it is no answer, and ends no reconciler
        runtime.no_answer(slot, redact.described(error, limit=settings.INTERLOCK["ERROR_BYTES"]), actor=actor)
        if isinstance(error, KeyboardInterrupt):
            raise  # of the person at the command
        return None
    match answer:
        case Found():
            limits = settings.INTERLOCK
            try:
                text = canon.canonical(answer.response, depth=limits["DEPTH"], limit=limits["RESULT_BYTES"])
            except canon.NotCanonical as error:
                runtime.no_answer(slot, f"found, but unreadable: {error}", actor=actor)
                return None
            return runtime.resolve(
                slot,
                found=True,
                matches=_matches(answer, slot),
                asked=asked,
                response=text,
                reference=redact.plain(answer.reference),
                body=text,
                actor=actor,
            )
        case NotFound():
            return runtime.resolve(slot, found=False, asked=asked, actor=actor)
    runtime.no_answer(slot, f"the inquiry returned a {type(answer).__name__}", actor=actor)
    return None


def _matches(answer: Found, slot: Slot) -> bool:
    """Whether what the provider has is what we sent: by digest, or by what the kind declares as as good."""
    if answer.matches is not None:
        return answer.matches
    try:
        text = canon.canonical(
            answer.payload, depth=settings.INTERLOCK["DEPTH"], limit=settings.INTERLOCK["ARGUMENT_BYTES"]
        )
    except canon.NotCanonical:
        return False
    return canon.digest(text) == slot.payload_digest
