"""Requests made from docs/openapi.yaml, right ones and wrong ones, and what their answers have to be.

A made value is judged by the schema itself: what does not fit it must be refused. Objects of answers are
closed here, so that a member that nobody described is found too.
"""

from __future__ import annotations

import copy
import json
import random
import string
import uuid
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jsonschema import Draft202012Validator, FormatChecker

from jobs.api import openapi
from jobs.api.fields import parse_instant, parse_uuid
from jobs.models import Job

formats = FormatChecker(formats=())
formats.checks("uuid")(lambda text: not isinstance(text, str) or parse_uuid(text) is not None)
formats.checks("date-time")(lambda text: not isinstance(text, str) or parse_instant(text) is not None)

written = FormatChecker(formats=())
written.checks("uuid")(lambda text: not isinstance(text, str) or str(parse_uuid(text)) == text)
written.checks("date-time")(lambda text: not isinstance(text, str) or parse_instant(text) is not None)
"""Of what is read any way to write a UUID that we take; of answers the usual one."""

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
NASTY = [
    "", " ", "\0", "%00", "\ud800", "é", "١٢", "1e400", "9" * 40, "-1", "null", "true", "' OR 1=1 --",
    "<script>", "../..", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "{}", "x" * 2000, "*",
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.5, 2**53, -(2**63), 10**400, 1e308, "", "5", [], [[]], {}, {"": None},
    {"a": 1}, "\0", "\ud83d", "x" * 3000,
]  # fmt: skip


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


def _closed(schema: Any) -> Any:
    """Return a schema of an answer that takes no member it does not name."""
    schema = copy.deepcopy(schema)
    if "allOf" in schema:
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in schema["allOf"]:
            merged["properties"] |= part["properties"]
            merged["required"] += part["required"]
        schema = merged
    if "properties" in schema:
        schema["properties"] = {name: _closed(inner) for name, inner in schema["properties"].items()}
        schema.setdefault("additionalProperties", False)
    if "items" in schema:
        schema["items"] = _closed(schema["items"])
    return schema


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
    def scopes(self) -> set[str]:
        """What a token needs; of several any one."""
        return {scope for way in self.told["security"] for scope in way.get("token", [])}

    @property
    def _content(self) -> dict[str, Any]:
        found: dict[str, Any] = self.told.get("requestBody", {}).get("content", {})
        return found

    @property
    def media(self) -> str:
        """The type of its body."""
        return next(iter(self._content), "")

    @property
    def body(self) -> dict[str, Any] | None:
        return self._content.get("application/json", {}).get("schema")

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
        content = operation.told["responses"][status]["content"]["application/json"]
        _validators[key] = Draft202012Validator(_closed(content["schema"]), format_checker=written)
    return _validators[key]


@cache
def _problem() -> Any:
    return Draft202012Validator(openapi.PROBLEM, format_checker=formats)


@dataclass
class Request:
    """One request; `invalid` says that something in it does not fit the description."""

    operation: Operation
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    invalid: bool = False

    def send(self, client: Any) -> Any:
        given: dict[str, Any] = {f"HTTP_{k.upper().replace('-', '_')}": v for k, v in self.headers.items()}
        if self.raw is not None:
            given |= {"data": self.raw, "content_type": self.operation.media}
        return client.generic(self.operation.method, self.path, QUERY_STRING=self.query, **given)


class Maker:
    """Makes requests from a seed. `known` are values that exist: ids of jobs and cases, names, snapshots."""

    def __init__(self, seed: int, known: dict[str, list[Any]]) -> None:
        self.random = random.Random(seed)
        self.known = known

    def right(self, operation: Operation) -> Request:
        """Return a request about what exists, with nothing wrong in it."""
        path = operation.path
        for name in operation.parameters("path"):
            value = self.pick(self.known.get(name) or [str(uuid.uuid4())])
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        request = Request(operation, path, headers=self.headers(operation, path, likely=1.0))
        if operation.body is not None:
            request.raw = json.dumps(self.value(operation.body)).encode()
        elif operation.media:
            request.query, request.raw = "name=file", b"x"
        return request

    def request(self, operation: Operation) -> Request:
        """Return a request, in two of three cases with something wrong in it."""
        path, query, invalid = operation.path, [], False
        for name in operation.parameters("path"):
            value = self.pick([*self.known.get(name, []), *self.known.get(name, []), str(uuid.uuid4())])
            if self.random.random() < 0.08:  # a slash would make another address of it
                value = self.pick([text for text in NASTY if text and "/" not in text])
            path = path.replace(f"{{{name}}}", quote(str(value).encode("utf-8", "replace"), safe=""))
        for name, schema in operation.parameters("query").items():
            if self.random.random() < 0.15:
                value, wrong = self.parameter(schema)
                query += [(name, value)]
                invalid = invalid or wrong
        if self.random.random() < 0.06:
            query += [(self.pick(["x", "page", "statuss", "format", "\0", "id[]"]), "1")]
            invalid = True
        headers = self.headers(operation, path)
        request = Request(operation, path, _encoded(query), headers, invalid=invalid)
        if operation.body is not None:
            self._give_body(request, operation.body)
        elif operation.media:
            request.raw = self.pick([b"", b"x", bytes(self.random.randrange(256) for _ in range(100))])
        return request

    def headers(self, operation: Operation, path: str, *, likely: float = 0.5) -> dict[str, str]:
        """Return headers that it reads; `likely` is how often a value is the right one."""
        found = {}
        for name in operation.parameters("header"):
            if likely == 1.0 or self.random.random() < 0.9:
                value = {"Idempotency-Key": "k1", "traceparent": TRACE}.get(name) or _tag(path)
                if self.random.random() >= likely:
                    value = self.pick(['"1"', "*", 'W/"1"', "k2", *NASTY[:12]])
                found[name] = value.encode("utf-8", "replace").decode("latin-1")
        return found

    def parameter(self, schema: dict[str, Any]) -> tuple[str, bool]:
        if self.random.random() < 0.4:
            text = str(self.pick([*NASTY, *map(str, ODD)]))
            return text, not _fits(schema, text.encode("utf-8", "replace").decode())
        value = self.value(schema)
        text = str(value[0] if isinstance(value, list) else value)
        return text, False

    def _give_body(self, request: Request, schema: dict[str, Any]) -> None:
        value = self.value(schema)
        if self.random.random() < 0.45:
            value = self.spoil(value, schema)
        request.invalid = request.invalid or not _reader(schema).is_valid(value)
        request.raw = json.dumps(value).encode()
        if self.random.random() < 0.04:
            request.raw = self.pick(
                [b"", b"{", b"\xff\xfe", b'{"a":NaN}', b"[" * 3000, b'{"a":1,"a":2}', b"null"]
            )
            request.invalid = True

    def spoil(self, value: Any, schema: dict[str, Any]) -> Any:
        """Return the value with one place of it changed, left out or added."""
        if isinstance(value, dict) and value and self.random.random() < 0.85:
            value = dict(value)
            name = self.pick(sorted(value))
            match self.random.randrange(5):
                case 0:
                    del value[name]
                case 1:
                    value[self.pick(["x", "", "__proto__", "\0", "id"])] = self.pick(ODD)
                case _:
                    inner = schema.get("properties", {}).get(name, {})
                    value[name] = self.spoil(value[name], inner)
            return value
        if isinstance(value, list) and value and self.random.random() < 0.7:
            place = self.random.randrange(len(value))
            return [*value[:place], self.spoil(value[place], schema.get("items", {})), *value[place + 1 :]]
        return self.pick(ODD)

    def value(self, schema: dict[str, Any], name: str = "") -> Any:
        """Return a value that fits a schema."""
        if name in self.known and self.random.random() < 0.8:
            return self.pick(self.known[name])
        if "enum" in schema:
            return self.pick(schema["enum"])
        kind = schema.get("type", "any")
        if isinstance(kind, list):
            kind = self.pick([*kind[:1] * 4, *kind[1:]])
        match kind:
            case "object":
                return self._object(schema)
            case "array":
                most = min(schema.get("maxItems", 3), 3)
                return [self.value(schema["items"], name[:-1]) for _ in range(self.random.randint(1, most))]
            case "string":
                return self._text(schema)
            case "integer":
                least, most = schema.get("minimum", -9), schema.get("maximum", 9)
                return self.pick([least, most, max(least, min(most, self.random.randint(-9, 9)))])
            case "number":
                return self.pick([0, 0.5, schema.get("maximum", 1e9)])
            case "boolean":
                return self.random.random() < 0.5
            case "null":
                return None
        return self.pick([None, 1, "x", {"a": [1]}])

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        members, needed = schema.get("properties", {}), schema.get("required", [])
        if not members:
            return self.pick([{}, {"n": 1}, {"hidden": "s3cr3t", "é": [None, 1.5]}])
        return {
            name: self.value(inner, name)
            for name, inner in members.items()
            if name in needed or self.random.random() < 0.15
        }

    def _text(self, schema: dict[str, Any]) -> str:
        match schema.get("format"):
            case "uuid":
                return str(uuid.UUID(int=self.random.getrandbits(128), version=4))
            case "date-time":
                return self.pick(
                    ["2026-03-01T12:00:00Z", "2027-01-31T23:59:59.123456+05:30", "1970-01-01T00:00:00Z"]
                )
        least = schema.get("minLength", 0)
        length = self.random.randint(max(1, least), max(least, min(schema.get("maxLength", 12), 12)))
        return "".join(self.pick(string.ascii_letters + "é-_.:") for _ in range(length)) or "x"

    def pick(self, values: Any) -> Any:
        return self.random.choice(values)


def _tag(path: str) -> str:
    """Return the ETag of the job that an address is about."""
    job_id = parse_uuid(path.split("/")[4]) if path.count("/") > 3 else None
    return f'"{Job.objects.filter(pk=job_id).values_list("state_version", flat=True).first()}"'


_readers: dict[int, Any] = {}


def _reader(schema: dict[str, Any]) -> Any:
    """Return what judges a value by a schema of the description, which is read once and stays."""
    if id(schema) not in _readers:
        _readers[id(schema)] = Draft202012Validator(schema, format_checker=formats)
    return _readers[id(schema)]


def _fits(schema: dict[str, Any], text: str) -> bool:
    """Whether a parameter's text is a value of its schema, read leniently where the schema says nothing."""
    if schema.get("type") == "array":
        return _fits(schema["items"], text)
    if schema.get("type") == "integer":
        if not (text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 20):
            return False
        return _reader(schema).is_valid(int(text))
    return _reader(schema).is_valid(text)


def _encoded(query: list[tuple[str, str]]) -> str:
    return urlencode([(k.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for k, v in query])
