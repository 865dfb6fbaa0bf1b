"""Asking what became of an effect: whose turn it is, what is known of the sender, and every answer (contract §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.ledger.session import Session

# Two workers must not ask at once, and no transaction is open while one asks.
BEGIN_INQUIRY = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET inquiring_until = {plus:t.now+%(seconds)s}, inquiries = s.inquiries + 1, inquired_at = t.now
     , inquire_asked_at = NULL
  FROM t
 WHERE s.id = %(id)s AND s.status = 'unknown' AND (s.inquiring_until IS NULL OR s.inquiring_until <= t.now)
RETURNING {s}version
"""

END_INQUIRY = """
UPDATE jobs_effectslot SET inquiring_until = NULL WHERE id = %(id)s
"""

# What a person asked for is begun by the next reconciler that knows the kind; asked once, it waits once.
ASK = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET inquire_asked_at = t.now, inquire_asked_by = %(by)s
  FROM t
 WHERE s.id = %(id)s AND s.status = 'unknown' AND s.inquirable AND s.inquire_asked_at IS NULL
   AND (s.inquired_at IS NULL OR {plus:s.inquired_at+%(cool_down)s} <= t.now)
RETURNING {s}version
"""

PROVE_GONE = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
UPDATE jobs_effectslot AS s
   SET sender_ended_at = t.now, changed_at = t.now
  FROM t
 WHERE s.id = %(id)s AND s.status = 'unknown' AND s.sender_ended_at IS NULL AND s.granted_attempt_id = %(attempt)s
RETURNING {s}id
"""


# Whoever runs the job asks for himself; so do these when nobody does, and a person's request goes first. Only
# who could run the job may ask: another worker may know the kind and yet ask another provider, or another account
# of it, whose "not found" would prove what is not so.
TO_ASK = """
WITH t AS MATERIALIZED (SELECT {clock} AS now)
SELECT s.id, s.kind, CASE WHEN s.inquire_asked_at IS NULL THEN '' ELSE s.inquire_asked_by END
  FROM jobs_effectslot s JOIN {table} j ON j.{id} = s.job_id CROSS JOIN t
 WHERE s.status = 'unknown'
   AND s.inquirable
   AND s.kind IN (EFFECTS)
   AND j.{kind} IN (KINDS)
   AND j.{queue} IN (QUEUES)
   AND (s.inquiring_until IS NULL OR s.inquiring_until <= t.now)
   AND (s.inquire_asked_at IS NOT NULL
        OR NOT s.in_conflict
           AND j.{status} <> {:running}
           AND (s.inquired_at IS NULL OR {plus:s.inquired_at+{least}(%(every)s * (1 + s.inquiries), %(longest)s)} <= t.now
                OR s.inquired_at < {plus:s.sender_ended_at+s.settle_seconds}
                   AND {plus:s.sender_ended_at+s.settle_seconds} <= t.now))
 ORDER BY CASE WHEN s.inquire_asked_at IS NULL THEN 1 ELSE 0 END, s.changed_at
 LIMIT %(limit)s
"""


def to_ask(
    session: Session,
    *,
    queues: Sequence[str],
    kinds: Sequence[str],
    effects: Sequence[str],
    every: int,
    longest: int,
    limit: int,
) -> list[tuple[str, str, str]]:
    """Return slots that the provider should be asked about now, with their kinds and who asked for it.

    `queues` and `kinds` are those of the jobs that the asking worker would run, `effects` the kinds of effects
    that it can ask about. What a person asked for comes first, then the longest unknown; nobody is empty. `every`
    seconds after each inquiry times how many there were, at most `longest`.
    """
    if not (queues and kinds and effects):
        return []
    text, values = TO_ASK, dict[str, Any]()
    for marker, names in (("QUEUES", queues), ("KINDS", kinds), ("EFFECTS", effects)):
        named = {f"{marker.lower()}_{n}": name for n, name in enumerate(names)}
        text = text.replace(marker, ", ".join(f"%({name})s" for name in named))
        values |= named
    rows = session.run(text, every=every, longest=longest, limit=limit, **values)
    return [(row[0], row[1], row[2]) for row in rows]


def ask(session: Session, effect_id: str, *, by: str, cool_down: int) -> bool:
    """Have a reconciler ask the provider at once; False where it waits to be asked, or was asked just now."""
    return bool(session.run(ASK, id=effect_id, by=by[:150], cool_down=cool_down))


def begin_inquiry(session: Session, effect_id: str, *, seconds: int) -> bool:
    """Take the turn to ask the provider for up to `seconds`; False while somebody else asks."""
    return bool(session.run(BEGIN_INQUIRY, id=effect_id, seconds=seconds))


def end_inquiry(session: Session, effect_id: str) -> None:
    """Give the turn back."""
    session.run(END_INQUIRY, id=effect_id)


def prove_gone(session: Session, effect_id: str, attempt: Any) -> bool:
    """Record that the sender's process is proven gone, as of now: the proof's time, not the lease's end."""
    return bool(session.run(PROVE_GONE, id=effect_id, attempt=attempt))


LAST_ANSWER = """
SELECT outcome, reference FROM jobs_evidence
 WHERE effect_id = %(effect_id)s AND source = 'inquiry' ORDER BY id DESC LIMIT 1
"""


def last_answer(session: Session, effect_id: str) -> tuple[str, str] | None:
    """Return outcome and reference of the latest inquiry about a slot."""
    rows = session.run(LAST_ANSWER, effect_id=effect_id)
    return (rows[0][0], rows[0][1]) if rows else None


ADD_EVIDENCE = """
WITH t AS (SELECT {clock} AS now)
INSERT INTO jobs_evidence (at, effect_id, source, outcome, decisive, reference, body, attempt_id, actor)
SELECT t.now, %(effect_id)s, %(source)s, %(outcome)s, %(decisive)s, %(reference)s, %(body)s, %(attempt_id)s, %(actor)s
  FROM t
"""


def add_evidence(
    session: Session,
    effect_id: str,
    *,
    source: str,
    outcome: str,
    decisive: bool,
    reference: str = "",
    body: str = "",
    attempt_id: Any = None,
    actor: str = "",
) -> None:
    """Keep one thing that was learnt; never changed, never removed."""
    session.run(
        ADD_EVIDENCE,
        effect_id=effect_id,
        source=source,
        outcome=outcome,
        decisive=decisive,
        reference=reference[:200],
        body=body,
        attempt_id=attempt_id,
        actor=actor[:200],
    )
