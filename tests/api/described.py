"""What docs/openapi.yaml says of each operation, and whether an answer is as it says.

Objects of answers are closed here, so that a member that nobody described is found too. Requests are made of
the description by schemathesis: tests/fuzz.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from jobs.api import openapi
from jobs.api.fields import parse_instant, parse_uuid

written = FormatChecker(formats=())
written.checks("uuid")(lambda text: not isinstance(text, str) or str(parse_uuid(text)) == text)
written.checks("date-time")(lambda text: not isinstance(text, str) or parse_instant(text) is not None)


@cache
def document() -> dict[str, Any]:
    """Return the committed description, its references resolved."""
    made = json.loads(openapi.JSON.read_text("utf-8"))
    resolved: dict[str, Any] = _resolve(made["paths"], made["components"]["schemas"])
    return resolved


def _resolve(part: Any, schemas: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        if "$ref" in part:
            return _resolve(schemas[part["$ref"].rpartition("/")[2]], schemas)
        return {name: _resolve(inner, schemas) for name, inner in part.items()}
    return [_resolve(inner, schemas) for inner in part] if isinstance(part, list) else part


def close(schema: dict[str, Any]) -> None:
    """Change a schema of an answer so that it takes no member it does not name."""
    if "items" in schema:
        close(schema["items"])
    for part in [schema, *schema.get("allOf", [])]:
        for inner in part.get("properties", {}).values():
            close(inner)
    if schema.keys() & {"allOf", "$ref"}:
        schema.setdefault("unevaluatedProperties", False)
    elif "properties" in schema:  # the same, and judged faster
        schema.setdefault("additionalProperties", False)


@dataclass(frozen=True)
class Operation:
    """One method of one address."""

    method: str
    path: str
    told: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.told["operationId"])

    @property
    def body(self) -> dict[str, Any] | None:
        """The schema of its body, where that is JSON."""
        found: dict[str, Any] = self.told.get("requestBody", {}).get("content", {})
        return found.get("application/json", {}).get("schema")

    @property
    def address(self) -> re.Pattern[str]:
        """What the paths that it is asked by look like."""
        return re.compile(re.sub(r"{\w+}", "[^/]+", self.path))

    def parameters(self, where: str) -> dict[str, Any]:
        return {p["name"]: p["schema"] for p in self.told.get("parameters", []) if p["in"] == where}

    def violation(self, answer: Any) -> str:
        """Return how an answer differs from its description, or nothing."""
        status = str(answer.status_code)
        told = self.told["responses"].get(status) or self.told["responses"].get(f"{status[0]}XX")
        if told is None:
            return f"{status} is not described"
        if "content" not in told:
            return "" if answer.content == b"" else f"{status} has a body"
        (media,) = told["content"]
        if answer["Content-Type"] != media:
            return f"{status} is {answer['Content-Type']}"
        if media == "application/problem+json":
            found = next(_problem().iter_errors(answer.json()), None)
        else:
            found = next(_validator(self, status).iter_errors(json.loads(answer.content)), None)
        return f"{status}: {found.json_path} {found.message[:300]}" if found else ""


@cache
def operations() -> list[Operation]:
    """Return every operation that is described."""
    return [
        Operation(method.upper(), path, told)
        for path, methods in document().items()
        for method, told in methods.items()
    ]


_validators: dict[tuple[str, str], Any] = {}


def _validator(operation: Operation, status: str) -> Any:
    key = operation.name, status
    if key not in _validators:
        schema = copy.deepcopy(operation.told["responses"][status]["content"]["application/json"]["schema"])
        close(schema)
        _validators[key] = Draft202012Validator(schema, format_checker=written)
    return _validators[key]


@cache
def _problem() -> Any:
    return Draft202012Validator(openapi.PROBLEM, format_checker=written)


def violation(method: str, path: str, answer: Any) -> str:
    """Return how an answer differs from the description of what was asked for; of what has none, nothing."""
    asked = (o for o in operations() if o.method == method and o.address.fullmatch(path))
    return next((operation.violation(answer) for operation in asked), "")


def least(schema: dict[str, Any]) -> Any:
    """Return a value that fits a schema of a request: members that are needed, lists of one item."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "null")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            members = schema.get("properties", {})
            return {name: least(members[name]) for name in schema.get("required", [])}
        case "array":
            return [least(schema["items"])]
        case "string" if schema.get("format") == "uuid":
            return "1e41c993-b919-4d54-a0c1-e6974eb14e16"
        case "string":
            return "a"
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return None
