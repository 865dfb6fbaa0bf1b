"""Words for saying what an answer looks like, as JSON Schema: the API's description is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
ID: Schema = {"type": "string", "format": "uuid"}
ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}


def maybe(schema: Schema) -> Schema:
    """Return the same, or null."""
    if "enum" in schema:
        return {**schema, "type": ["string", "null"], "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema


def words(known: Iterable[str]) -> Schema:
    """Return a closed list of words."""
    return {"type": "string", "enum": [str(word) for word in known]}


def rows(item: Schema) -> Schema:
    """Return a list of such."""
    return {"type": "array", "items": item}


def record(fields: Mapping[str, Schema], **more: Schema) -> Schema:
    """Return an object that has all of these members; new ones may come."""
    members = {**fields, **more}
    return {"type": "object", "properties": members, "required": list(members)}


def listing(item: Schema, **more: Schema) -> Schema:
    """Return the object that a list is answered in."""
    return record({"results": rows(item)}, **more)


def ref(name: str) -> Schema:
    """Return a schema that is described once for all (see openapi.COMPONENTS)."""
    return {"$ref": f"#/components/schemas/{name}"}
