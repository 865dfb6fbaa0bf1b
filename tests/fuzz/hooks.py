"""What schemathesis is told of us: no half a minute for each claim that finds nothing, no endless address."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import schemathesis


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Let a claim that may wait not wait; a wrong wait stays wrong."""
    if isinstance(body, dict) and type(body.get("wait")) in (int, float) and 0 < body["wait"] <= 30:
        return {**body, "wait": 0}
    return body


@schemathesis.hook
def filter_query(_context: Any, query: Any) -> bool:
    """Leave out addresses that gunicorn refuses before anybody of ours reads them (4,094 bytes)."""
    return len(urlencode(query or {}, doseq=True)) < 3000
