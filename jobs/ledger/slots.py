"""Effect slots as far as endings need them: an ending leaves nothing `executing` (contract §3, Endings)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.ledger.session import Session

# Open stays open, so the counter on the job row does not change.
TO_UNKNOWN = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET status = 'unknown', version = s.version + 1, changed_at = t.now
  FROM t, {rows:ids}
 WHERE s.job_id = r.id AND s.status = 'executing'
"""

WITHOUT_OPEN = """
SELECT j.{id}, j.{claim_generation}, j.{revision}, j.{input}, j.{input_digest}, j.{attempt_id}
  FROM {table} AS j
 WHERE j.{id} {among:ids}
   AND NOT EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = j.{id} AND s.status IN ('executing', 'unknown'))
"""

INSERT_IMPLICIT = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
INSERT INTO jobs_effectslot (id, job_id, revision, node_id, slot, kind, replay, inquirable, status, version,
    in_conflict, payload, payload_digest, granted_attempt_id, grants, reference, created_at, changed_at)
SELECT %(effect_id)s, %(job_id)s, %(revision)s, '', %(slot)s, 'job', 'non_replayable', {false}, 'unknown', 1,
    {false}, %(payload)s, %(digest)s, %(attempt_id)s, 1, %(reference)s, t.now, t.now
  FROM t
"""


def needs_person(job: str) -> str:
    """Return the test whether an open effect of the row aliased `job` can be settled by a person only.

    Read under the job's lock, which every slot write takes first.
    """
    return (
        f"EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = {job}.{{id}}"
        " AND s.status IN ('executing', 'unknown')"
        " AND (s.replay = 'non_replayable' OR s.in_conflict OR s.key_valid_until <= t.now"
        " OR (s.replay = 'queryable' AND NOT s.inquirable)))"
    )


def executing_to_unknown(session: Session, ids: Sequence[Any]) -> None:
    """Turn what an ended attempt was sending into `unknown`: found by anyone else it means just that."""
    if ids:
        session.run(TO_UNKNOWN, {"ids": [{"id": i} for i in ids]})


def without_open_slot(session: Session, ids: Sequence[Any]) -> list[tuple[Any, int, int, str, str, Any]]:
    """Return id, generation, revision, input, digest and attempt of those jobs that have no open slot."""
    rows = session.run(WITHOUT_OPEN, {"ids": [{"id": i} for i in ids]})
    return [(session.key(r[0]), r[1], r[2], r[3], r[4], session.key(r[5])) for r in rows]


def insert_implicit(session: Session, **values: Any) -> None:
    """Open the slot `job.<generation>`, so that an uncertain job always has something to rule on."""
    session.run(INSERT_IMPLICIT, **values)
