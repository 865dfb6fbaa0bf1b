"""One misbehaviour, as it was asked for."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from demo.provider.message import invalid

TIMES, SECONDS = 10_000, 3600.0
# What a request is known by. An inquiry is known by the charge that it would find.
FACTS = ("invoice", "account", "key", "resource")
ON_SEND, ON_INQUIRE = "send", "inquire"


class Kind(StrEnum):
    DROP = "drop"  # act, then close the connection without an answer
    DROP_BEFORE = "drop_before"  # close it without acting
    DELAY = "delay"  # wait, then act
    DELAY_ANSWER = "delay_answer"  # act, then wait
    ERROR = "error"  # 503 without acting
    ACT_THEN_ERROR = "act_then_error"  # act, then 500
    GARBAGE = "garbage"  # act, then 200 with bytes that are no JSON
    NOT_FOUND = "not_found"  # an inquiry finds nothing, although it is there
    REFUSE = "refuse"  # 402 without acting


NEED_SECONDS = (Kind.DELAY, Kind.DELAY_ANSWER)


@dataclass(slots=True, eq=False)
class Fault:
    kind: Kind
    times: int = 1
    seconds: float | None = None
    on: str = ON_SEND
    match: Mapping[str, str] = field(default_factory=dict)
    ends: float | None = None  # not_found for seconds: until then, however often
    lifted: threading.Event = field(default_factory=threading.Event)  # ends its delays

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Fault":
        """Return the fault that was described; Refused names the first field that is wrong."""
        for name in given:
            if name not in ("kind", "times", "seconds", "on", "match"):
                raise invalid(name[:100], "is not known")
        if given.get("kind") not in list(Kind):
            raise invalid("kind", f"must be one of {', '.join(Kind)}")
        kind = Kind(given["kind"])
        times, seconds = given.get("times", 1), given.get("seconds")
        if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= TIMES:
            raise invalid("times", f"must be an integer from 1 to {TIMES}")
        if seconds is None and kind in NEED_SECONDS:
            raise invalid("seconds", f"must be given with {kind}")
        if seconds is not None and not _is_duration(seconds):
            raise invalid("seconds", f"must be a number from 0 to {SECONDS:.0f}")
        on = ON_INQUIRE if kind is Kind.NOT_FOUND else given.get("on", ON_SEND)
        if on not in (ON_SEND, ON_INQUIRE):
            raise invalid("on", f"must be {ON_SEND} or {ON_INQUIRE}")
        return cls(kind, times, seconds, on, _match(given.get("match", {})))

    def hits(self, on: str, facts: Mapping[str, str], now: float) -> bool:
        live = now < self.ends if self.ends is not None else self.times > 0
        return (
            live and self.on == on and all(facts.get(name) == wanted for name, wanted in self.match.items())
        )

    def shown(self) -> dict[str, Any]:
        """Return what is left of it."""
        return {
            "kind": self.kind,
            "times": self.times,
            "seconds": self.seconds,
            "on": self.on,
            "match": self.match,
        }


def _match(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(wanted, str) for wanted in given.values()):
        raise invalid("match", "must be an object of strings")
    if unknown := [name for name in given if name not in FACTS]:
        raise invalid("match", f"knows {', '.join(FACTS)}, not {unknown[0][:100]!a}")
    return dict(given)


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= SECONDS


def from_words(words: str) -> Fault:
    """Return the fault of a command line, as in drop:invoice=INV-1003,times=2; Refused when it is none."""
    kind, _, rest = words.partition(":")
    given: dict[str, Any] = {"kind": kind}
    match: dict[str, str] = {}
    for pair in filter(None, rest.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise invalid(name, "has no value")
        if name in FACTS:
            match[name] = value
        elif name == "times":
            given[name] = int(value) if value.isdecimal() else value
        elif name == "seconds":
            given[name] = float(value) if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", value) else value
        else:
            given[name] = value
    return Fault.read({**given, "match": match})
