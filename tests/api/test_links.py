"""What the description says may follow an answer can be followed: both ends of a link know what it names."""

from __future__ import annotations

import json
import re
from typing import Any

from jobs.api import links, openapi
from tests.api import described

BY_NAME = {operation.name: operation for operation in described.operations()}
EXPRESSION = re.compile(r"\$(request|response)\.(body#|header\.)([\w/]*)")


def place(schema: dict[str, Any], pointer: str) -> dict[str, Any]:
    """Return what a schema says of the place that a pointer names; KeyError where it knows none."""
    for step in pointer.split("/")[1:]:
        if not schema.keys() & {"items", "properties"}:
            return {}  # an object of which nothing more is said
        schema = schema["items"] if step.isdigit() else schema["properties"][step]
    return schema


def types(schema: dict[str, Any]) -> set[str]:
    """Return the JSON types of a schema but null, with which a link is not followed."""
    said = schema.get("type", [])
    return set([said] if isinstance(said, str) else said) - {"null"}


def answered(source: str) -> dict[str, Any]:
    """Return the schema of what an operation answers when it succeeds."""
    told = BY_NAME[source].told["responses"]
    success = next(answer for status, answer in told.items() if status.startswith("2"))
    schema: dict[str, Any] = success["content"]["application/json"]["schema"]
    return schema["allOf"][0] if "allOf" in schema else schema


def leaves(value: Any, schema: dict[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Return every value of a link's body with what the target's schema says of its place."""
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in leaves(inner, schema["properties"][name])]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner, schema["items"])]
    return [(value, schema)]


def test_every_link_names_what_both_of_its_operations_describe():
    for source, several in links.LINKS.items():
        for target, parameters, body in several:
            wanted = BY_NAME[target]
            named = {**wanted.parameters("path"), **wanted.parameters("header"), **wanted.parameters("query")}
            given = [(value, named[name]) for name, value in parameters.items()]
            for value, schema in given + (leaves(body, wanted.body or {}) if body else []):
                found = {"type": "boolean"} if isinstance(value, bool) else of(source, value)
                if types(schema) and types(found) and not str(value).startswith('"'):
                    assert types(schema) & types(found), (source, target, value)


def of(source: str, expression: str) -> dict[str, Any]:
    """Return the schema of what a link reads of an operation."""
    match = EXPRESSION.search(expression)
    assert match, expression
    whose, kind, at = match.groups()
    if kind == "header.":
        assert at == "ETag"
        return {"type": "string"}
    return place((BY_NAME[source].body or {}) if whose == "request" else answered(source), at)


def test_every_success_of_an_operation_carries_its_links():
    document = json.loads(openapi.JSON.read_text("utf-8"))
    told = {op["operationId"]: op for methods in document["paths"].values() for op in methods.values()}
    assert set(links.LINKS) <= set(told)
    for source, several in links.LINKS.items():
        assert len({target for target, *_ in several}) == len(several), f"{source} names a target twice"
        for status, answer in told[source]["responses"].items():
            assert ("links" in answer) == status.startswith("2")
