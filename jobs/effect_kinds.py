"""Kinds of effects: what `@effect_kind` declares once for worker, reconciler and console (contract §6).

    @effect_kind("payments.charge", replay="queryable", settle_after=60, in_flight=30, amount="amount", …)
    def charge(request): ...            # send: returns the provider's answer as JSON

    @charge.inquire
    def look(request): ...              # asks by key: Found(…), NotFound(), or raises: no answer

Nothing here asks the database.
"""

from __future__ import annotations

import inspect
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from jobs import handlers, runbooks

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,120}")
REPLAY = ("idempotent", "queryable", "non_replayable")
IMPLICIT = "job"
"""The kind of the slot that stands for a whole run whose outcome nobody knows; nobody may register it."""
HIGHEST = 10**16
"""Of amounts: from here on the column holds none."""


@dataclass(frozen=True, slots=True)
class Request:
    """One sending, or one question about it: what the provider is told.

    `key` is the idempotency key, the same for every generation; `fencing_token` the claim generation (0 where
    nobody holds the job: the reconciler asks); `etag` what the job said that the resource was like.
    """

    key: str
    payload: Any
    fencing_token: int = 0
    etag: str = ""
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A definite success: `response` is kept and given to every later run; `reference` is the provider's
    name."""

    response: Any = None
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """An inquiry's answer: it happened. `payload` as the provider has it, to be compared with what was sent.

    `matches` says so where the provider keeps no payload but something that identifies it as well.
    """

    response: Any = None
    reference: str = ""
    payload: Any = None
    matches: bool | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """An inquiry's answer: the provider knows of nothing under this key, so far."""


class Declined(Exception):
    """The provider refused for good, and has done nothing. `code` is an error code of the registry."""

    def __init__(self, code: str = "EFFECT_DECLINED_FAILED", message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


class NotSent(Exception):
    """Nothing has left this process: proven, not supposed."""


class AlreadyThere(Exception):
    """The provider says "exists", "duplicate", 409 or 412: no refusal, but a reason to inquire."""


class Verdict(StrEnum):
    """What an exception of a send function proves."""

    NOT_SENT = "not_sent"
    DECLINED = "declined"
    UNKNOWN = "unknown"


NOT_SENT: tuple[type[BaseException], ...] = (NotSent, ConnectionRefusedError, socket.gaierror)
"""The closed list of errors after which certainly nothing was sent; a kind may add its client's own."""


@dataclass(frozen=True)
class EffectKind:
    """One kind of outside action. All durations in seconds; None is "never known" or "for ever"."""

    name: str
    send: Callable[[Request], Any]
    replay: str
    label: str = ""
    amount: str = ""
    currency: str = ""
    target: str = ""
    provider: str = ""
    """Whom it asks for the action, as people call it."""
    settle_after: int | None = None
    in_flight: int = 60
    """The longest that a request may still be under way after its sender has stopped."""
    key_valid: int | None = None
    approval: str | Decimal = "never"
    """`always`, `never`, or the amount above which a person approves each sending."""
    second_person: str | Decimal = "never"
    """`always`, `never`, or the amount above which a ruling that permits another sending takes two
    persons."""
    reference: str = ""
    runbook: str = ""
    """An address, or what to do about an open case, a step a line (jobs/runbooks.py)."""
    console: str = ""
    """The provider's page of one effect: `https://…/{key}`."""
    sla: int | None = None
    owner: str = ""
    redact: tuple[str, ...] = ()
    not_sent: tuple[type[BaseException], ...] = ()
    look: Callable[[Request], Any] | None = field(default=None, compare=False)

    @property
    def inquirable(self) -> bool:
        return self.look is not None

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.send)

    def inquire(self, function: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Register how to ask the provider what became of a key."""
        if inspect.iscoroutinefunction(function):
            raise ValueError(f"effect kind {self.name}: the inquiry is a plain function; a duty calls it too")
        object.__setattr__(self, "look", function)
        return function

    def label_of(self, payload: Any) -> str:
        """Return the one line that people know this effect by; one that cannot be made is empty."""
        if not isinstance(payload, Mapping):
            return ""
        try:
            return " ".join(self.label.format_map(dict(payload)).split())[:200]
        except (KeyError, IndexError, ValueError, AttributeError, TypeError):
            return ""

    def amount_of(self, payload: Any) -> Decimal | None:
        """Return the amount at the declared path, or None where there is none that is a number."""
        value = _at(payload, self.amount)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            return None
        if not amount.is_finite() or abs(amount) >= HIGHEST:
            return None
        kept = amount.quantize(Decimal("0.0001"))
        return kept if abs(kept) < HIGHEST else None  # rounded up

    def text_of(self, payload: Any, path: str, limit: int) -> str:
        """Return the text at a declared path, bounded."""
        value = _at(payload, path)
        return "" if value is None or isinstance(value, dict | list) else str(value)[:limit]

    def asks_approval(self, amount: Decimal | None) -> bool:
        """Whether a person has to approve a sending of this amount."""
        return self.replay == "non_replayable" and _applies(self.approval, amount)

    def asks_second(self, amount: Decimal | None) -> bool:
        """Whether a ruling that permits a second sending takes two persons: always where nothing else
        guards."""
        return self.replay == "non_replayable" or _applies(self.second_person, amount)

    def is_reference(self, text: str) -> bool:
        """Whether `text` looks as this provider's references do."""
        return not self.reference or re.fullmatch(self.reference, text) is not None

    def judge(self, error: BaseException, *, before: BaseException | None = None) -> Verdict:
        """Return what an exception proves; anything that is not on the closed list proves nothing.

        What was being handled `before` the send function was called is not its own.
        """
        if isinstance(error, Declined):
            return Verdict.DECLINED
        chain = _chain(error, before)
        roots = [e for e in chain if not _wraps(e)]
        proven = (*NOT_SENT, *self.not_sent)
        # A client that tried twice may have sent the first time: then the first error is in the chain too.
        return Verdict.NOT_SENT if roots and all(isinstance(e, proven) for e in roots) else Verdict.UNKNOWN


def _applies(rule: str | Decimal, amount: Decimal | None) -> bool:
    if isinstance(rule, str):
        return rule == "always"
    # What is paid back is as much money.
    return amount is None or abs(amount) > rule


def _at(payload: Any, path: str) -> Any:
    value = payload
    for part in path.split(".") if path else ():
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value if path else None


def _chain(error: BaseException, before: BaseException | None) -> list[BaseException]:
    """Return an exception and all that it came from: causes, contexts, and what urllib keeps as `reason`."""
    seen: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or one is before or one in seen:
            continue
        seen.append(one)
        left += [one.__cause__, one.__context__]
        reason = getattr(one, "reason", None)
        left.append(reason if isinstance(reason, BaseException) else None)
    return seen


def _wraps(error: BaseException) -> bool:
    """Whether an exception only says again what another one said."""
    reason = getattr(error, "reason", None)
    return error.__cause__ is not None or isinstance(reason, BaseException)


_kinds: dict[str, EffectKind] = {}


def effect_kind(
    name: str,
    *,
    replay: str,
    approval: str | Decimal | None = None,
    not_sent: Sequence[Any] = (),
    **more: Any,
) -> Callable[[Callable[[Request], Any]], EffectKind]:
    """Register a send function as the effect kind `name`; see EffectKind for what may be declared.

    A `non_replayable` kind asks for approval always, unless it says an amount or `never`. Raises ValueError
    at import for what could not work at run time.
    """

    def register(function: Callable[[Request], Any]) -> EffectKind:
        rule = approval if approval is not None else "always" if replay == "non_replayable" else "never"
        kind = EffectKind(
            name=name, send=function, replay=replay, approval=rule, not_sent=tuple(not_sent), **more
        )
        _check(kind)
        earlier = _kinds.get(name)
        if earlier is not None and earlier.send.__qualname__ != function.__qualname__:
            raise ValueError(f"effect kind {name!r} is registered already, by {earlier.send.__qualname__}")
        _kinds[name] = kind
        return kind

    return register


def _check(kind: EffectKind) -> None:
    if not NAME.fullmatch(kind.name) or kind.name == IMPLICIT:
        raise ValueError(
            f"effect kind {kind.name!r}: letters, digits and ._:- only, at most 120, and not `job`"
        )
    if kind.replay not in REPLAY:
        raise ValueError(
            f"effect kind {kind.name}: replay is one of {', '.join(REPLAY)}, not {kind.replay!r}"
        )
    for rule in (kind.approval, kind.second_person):
        if not isinstance(rule, Decimal) and rule not in ("always", "never"):
            raise ValueError(f"effect kind {kind.name}: always, never or a Decimal amount, not {rule!r}")
    for value in (kind.settle_after, kind.in_flight, kind.key_valid, kind.sla):
        if value is not None and (type(value) is not int or not 0 <= value <= 366 * 86400):
            raise ValueError(
                f"effect kind {kind.name}: durations are whole seconds up to a year, not {value!r}"
            )
    runbooks.check(kind.name, kind.runbook, kind.console)
    try:
        re.compile(kind.reference)
    except re.error as error:
        raise ValueError(f"effect kind {kind.name}: reference is no pattern: {error}") from None


def find(name: str) -> EffectKind | None:
    """Return the effect kind of that name, or None when this process does not know it."""
    return _kinds.get(name)


def hidden_paths(kind: str, job_kind: str) -> tuple[str, ...]:
    """Return what a slot's payload and answers keep from people.

    What the effect's kind declares; of a slot that stands for a whole run, whose payload is the job's input,
    what the job's kind does.
    """
    if kind == IMPLICIT:
        return handlers.hidden_paths(job_kind)
    declared = find(kind)
    return declared.redact if declared else ()


def registered() -> list[EffectKind]:
    """Return every effect kind, sorted by name."""
    return sorted(_kinds.values(), key=lambda kind: kind.name)


def forget(*names: str) -> None:
    """Take effect kinds out of the registry; tests clean up with it."""
    for name in names:
        _kinds.pop(name, None)
