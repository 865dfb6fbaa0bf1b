"""The time of a drill: seconds after its start. No clock is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2000, 1, 1, tzinfo=UTC)
"""When every scenario begins."""


def instant(t: float) -> datetime:
    """Return when second `t` of a scenario is, to the microsecond."""
    return START + timedelta(microseconds=round(t * 1_000_000))


def seconds(moment: datetime | None) -> float | None:
    """Return the second of a scenario that `moment` is, exactly; a whole one as an integer."""
    if moment is None:
        return None
    whole, rest = divmod((moment - START) // timedelta(microseconds=1), 1_000_000)
    return whole + rest / 1_000_000 if rest else whole
