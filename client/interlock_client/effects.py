"""Effects of a remote worker: what it sends, and what an answer or none proves (docs/effects.md).

The server decides what may be sent; `next` of each of its answers says what to do. Nothing is sent without
its permission, nor once our lease has surely ended; a report is sent until the server has heard it.
"""

from __future__ import annotations

import socket
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from interlock_client.context import Cancelled, Context, Ending, Fail, LeaseLost, plain
from interlock_client.problems import CancelRequested, Fenced, NoAnswer, Problem, StaleInput

TURNS = 5
"""Answers of the server that one passage follows: more would be a quarrel."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the provider is told: `key` is the idempotency key, `fencing_token` the claim generation."""

    key: str
    payload: Any
    fencing_token: int = 0
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A definite success."""

    response: Any = None
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """An inquiry's answer: it happened. `payload` as the provider has it; `matches` where it keeps none."""

    response: Any = None
    reference: str = ""
    payload: Any = None
    matches: bool | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """An inquiry's answer: the provider knows of nothing under this key, so far."""


class Declined(Exception):
    """Raised by a send function: the provider refused for good, and has done nothing."""

    def __init__(self, code: str = "EFFECT_DECLINED_FAILED", message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


class NotSent(Exception):
    """Raised by a send function: nothing has left this process; proven, not supposed."""


class AlreadyThere(Exception):
    """Raised by a send function: "exists", "duplicate", 409, 412: no refusal, but a reason to inquire."""


NOT_SENT = (NotSent, ConnectionRefusedError, socket.gaierror, httpx.ConnectError)
"""After these certainly nothing was sent; anything else proves nothing."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How this worker sends effects of one kind; the server knows the kind's policy under the same name."""

    name: str
    send: Callable[[Request], Sent | Any]
    inquire: Callable[[Request], Found | NotFound] | None = None


class EffectDeclined(Fail):
    """The provider refused for good."""


class EffectNotSent(Fail):
    """Nothing has left. Uncaught, the job is tried again later."""


class EffectAbandoned(Fail):
    """A ruling closed the effect; it will not be sent."""


class Passage:
    """One passage of one attempt through one gate."""

    def __init__(
        self, ctx: Context, effect: Effect, slot: str, payload: Any, node_id: str, etag: str
    ) -> None:
        self.ctx = ctx
        self.effect = effect
        self.ask = {"kind": effect.name, "slot": slot, "payload": payload, "node_id": node_id, "etag": etag}
        self.grant_id = str(uuid.uuid4())
        self.problem: Exception | None = None

    def perform(self) -> Any:
        """Follow what the server says until there is a response, or the run has to stop here."""
        self.ctx.checkpoint()
        answer = self._prepare()
        for _ in range(TURNS):
            effect, todo, word = answer["effect"], answer["next"], answer.get("word", "")
            match todo["do"]:
                case "send":
                    answer = self._send(effect)
                case "use":
                    return effect["response"]
                case "grant":
                    body = {"version": todo["version"], "grant_id": self.grant_id}
                    answer = self._fenced(f"effects/{effect['id']}/grant", body)
                case "inquire":
                    answer = self._inquire(effect, todo)
                    if word == "CONFLICT":  # whatever it was: another payload stands
                        raise self._conflict(effect)
                case "prepare":
                    if self.problem is not None:
                        raise self.problem
                    self.grant_id = str(uuid.uuid4())  # another sending: what is told of one is not of both
                    answer = self._prepare()
                case "wait":
                    said = {name: value for name, value in todo.items() if name != "do"}
                    raise Ending("wait", **said)
                case "fail":
                    raise EffectAbandoned(todo["error_code"], f"{self.effect.name}: abandoned by a ruling")
                case _ if word == "CONFLICT":
                    raise self._conflict(effect)
                case _:
                    break
        raise Ending(
            "uncertain", note=f"{self.effect.name} {self.ask['slot']}: nobody knows whether it was sent"
        )

    def _conflict(self, effect: dict[str, Any]) -> Ending:
        return Ending("uncertain", effect_id=effect["id"], payload=self.ask["payload"])

    def _prepare(self) -> dict[str, Any]:
        path = f"leases/{self.ctx.claimed.attempt_id}/effects"
        return self._fenced(path, {**self.ask, "grant_id": self.grant_id})

    def _fenced(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for what the fence guards."""
        try:
            return self.ctx.post(path, {"lease": self.ctx.claimed.lease, **body})
        except Fenced as error:
            raise LeaseLost(error.reason) from error
        except CancelRequested as error:
            raise Cancelled from error
        except StaleInput as error:
            raise Ending("release", message="the input was revised while it ran") from error

    def _send(self, effect: dict[str, Any]) -> dict[str, Any]:
        """Send with the permission in hand, and report what is known of it."""
        if self.ctx.claimed.is_over:
            self._report(effect, "absent", body="the lease ran out before anything was sent")
            raise LeaseLost(self.ctx.claimed.lost or "LEASE_EXPIRED")
        token = effect.get("fencing_token", self.ctx.claimed.lease["claim_generation"])
        before = sys.exception()
        try:
            value = self.effect.send(Request(effect["id"], effect["payload"], token, effect["etag"]))
        except Declined as error:
            self.problem = EffectDeclined(error.code, error.message)
            return self._report(effect, "absent", body=_told(error))
        except BaseException as error:  # noqa: BLE001  (whatever it is, something may have been sent)
            if _proves_unsent(error, before):
                self.problem = EffectNotSent("EFFECT_PROVIDER_UNAVAILABLE", _told(error))
                return self._report(effect, "absent", body=_told(error))
            there = isinstance(error, AlreadyThere)
            return self._report(effect, "unknown", body=_told(error), already_there=there)
        sent = value if isinstance(value, Sent) else Sent(value)
        return self._report(effect, "committed", response=sent.response, reference=sent.reference)

    def _report(self, effect: dict[str, Any], status: str, **said: Any) -> dict[str, Any]:
        return self._tell(f"effects/{effect['id']}/report", grant_id=self.grant_id, status=status, **said)

    def _inquire(self, effect: dict[str, Any], todo: dict[str, Any]) -> dict[str, Any]:
        asked = {"version": todo["version"], "asked_at": todo["asked_at"]}
        path = f"effects/{effect['id']}/inquired"
        if self.effect.inquire is None:
            return self._tell(path, problem="this worker cannot ask", **asked)
        try:
            found = self.effect.inquire(Request(effect["id"], effect["payload"], etag=effect["etag"]))
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is no answer)
            return self._tell(path, problem=_told(error), **asked)
        if isinstance(found, NotFound):
            return self._tell(path, found=False, **asked)
        same = {"payload": found.payload} if found.matches is None else {"matches": found.matches}
        told = {"response": found.response, "reference": found.reference}
        return self._tell(path, found=True, **same, **told, **asked)

    def _tell(self, path: str, **said: Any) -> dict[str, Any]:
        """Say what is known: information, which is never refused and may be said twice.

        That an answer cannot be kept is no reason to be silent about what has happened. Where nobody hears it
        the run stops here: a handler that went on might do elsewhere what has happened.
        """
        try:
            return self._told_or_cut(path, said)
        except (NoAnswer, Problem) as error:
            raise LeaseLost(f"an effect's outcome could not be told: {error}") from error

    def _told_or_cut(self, path: str, said: dict[str, Any]) -> dict[str, Any]:
        lease = {"lease": self.ctx.claimed.lease}
        try:
            return self.ctx.post(path, {**lease, **said})
        except (TypeError, ValueError, RecursionError) as error:  # it is no JSON
            problem = _told(error)
        except Problem as error:
            if error.code not in ("invalid-body", "body-too-large"):
                raise
            problem = error.detail
        if "response" in said:
            said["response"] = {"unreadable": problem[:500]}
        if "reference" in said:
            said["reference"] = plain(said["reference"])[:200]
        return self.ctx.post(path, {**lease, **said})


def _proves_unsent(error: BaseException, before: BaseException | None) -> bool:
    """Whether an exception proves that nothing has left.

    A function that tried twice may have sent the first time: then the first error is in the chain too. What
    was being handled `before` it was called is not its own.
    """
    if error is before:
        return False
    seen: list[BaseException] = []
    left: list[tuple[BaseException | None, bool]] = [(error, False)]
    while left:
        one, explained = left.pop()
        if one is None or one is before or one in seen:
            continue
        seen.append(one)
        explained = explained or isinstance(one, NOT_SENT)
        if not explained:
            return False
        left.append((one.__cause__, True))
        if one.__context__ is not one.__cause__:
            left.append((one.__context__, False))
    return True


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {plain(error)}"[:4000]
