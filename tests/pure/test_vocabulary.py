"""Column vocabularies: what is rendered for a table that can say all, little, or least of the protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.ledger import cancel, claim, enqueue, fence, recover, renew, session, settle
from jobs.ledger.dialect import DIALECTS, sql
from jobs.status import JobStatus
from jobs.vocabulary import JOB, JOB_STATE, STANDARD_FIELDS, Grade, JobColumnVocabulary

COUNTED = JobColumnVocabulary(
    "old_job",
    {
        "id": "pk",
        "status": "state",
        "attempt_count": "tries",
        "lease_expires_at": "until",
        "queue": "lane",
        "next_attempt_at": "due",
        "worker_id": "owner",
    },
    {JobStatus.SUCCEEDED: ("completed", "done"), JobStatus.PENDING: ("queued",)},
    id_type="bigint",
)
"""A table of grade C: an attempt count stands in for the generation."""
VOCABULARIES = {"job": JOB, "job state": JOB_STATE, "counted": COUNTED}

SHARED = {
    "claim": claim.claim_text(1),
    "claim of three kinds": claim.claim_text(3),
    "claim by id": claim.claim_text(0),
    "takeover": claim.claim_text(0, takeover=True),
    "renew": renew.RENEW,
    "lock free": renew.LOCK_FREE,
    "stage": settle.STAGE,
    "commit": settle.COMMIT,
    "end": settle.end_text("end"),
    "recover": settle.end_text("expired"),
    "pick expired": recover.PICK_EXPIRED.replace("ONLY", ""),
    "count": recover.COUNT_RUNNING,
    "read": fence.READ_ROW,
    "lock": session.LOCK_ROWS,
}
"""Statements that any table takes part in."""
OWN = {
    "acknowledge": settle.end_text("acknowledge_cancel"),
    "idle": settle.end_text("idle"),
    "deadline": settle.end_text("past_deadline"),
    "unfinished": settle.end_text("unfinished"),
    "promote": claim.PROMOTE,
    "request": cancel.REQUEST,
    "read people": cancel.READ,
    "revise": cancel.REVISE,
    "hold": cancel.HOLD,
    "insert": enqueue.INSERT,
    "keys": enqueue.FIND_KEYS,
}
"""Statements that only a table with these columns needs."""


def _rendered() -> Iterator[tuple[str, str, str]]:
    for vendor in DIALECTS:
        for name, vocabulary in VOCABULARIES.items():
            for title, text in (SHARED | (OWN if vocabulary is JOB else {})).items():
                yield f"{title}, {name}, {vendor}", name, sql(text, vocabulary, vendor)


RENDERED = list(_rendered())


@pytest.mark.parametrize("text", [t for *_, t in RENDERED], ids=[title for title, *_ in RENDERED])
def test_nothing_of_the_template_is_left(text):
    assert not re.search(r"[{}?|]", re.sub(r"\|\||'{}'", "", text)), text
    assert not re.search(r"\b(READY|HEADS|PICK|NUMBER|FENCE|NEEDS_PERSON|WHERE_FREE|RETURNED|ONLY)\b", text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for _, n, t in RENDERED], ids=[x for x, *_ in RENDERED])
def test_only_mapped_columns_of_the_table_are_named(name, text):
    vocabulary = VOCABULARIES[name]
    columns = set(vocabulary.columns.values())
    named = set(re.findall(r"\b[jk]\.(\w+)", text))
    assert named <= columns | {"id"}, named - columns


@pytest.mark.parametrize("vendor", DIALECTS)
def test_words_are_the_tables_own(vendor):
    text = sql(settle.COMMIT, COUNTED, vendor)
    assert "SET state = 'completed'" in text
    assert "'succeeded'" not in text
    text = sql(claim.claim_text(0), COUNTED, vendor)
    assert "IN ('queued', 'waiting')" in text
    assert (
        "CASE r.target WHEN 'succeeded' THEN 'completed' WHEN 'pending' THEN 'queued' ELSE r.target END"
        in sql(settle.end_text("end"), COUNTED, vendor)
    )


@pytest.mark.parametrize("vendor", DIALECTS)
def test_predicate_of_a_column_that_is_not_mapped_is_not_emitted(vendor):
    full, least = (sql(settle.COMMIT, v, vendor) for v in (JOB, JOB_STATE))
    for part in (
        "attempt_id = r.attempt_id",
        "worker_id = r.worker_id",
        "open_effects = 0",
        "hold_reason = ''",
    ):
        assert part in full
        assert part not in least
    for part in (
        "r.generation",
        "(SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1) = r.epoch",
        "lease_until > t.now",
    ):
        assert part in least


@pytest.mark.parametrize("vendor", DIALECTS)
def test_attempt_count_stands_in_for_a_generation(vendor):
    assert "tries = r.generation" in sql(settle.COMMIT, COUNTED, vendor)
    assert "tries = j.tries + 1" in sql(claim.claim_text(0), COUNTED, vendor)


def test_skipping_is_for_databases_that_lock_rows():
    assert "SKIP LOCKED" in sql(claim.claim_text(1), JOB, "postgresql")
    assert "SKIP LOCKED" not in sql(claim.claim_text(1), JOB, "sqlite")


BASE = {"id": "id", "status": "s", "lease_expires_at": "l"}


def test_grade_says_how_much_of_the_fence_a_table_carries():
    for more, grade in (
        ({"claim_generation": "g", "attempt_id": "a"}, Grade.A),
        ({"claim_generation": "g"}, Grade.B),
        ({"claim_generation": "g", "attempt_count": "n"}, Grade.B),
        ({"attempt_count": "n"}, Grade.C),
        ({"attempt_count": "n", "attempt_id": "a"}, Grade.C),
    ):
        assert JobColumnVocabulary("t", BASE | more).grade == grade
    assert (JOB.grade, JOB_STATE.grade, COUNTED.grade) == (Grade.A, Grade.B, Grade.C)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (BASE, "neither a generation nor an attempt count"),
        ({"id": "id", "status": "s", "claim_generation": "g"}, "map a column for lease_expires_at"),
        ({"status": "s", "lease_expires_at": "l", "attempt_count": "n"}, "map a column for id"),
        (BASE | {"attempt_count": "n", "state": "x"}, "no standard field is called state"),
    ],
)
def test_table_that_cannot_be_fenced_is_refused(columns, says):
    with pytest.raises(ValueError, match=f"^t: .*{says}"):
        JobColumnVocabulary("t", columns)


def test_first_word_is_written_and_every_word_is_read():
    assert COUNTED.word(JobStatus.SUCCEEDED) == "completed"
    assert COUNTED.status_of("completed") == COUNTED.status_of("done") == JobStatus.SUCCEEDED
    assert COUNTED.status_of("running") == JobStatus.RUNNING
    with pytest.raises(ValueError, match="no status is written 'lost'"):
        COUNTED.status_of("lost")


def test_job_maps_every_standard_field_to_itself():
    from jobs.models import Job

    fields: Any = Job._meta.concrete_fields
    assert set(JOB.columns.values()) == STANDARD_FIELDS
    assert {f.column for f in fields} >= STANDARD_FIELDS


@pytest.mark.parametrize("vendor", DIALECTS)
def test_unknown_place_in_a_template_is_a_mistake_that_shows(vendor):
    for text in ("SELECT {nothing}", "SELECT {:nothing}", "SELECT {rows:nothing}", "SELECT {in:nothing}"):
        with pytest.raises((KeyError, ValueError)):
            sql(text, JOB, vendor)


def test_two_vocabularies_of_one_shape_are_two():
    """They are told apart by identity, not by what they map."""
    other = JobColumnVocabulary("other_job", JOB.columns)
    assert "UPDATE jobs_job" in sql(settle.COMMIT, JOB, "sqlite")
    assert "UPDATE other_job" in sql(settle.COMMIT, other, "sqlite")
