"""Why a handler stops at an effect, or hears that it did not take place (contract §6)."""

from __future__ import annotations

from jobs.context import Cancelled, LeaseLost, Stopped
from jobs.ledger.slots import Slot
from jobs.outcomes import Code, Outcome

ASK_AGAIN_SECONDS = 5.0
SOON_SECONDS = 1.0
LEAST_WAIT = 0.2


class EffectProblem(Exception):
    """An effect that certainly did not take place. A handler may catch it; else the job fails with its
    code."""

    code = "EFFECT_DECLINED_FAILED"

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.code
        self.message = message


class EffectDeclined(EffectProblem):
    """The provider refused for good."""


class EffectNotSent(EffectProblem):
    """Nothing has left: proven. Uncaught, the job is tried again later."""

    code = "EFFECT_PROVIDER_UNAVAILABLE"


class EffectAbandoned(EffectProblem):
    """A ruling closed the effect; it will not be sent."""

    code = "EFFECT_ABANDON_FAILED"


class Unsettled(Stopped):
    """The run stops at this effect, and comes back to it when it is settled."""


class StaleInput(Unsettled):
    """The input was revised while we ran: the next run gets the new one."""


class Uncertain(Unsettled):
    """Nobody knows whether it happened, and only a person can say."""


class InConflict(Unsettled):
    """The effect's key is bound to another payload."""

    def __init__(self, effect_id: str, payload: str, digest: str) -> None:
        super().__init__(effect_id)
        self.effect_id = effect_id
        self.payload = payload
        self.digest = digest


class NeedsApproval(Unsettled):
    """A person has to approve the sending first."""

    def __init__(self, effect_id: str) -> None:
        super().__init__(effect_id)
        self.effect_id = effect_id


class AskLater(Unsettled):
    """The provider may still come to know of it: ask again in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:g} s")
        self.seconds = seconds


def refused(outcome: Outcome | None) -> Stopped:
    """Return what stops a handler whose write the fence refused."""
    if outcome is None:
        return LeaseLost("STATUS")
    if outcome.code == Code.CANCELLED:
        return Cancelled()
    if outcome.code == Code.STALE_INPUT:
        return StaleInput()
    return LeaseLost(outcome.reason)


def what_next(slot: Slot, *, sent_again: bool = False) -> Stopped:
    """Return how a job goes on whose effect nobody can tell of just now: it asks again later, or a person
    does."""
    if slot.in_conflict or (slot.replay == "non_replayable") or slot.key_expired:
        return Uncertain(f"{slot.kind} {slot.slot}: sent, and nobody knows what became of it")
    if slot.replay == "idempotent" and not sent_again:
        return AskLater(ASK_AGAIN_SECONDS)
    if slot.being_asked:
        return AskLater(SOON_SECONDS)  # the reconciler was quicker; its answer decides
    if slot.inquirable and slot.settles_in is not None and slot.settles_in > 0:
        return AskLater(max(LEAST_WAIT, slot.settles_in + LEAST_WAIT))
    return Uncertain(f"{slot.kind} {slot.slot}: the provider cannot say what became of it")
