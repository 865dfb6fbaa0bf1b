"""What arrives and what is answered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BODY_BYTES = 64 * 1024
DEPTH = 32


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body, an object; Refused when it is anything else."""
        try:
            value = json.loads(self.body, parse_constant=_no_number)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            raise invalid("body", "must be JSON") from None
        if not isinstance(value, dict):
            raise invalid("body", "must be an object")
        if _deeper(value, DEPTH):
            raise invalid("body", f"may be nested {DEPTH} levels deep")
        return value


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Mapping[str, Any] | bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode() + b"\n"


class Refused(Exception):
    """The request is refused, definitely: nothing was done."""

    def __init__(self, status: int, code: str, message: str, **more: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.answer = Answer(status, {"code": code, "message": message, **more})


def invalid(field_name: str, what: str) -> Refused:
    """Return the refusal of a field of the body."""
    return Refused(422, "invalid", f"{field_name} {what}.", field=field_name)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _deeper(value: Any, levels: int) -> bool:
    """Whether it is nested deeper than this: what can hardly be read can perhaps not be written again."""
    level = [value]
    for _ in range(levels):
        nested = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for parts in nested for part in parts if isinstance(part, dict | list)]
    return bool(level)
