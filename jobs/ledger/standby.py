"""Whether a synchronous standby keeps up, as far as the server tells the role that asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connections

# To a role that may not read statistics the server shows that a standby is there, and nothing of it.
STANDBYS = """
SELECT current_setting('synchronous_standby_names', true)
     , COUNT(*)
     , COUNT(r.sync_state)
     , COUNT(*) FILTER (WHERE r.state = 'streaming' AND r.sync_state IN ('sync', 'quorum'))
  FROM pg_stat_replication AS r
"""


@dataclass(frozen=True)
class Standby:
    """The standbys of a server: whether it waits for one, how many are connected, how many are in sync."""

    wanted: bool
    connected: int
    told: int
    """Of how many the server says how far they are."""
    in_sync: int

    @property
    def behind(self) -> bool:
        """Whether the server waits for a standby and is known to have none that is in sync."""
        return self.wanted and not self.in_sync and self.told == self.connected


def standby(using: str) -> Standby | None:
    """Return it; None on a database that has none, and where the server will not say."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return None
    try:
        with connection.cursor() as cursor:
            cursor.execute(STANDBYS)
            return read(cursor.fetchone())
    except DatabaseError:
        return None


def read(row: Sequence[Any]) -> Standby:
    """Return what the one row of STANDBYS says."""
    names, connected, told, in_sync = row
    return Standby(bool((names or "").strip()), connected, told, in_sync)
