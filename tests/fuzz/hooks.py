"""What schemathesis is told of us: no half a minute for each claim that finds nothing, no endless address."""

from __future__ import annotations

from typing import Any

import requests
import schemathesis
from schemathesis.specs.openapi import stateful


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Let a claim that may wait not wait, a wrong wait stays wrong; write a whole number without a point.

    To JSON Schema 5.0 is an integer; who sends one here is told to send a 5 (docs/api.md).
    """
    if isinstance(body, dict) and type(body.get("wait")) in (int, float) and 0 < body["wait"] <= 30:
        body = {**body, "wait": 0}
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
def map_query(_context: Any, query: Any) -> Any:
    """Let nobody wait for a change either."""
    if isinstance(query, dict) and str(query.get("wait", "")).isdigit() and 0 < int(query["wait"]) <= 30:
        return {**query, "wait": "0"}
    return query


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
