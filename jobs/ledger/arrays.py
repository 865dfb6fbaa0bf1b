"""Columns of a row list as PostgreSQL array literals: what a statement unnests.

Arrays cost a third of what JSON costs on both ends: 8 µs of the server's time per row and statement for JSON
objects of twelve fields, 2 for these; and an unused column of an array is not even sent.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any


def literal(values: list[Any], *, numbers: bool = False) -> str:
    """Return one column as an array literal; the statement's cast gives it its type.

    A column without any value is the empty array: unnest fills what is missing with NULL.
    """
    if numbers:
        return "{" + repr(values)[1:-1].replace("None", "NULL") + "}"
    try:
        joined = '","'.join(values)
    except TypeError:
        if values.count(None) == len(values):
            return "{}"
        return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"
    if not values:
        return "{}"
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        return "{" + ",".join(map(_quoted, values)) + "}"
    return f'{{"{joined}"}}'


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(value: Any) -> str:
    if isinstance(value, uuid.UUID | int):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} does not belong into a row list")
