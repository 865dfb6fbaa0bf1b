"""Work in a thread that is lent for a moment, as a coroutine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections


def closing(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a borrowed thread, and leave no connection behind in it."""
    try:
        return function(*arguments)
    finally:
        connections.close_all()
