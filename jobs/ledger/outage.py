"""Which errors say that the database is away for now, and nothing of what it was asked."""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError

# Django files these under InternalError, among what a wrong statement is answered: writes refused by a server
# that was demoted, and a transaction that the server ended while we stood still (25P03 idle, 25P04 too long).
_AWAY = {"25006", "25P03", "25P04"}


def is_outage(error: BaseException) -> bool:
    """Whether the same may go well later, on another connection: whoever was asked is not to blame."""
    if isinstance(error, InternalError):
        return getattr(error.__cause__, "sqlstate", None) in _AWAY
    return isinstance(error, (OperationalError, InterfaceError))
