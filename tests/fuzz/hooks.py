"""What schemathesis is told of us, and what it tells: which requests were answered, and how."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import stateful

from tests.api.described import close
from tests.build import KIND


class Sent(NamedTuple):
    """What is told of a request that was answered."""

    operation: str
    phase: str
    mode: str
    status: int


SENT: Counter[Sent] = Counter()
"""The requests since `begin`."""
_seen: Counter[str] = Counter()
_every = 1
_known: dict[str, list[str]] = {}


def begin(every: int, known: dict[str, list[str]]) -> None:
    """Count anew, and let through only the first and then each `every`-th case of coverage.

    `known` are values of parameters of paths that name something.
    """
    global _every, _known
    _every, _known = every, known
    SENT.clear()
    _seen.clear()


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """Thin out what is counted up for each operation: right and wrong values for every place in a request."""
    if case.meta is None or case.meta.phase.name != "coverage":
        return True
    _seen[case.operation.label] += 1
    return _seen[case.operation.label] % _every == 1 % _every


@schemathesis.hook
def after_call(_context: Any, case: Any, response: Any) -> None:
    """Count a request that was answered."""
    phase, mode = (case.meta.phase.name, case.meta.generation.mode) if case.meta else ("", "")
    SENT[Sent(case.operation.label, str(phase), str(mode), response.status_code)] += 1


@schemathesis.hook
def before_load_schema(_context: Any, raw_schema: dict[str, Any]) -> None:
    """Close the objects of answers, so that a member that nobody described is found too.

    A client is to bear new members, so the description leaves them open; a problem has those of its refusal.
    """
    shared = raw_schema["components"]["schemas"]
    for name in shared.keys() - {"Problem"}:
        for inner in shared[name].get("properties", {}).values():
            close(inner)
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                if told := answer.get("content", {}).get("application/json"):
                    close(told["schema"])


@schemathesis.hook
def map_case(_context: Any, case: Any) -> Any:
    """Let nobody wait, be it for work or for a change, and let right names be those of something.

    Of a job that does not exist nobody gets to know whether the rest of a request would be refused.
    """
    if isinstance(case.body, dict) and _waits(case.body.get("wait")):
        case.body["wait"] = 0
    if case.query and str(wait := case.query.get("wait", "")).isdecimal() and _waits(int(wait)):
        case.query["wait"] = "0"
    if case.meta and case.meta.phase.name != "stateful":
        path = case.meta.components.get(ParameterLocation.PATH)
        if path and path.mode == GenerationMode.POSITIVE:
            turn = _seen[case.operation.label] // _every
            for name in case.path_parameters.keys() & _known.keys():
                case.path_parameters[name] = _known[name][turn % len(_known[name])]
        for body in _new_jobs(case):
            if type(kind := body.get("kind")) is str and re.fullmatch(r"[a-z0-9]{1,20}", kind):
                body["kind"] = KIND
    return case


def _new_jobs(case: Any) -> list[dict[str, Any]]:
    body = case.body
    if isinstance(body, dict) and case.operation.path.endswith("/jobs"):
        return [body]
    if isinstance(body, dict) and isinstance(jobs := body.get("jobs"), list):
        return [job for job in jobs if isinstance(job, dict)]
    return []


def _waits(seconds: Any) -> bool:
    return type(seconds) in (int, float) and 0 < seconds <= 30


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Write a whole number without a point.

    To JSON Schema 5.0 is an integer; who sends one here is told to send a 5 (docs/api.md).
    """
    return _whole(body)


def _whole(value: Any) -> Any:
    match value:
        case dict():
            return {name: _whole(inner) for name, inner in value.items()}
        case list():
            return [_whole(inner) for inner in value]
        case float() if value.is_integer():
            return int(value)
    return value


@schemathesis.hook
def filter_query(_context: Any, query: Any) -> bool:
    """Leave out what never comes to us as it was made.

    Gunicorn refuses an address above 4,094 bytes before anybody of ours reads it. A parameter whose value is
    an empty list is no part of the address that is sent: as the one wrong thing in a request it would be
    missed there, and the request rightly taken.
    """
    given = query or {}
    sent = len(_address(given)) < 3000
    return sent and all("?" in _address({name: value}) for name, value in given.items())


def _address(query: dict[str, Any]) -> str:
    return str(requests.Request("GET", "http://localhost/", params=query).prepare().url)


def _begins(operation: Any, *_more: Any) -> bool:
    return not operation.path_parameters


# Any POST may begin a walk, says schemathesis; of what its address names, made at random, there never is one.
stateful.is_likely_root_transition = _begins
