"""One way to write: what the source must not hold, so that nobody adds a second claim by hand."""

from __future__ import annotations

import re

import pytest

from tests.ledger import source

LEDGER = "jobs/ledger/"
OUTSIDE = {
    "jobs/worker/ear.py": "LISTEN, on a connection of its own beside Django's",
    "jobs/health.py": "SELECT 1: is the database there at all",
    "jobs/drills/database.py": "the throw-away schema of a drill",
    "jobs/api/filters.py": "nothing: `extra` is what a filter of django-filter was given",
}
"""Files outside the ledger that may send SQL, each with what it sends."""

AUTHORISING = {
    "jobs.ledger.claim.claim_queue",
    "jobs.ledger.claim.claim_id",
    "jobs.ledger.renew.renew",
    "jobs.ledger.settle.may_stage",
    "jobs.ledger.settle.stage_attempts",
    "jobs.ledger.settle.commit",
    "jobs.ledger.settle.end",
    "jobs.ledger.cancel.request",
    "jobs.ledger.cancel.retry",
    "jobs.ledger.cancel.revise",
    "jobs.ledger.cancel.hold",
    "jobs.ledger.cancel.hold_many",
    "jobs.ledger.enqueue.insert",
    "jobs.ledger.epoch.raise_epoch",
    "jobs.ledger.epoch.set_claims",
}
"""What moves a job or the cluster; whoever calls it must count and tell a refusal."""


CLAIM = re.compile(
    r"\bSET\b((?!\bWHERE\b|\bFROM\b).)*?\bstatus\b\}*\s*=\s*(\{+:running\}+|'running'|%\(running\)s)",
    re.IGNORECASE | re.DOTALL,
)
"""What writes `running`: a claim."""


def _outside():
    return [path for path in source.files() if not source.name(path).startswith(LEDGER)]


def test_files_are_found():
    names = {source.name(path) for path in source.files()}
    assert {"jobs/runtime.py", "jobs/ledger/claim.py", "console/site.py"} <= names


def test_sql_is_sent_by_the_ledger_only():
    sending = {"cursor", "raw", "extra", "execute", "executemany", "RunSQL", "RawSQL", "copy"}
    found = {
        source.name(path)
        for path in _outside()
        if sending & {*source.attributes(path), *source.imported(path)} - {"copy"}
    }
    assert found == set(OUTSIDE)


def test_skipping_locked_rows_is_spelled_in_one_module():
    words = re.compile(r"skip[_ ]locked", re.IGNORECASE)
    found = {
        source.name(path)
        for path in source.files()
        for text in source.texts(path)
        if words.search(re.sub(r"\{+skip_locked\w*\}+", "", text))
    }
    assert found == {"jobs/ledger/dialect.py"}
    arguments = [source.name(p) for p in source.files() if "skip_locked=" in p.read_text("utf-8")]
    assert arguments == []


def test_there_is_one_claim():
    """Whatever else writes `running` is a second claim, of which the fence knows nothing."""
    found = [source.name(path) for path in source.files() for t in source.texts(path) if CLAIM.search(t)]
    assert found == ["jobs/ledger/claim.py"]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET status = 'running' WHERE id = 1",
        "UPDATE {table} AS j\n   SET {status} = {:running}\n     , x = 1",
    ],
)
def test_a_second_claim_would_be_found(text):
    assert CLAIM.search(text)


def test_sql_judges_time_by_the_ledgers_clock_only():
    """now() and statement_timestamp() stand still while a statement waits for a lock (contract §2)."""
    clocks = re.compile(
        r"\bnow\s*\(|CURRENT_TIMESTAMP|CURRENT_DATE|LOCALTIME|(statement|transaction)_timestamp"
        r"|'now'|(julianday|unixepoch)\s*\(\s*\)",
        re.IGNORECASE,
    )
    found = {
        source.name(path): clocks.search(text)
        for path in source.files()
        for text in source.texts(path)
        if clocks.search(text)
    }
    assert found == {}
    assert [source.name(p) for p in source.files() if "Now" in source.imported(p)] == []


def test_databases_clock_is_read_in_two_places():
    """Once by every statement, through the dialect; once for people."""
    found = {
        source.name(path)
        for path in source.files()
        for text in source.texts(path)
        if "clock_timestamp" in text
    }
    assert found == {"jobs/ledger/dialect.py", "jobs/ledger/clock.py"}


def test_protocol_reads_no_clock_of_its_own():
    """A worker's clock decides nothing: where Python reads a time for the protocol is listed here."""
    found = {
        source.name(path)
        for path in source.files()
        if source.name(path).startswith((LEDGER, "jobs/verbs/", "jobs/runtime.py", "jobs/recovery.py"))
        if {"datetime.datetime.now", "django.utils.timezone.now", "time.time"} & source.used(path)
    }
    # session: T of SQLite, read after BEGIN IMMEDIATE. clock: the same, for people.
    assert found == {"jobs/ledger/session.py", "jobs/ledger/clock.py"}


def test_what_moves_a_job_is_called_by_the_runtime_and_the_verbs_only():
    found = {
        source.name(path): source.used(path) & AUTHORISING
        for path in _outside()
        if source.used(path) & AUTHORISING
    }
    verbs = {f"jobs/verbs/{who}.py" for who in ("cluster", "effects", "enqueue", "person", "rulings")}
    assert set(found) == {"jobs/runtime.py", "jobs/recovery.py", *verbs}
    assert set.union(*found.values()) == AUTHORISING


def test_protocol_rows_are_not_written_by_query_sets():
    """`_base_manager` is Django's own and knows no refusal: reads only."""
    writes = re.compile(r"_base_manager[^\n]*\.(update|delete|create|bulk_\w+|get_or_create)\(")
    assert [source.name(p) for p in source.files() if writes.search(p.read_text("utf-8"))] == []
