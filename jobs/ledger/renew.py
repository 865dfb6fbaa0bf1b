"""Renewal: one statement for all leases of a worker (contract §5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.ledger.fence import fence
from jobs.ledger.session import Session

# A row that somebody holds is skipped, not waited for: one long transaction over one job (a handler that
# enqueues children and goes on working) must not starve the leases of the others. It is tried again soon.
LOCK_FREE = """
SELECT {id} FROM {table} AS j WHERE {id} {among:ids} ORDER BY {id} {skip_locked}
"""

# Extends to at most T + the kind's lease, never past the deadline, never shortens. Writes no state_version.
RENEW = f"""
WITH t AS MATERIALIZED (SELECT {{clock}} AS now)
UPDATE {{table}} AS j
   SET {{lease_expires_at}} = {{greatest}}(j.{{lease_expires_at}},
?lease_seconds,deadline_at|         {{least}}({{after:r.ttl}}, {{plus:t.now+j.{{lease_seconds}}}}, COALESCE(j.{{deadline_at}}, {{far}})))
?lease_seconds,!deadline_at|         {{least}}({{after:r.ttl}}, {{plus:t.now+j.{{lease_seconds}}}}))
?!lease_seconds,deadline_at|         {{least}}({{after:r.ttl}}, COALESCE(j.{{deadline_at}}, {{far}})))
?!lease_seconds,!deadline_at|         {{after:r.ttl}})
?heartbeat_at|     , {{heartbeat_at}} = t.now
  FROM t, {{rows:leases}}
 WHERE j.{{id}} = r.id
{fence("renew")}
?worker_id|   AND NOT EXISTS (SELECT 1 FROM jobs_worker w WHERE w.id = j.{{worker_id}} AND w.fenced_at IS NOT NULL)
RETURNING {{key:{{j}}{{id}}}}, {{micros:{{j}}{{lease_expires_at}}}}
"""


def lock_free(session: Session, ids: Sequence[Any]) -> set[Any]:
    """Lock those of `ids` that nobody else holds, and return them."""
    if not session.locks_rows:
        return set(ids)
    return {session.key(row[0]) for row in session.run(LOCK_FREE, {"ids": [{"id": i} for i in ids]})}


def renew(session: Session, leases: Sequence[dict[str, Any]]) -> dict[Any, datetime]:
    """Extend locked leases whose fence holds; returns the new ends by job id."""
    renewed: dict[Any, datetime] = {}
    for job_id, ends in session.run(RENEW, {"leases": leases}):
        moment = session.moment(ends)
        assert moment is not None  # noqa: S101  (the guard just compared it)
        renewed[job_id] = moment
    return renewed
