"""Search attributes: written in the transaction of the job's own row, which they repeat a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.ledger.session import Session

LAY = """
INSERT INTO jobs_searchattribute (job_id, name, value)
SELECT r.id, r.name, r.value FROM {rows:attributes} WHERE true
ON CONFLICT DO NOTHING
"""

NAMES = """
SELECT name FROM jobs_searchattribute WHERE job_id = %(id)s AND name <> ''
"""

# Tags stay: an input holds none.
CLEAR = """
DELETE FROM jobs_searchattribute WHERE job_id = %(id)s AND name <> ''
"""

# Of jobs whose input is still the one that was read; a revision waits until what was read of it is laid.
STILL = """
SELECT {key:j.{id}} FROM {table} AS j JOIN {rows:seen} ON j.{id} = r.id AND j.{input_digest} = r.input_digest
 ORDER BY j.{id} {share_rows}
"""

OUTDATED = """
DELETE FROM jobs_searchattribute
 WHERE job_id {among:ids} AND name <> ''
   AND (job_id, name, value) NOT IN (SELECT r.id, r.name, r.value FROM {rows:attributes})
"""


def lay(session: Session, rows: Sequence[dict[str, Any]]) -> int:
    """Write attributes that are not there yet; returns how many were not."""
    return session.write(LAY, {"attributes": rows}) if rows else 0


def of_jobs(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the attributes of new jobs, which are given as `insert` takes them."""
    found = []
    for job in jobs:
        found += [{"id": job["id"], "name": "", "value": tag} for tag in job["tags"].split()]
        found += pairs(job["id"], job.get("attributes", {}))
    return found


def pairs(job_id: Any, attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what stands at the paths of one job's input, as rows."""
    return [{"id": job_id, "name": name, "value": value} for name, value in attributes.items()]


def names(session: Session, job_id: Any) -> list[str]:
    """Return the paths that a job is found by."""
    return sorted(row[0] for row in session.run(NAMES, id=job_id))


def replace(session: Session, job_id: Any, attributes: Mapping[str, str]) -> None:
    """Let a locked job be found by what stands in its new input; its tags stay."""
    session.run(CLEAR, id=job_id)
    lay(session, pairs(session.key(job_id), attributes))


def still(session: Session, seen: Sequence[dict[str, Any]]) -> set[Any]:
    """Hold jobs still whose input is the one that was seen (`id`, `input_digest`); returns their ids."""
    return {row[0] for row in session.run(STILL, {"seen": seen})}


def amend(session: Session, ids: Sequence[Any], rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Make `rows` all that these jobs are found by, tags aside; returns how many went in and how many out."""
    gone = session.write(OUTDATED, {"ids": [{"id": i} for i in ids], "attributes": rows})
    return lay(session, rows), gone
