"""The console's benchmark asks for every page there is, of a ledger that obeys the constraints; untimed."""

import pytest

from bench.console import pages, table
from bench.console.ask import Browser
from bench.console.fill import fill
from jobs.models import Attempt, Case, Job
from jobs.models.case import CaseKind
from jobs.status import JobStatus
from tests.console import urltable

pytestmark = pytest.mark.django_db
JOBS = 2000


@pytest.fixture
def ledger(db):
    return fill(JOBS, lambda _line: None)


def test_every_page_is_asked_for(ledger):
    asked: dict[str, pages.Page] = {}
    for page in pages.pages():
        asked.setdefault(page.name, page)
    names = set(urltable.names())
    assert set(asked) | pages.SENT == names
    assert not set(asked) & pages.SENT
    # What jobs and cases there are is what the pages are about.
    assert ledger["jobs_job"] == JOBS
    assert set(Job.objects.values_list("status", flat=True)) == {status.value for status in JobStatus}
    assert set(Case.objects.filter(closed_at=None).values_list("kind", flat=True)) == set(CaseKind)
    assert Attempt.objects.count() > JOBS
    cost = Browser(None).measure(asked["admin:jobs"], 1)
    assert cost.queries > 0
    assert cost.scans == []


def line(title, p95, process=1.0, scans=()):
    return {
        "measure": "page", "title": title, "median_ms": 1.0, "p95_ms": p95, "process_ms": process,
        "process_p95_ms": process, "server_ms": 1.0, "queries": 3, "bytes": 2048, "scans": list(scans),
    }  # fmt: skip


def test_a_page_that_is_slow_busy_or_reads_a_large_table_is_named():
    lines = [line("a", 99.0), line("b", 101.0), line("c", 5.0, 100.0), line("d", 5.0, scans=["jobs_job"])]
    rows = table.table(lines)
    assert "| b | 1.0 | 101.0 | 1.0 | 1.0 | 3 | 2 | none | **short** | met |" in rows
    assert "| c | 1.0 | 5.0 | 100.0 | 1.0 | 3 | 2 | none | met | **short** |" in rows
    assert "| d | 1.0 | 5.0 | 1.0 | 1.0 | 3 | 2 | jobs_job | met | met |" in rows
    said = table.verdict(lines)
    assert "p95 above 100 ms: 1 (b)" in said
    assert "above 100 ms: 1 (c)" in said
    assert "end to end: 1 (d)" in said
