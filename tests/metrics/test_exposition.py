"""/metrics: the figures are those of the database, in a form that Prometheus reads."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from config.env import ROOT
from jobs import measures, metrics
from jobs.ledger import raising
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import transact
from jobs.models import Job
from jobs.status import JobStatus
from jobs.vocabulary import JOB
from tests import build
from tests.build import KIND, at, enqueue

pytestmark = pytest.mark.django_db

NOW = at(100)


def scrape(now=NOW):
    """Return every sample: name and labels to value."""
    text = metrics.exposition(now=now).decode()
    return {
        (sample.name.removeprefix("interlock_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def ledger(work, now=build.T0):
    return transact(work, using="default", vocabulary=JOB, now=now, durable=False, fenced=False)


def flush():
    rows = measures.drain()
    ledger(lambda s: worker_rows.add_minutes(s, rows))


def register(name, now):
    values = {
        "host": "h",
        "pid": 1,
        "boot_id": "",
        "pid_namespace": "",
        "pid_started": None,
        "version": "",
        "concurrency": 1,
        "epoch": 1,
    }
    ledger(lambda s: worker_rows.register(s, id=name, queues=["default"], kinds=[KIND], **values), now)


def test_fresh_installation_has_figures():
    figures = scrape()
    assert (figures["epoch",], figures["claims_open",], figures["expired_leases",]) == (1, 1, 0)
    assert figures["workers", "live"] == figures["worker_oldest_beat_seconds",] == 0


def test_gauges_say_what_the_rows_say():
    enqueue(queue="mail", now=at(40))
    build.running(now=at(0))
    build.job(JobStatus.UNCERTAIN)
    Job.objects.hold(build.id_of(build.job(JobStatus.PENDING)), actor="me", reason="r", now=at(2))
    Job.objects.pause_queue("mail", actor="me", reason="r", now=at(3))
    Job.objects.pause_queue("over", actor="me", reason="r", until=at(50), now=at(3))
    build.raise_epoch()
    Job.objects.close_claims(actor="me", reason="r", now=at(4))
    register("h:1:a", at(0))
    register("h:1:b", at(95))
    figures = scrape()
    assert figures["queue_depth", "mail"] == 1
    assert figures["queue_oldest_seconds", "mail"] == 60
    assert figures["queue_paused", "mail"] == 1
    assert ("queue_paused", "over") not in figures
    assert figures["running", "default"] == figures["expired_leases",] == 1
    assert figures["expired_lease_oldest_seconds",] == 40
    assert figures["uncertain", KIND] == figures["held", "operator"] == 1
    assert figures["unknown_effects", "job", "non_replayable"] == 1
    assert figures["unknown_effect_oldest_seconds", "job", "non_replayable"] == 99
    assert (figures["epoch",], figures["claims_open",]) == (2, 0)
    assert (figures["workers", "live"], figures["workers", "silent"]) == (1, 1)
    assert figures["worker_oldest_beat_seconds",] == 100


def test_raise_that_waits_for_its_second_person_shows_for_how_long():
    def ask(session):
        asked: dict[str, Any] = {"floor": 0, "close_claims": False, "reason": "why", "price": "{}"}
        asked |= {"by": "a", "account": "1"}
        return raising.propose(session, expected=1, seconds=3600, **asked)

    transact(ask, using="default", vocabulary=JOB, now=at(0), durable=False)
    assert scrape()["raise_waits_seconds",] == 100
    assert scrape(at(3600))["raise_waits_seconds",] == 0
    build.raise_epoch()
    assert scrape()["raise_waits_seconds",] == 0


def test_fence_counts_every_judgement_and_every_refusal():
    lease = build.running(now=at(0))
    Job.objects.commit(lease, None, now=at(60))
    Job.objects.recover(now=at(62))
    flush()
    figures = scrape()
    judged = {key[1:]: value for key, value in figures.items() if key[0] == "fence_checks_total"}
    assert (judged["accepted", "claim"], judged["claim", "refused"]) == (1, 0)
    assert (judged["accepted", "commit"], judged["commit", "refused"]) == (0, 1)
    assert figures["fenced_total", "LEASE_EXPIRED", "commit"] == 1
    assert figures["fence_coverage_ratio", "claim"] == 1
    assert figures["recovered_total", "default", "pending"] == 1
    assert figures["reclaim_delay_seconds_sum", "default"] == 2
    assert figures["reclaim_delay_seconds_count", "default"] == 1


def test_write_path_around_the_fence_shows_in_its_coverage():
    measures.count("fence.commit.checked", 3)
    measures.count("fence.commit.accepted", 4)
    flush()
    assert scrape()["fence_coverage_ratio", "commit"] == 0.75


def test_histogram_is_cumulative_and_keeps_what_lies_beyond():
    for seconds in (0.0005, 0.004, 0.004, 7200.0):
        measures.observe("due_to_commit", seconds, queue="q", kind="k")
    flush()
    figures = scrape()
    buckets = {key[1]: value for key, value in figures.items() if key[0] == "due_to_commit_seconds_bucket"}
    assert [buckets[bound] for bound in ("0.001", "0.002", "0.005", "3600", "+Inf")] == [1, 1, 3, 3, 4]
    assert figures["due_to_commit_seconds_count", "k", "q"] == 4
    assert figures["due_to_commit_seconds_sum", "k", "q"] == pytest.approx(7200.0085)


def test_counts_of_workers_are_told():
    measures.count("attempts", 4, kind="k", total=6)
    measures.count("discarded_seconds", queue="q", kind="k", total=2.5)
    for name in ("transaction_retry", "clock_went_back", "renew_failures", "quarantined", "loop_errors.beat"):
        measures.count(name, 2)
    of_effects = ("inquiries", "late_evidence", "contradictions", "reports_spooled")
    for name in of_effects:
        measures.count(name, 3)
    flush()
    figures = scrape()
    assert (figures["attempts_per_job_count", "k"], figures["attempts_per_job_sum", "k"]) == (4, 6)
    assert figures["discarded_attempt_seconds_total", "k", "q"] == 2.5
    assert figures["transaction_retries_total",] == figures["clock_regressions_total",] == 2
    assert figures["renew_failures_total",] == figures["quarantined_total",] == 2
    assert figures["worker_errors_total", "beat"] == 2
    assert {figures[f"{name}_total",] for name in of_effects} == {3}


def test_contention_is_that_of_the_last_five_minutes():
    measures.count("claims", 100)
    measures.count("claims_empty", 90)
    old = [row | {"minute": at(-600)} for row in measures.drain()]
    measures.count("claims", 8)
    measures.count("claims_empty", 2)
    new = [row | {"minute": at(0)} for row in measures.drain()]
    ledger(lambda s: worker_rows.add_minutes(s, old + new))
    figures = scrape()
    assert figures["claim_contention_ratio",] == 0.25
    assert figures["claims_total",] == 108


def test_clock_that_is_behind_its_mark_shows():
    from jobs.ledger import epoch

    ledger(epoch.mark_clock, at(130))
    assert scrape()["clock_behind_seconds",] == 30
    assert scrape(at(131))["clock_behind_seconds",] == 0


def test_scrape_costs_the_same_however_many_jobs_there_are():
    def statements():
        with CaptureQueriesContext(connection) as captured:
            scrape()
        return len(captured)

    enqueue()
    few = statements()
    Job.objects.enqueue_many([(KIND, {}, None)] * 300, now=at(0))
    assert statements() == few < 30


def test_every_metric_is_explained_and_nothing_else():
    """docs/metrics.md names each family that is exposed; its type and sentence are the exposition's own."""
    rows = [
        line.split("|")[1].strip().strip("`")
        for line in (ROOT / "docs/metrics.md").read_text("utf-8").splitlines()
        if line.startswith("| `interlock_")
    ]
    names = {family.name for family in text_string_to_metric_families(metrics.exposition(now=at(0)).decode())}
    assert len(rows) == len(set(rows))
    assert {row.partition("{")[0].removesuffix("_total") for row in rows} == names


def test_silence_begins_after_ninety_seconds():
    register("h:1:a", at(0))
    assert scrape(at(90))["workers", "live"] == 1
    assert scrape(at(90) + timedelta(microseconds=1))["workers", "silent"] == 1


def test_retries_and_last_failures_are_told_by_who_ended_the_attempt():
    measures.count("retries", 5)
    measures.count("failed", 2)
    measures.count("recovered.pending", 3, queue="a", kind="k")
    measures.count("recovered.pending", 4, queue="b", kind="k")
    measures.count("recovered.failed", 1, queue="b", kind="k")
    flush()
    figures = scrape()
    assert (figures["retries_total", "worker"], figures["retries_total", "recovery"]) == (5, 7)
    assert (figures["failed_total", "worker"], figures["failed_total", "recovery"]) == (2, 1)
