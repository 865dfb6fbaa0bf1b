"""When a person last proved who he is, kept in the session of the browser in which he did."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

KEY = "proved_at"


def note(session: MutableMapping[str, Any]) -> None:
    """Keep that the person of this session has just proved who he is."""
    session[KEY] = int(timezone.now().timestamp())


def of(session: Any) -> datetime | None:
    """Return when the person of this session did; None where that is not known."""
    noted = session.get(KEY) if session is not None else None
    return datetime.fromtimestamp(noted, tz=UTC) if isinstance(noted, int) else None
