"""What becomes of a failure: by its code's registry entry, whatever its name or message says."""

from __future__ import annotations

import pytest
from django.conf import settings

from jobs.admission import LONGEST_DELAY
from jobs.handlers import job
from jobs.models import EffectSlot, Job
from jobs.retry import Backoff
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects


def test_code_decides_and_not_the_message():
    lease = build.running()
    V.fail(lease, "HANDLER_CONTENT_FAILED", "a timeout, please retry; service unavailable", now=at(1))
    assert build.row(lease)["status"] == "failed"
    lease = build.running()
    V.fail(lease, "RENDER_SERVICE_UNAVAILABLE", "the content is invalid, do not retry", now=at(1))
    assert build.row(lease)["status"] == "pending"


def test_code_that_nobody_registered_is_not_retried():
    lease = build.running()
    V.fail(lease, "STRANGE_SERVICE_UNAVAILABLE", now=at(1))
    assert (build.row(lease)["status"], build.row(lease)["error_code"]) == (
        "failed",
        "STRANGE_SERVICE_UNAVAILABLE",
    )


@pytest.mark.parametrize("code", ["AI_RUN_CANCELLED", "AI_RUN_NOT_ACTIVE", "JOB_PREDECESSOR_CANCELLED"])
def test_code_of_the_cancel_family_makes_the_job_cancelled(code):
    """What the work belonged to is gone; nothing is wrong with the job."""
    lease = build.running()
    outcome = V.fail(lease, code, now=at(1))
    row = build.row(lease)
    assert (outcome.status, row["status"], row["error_code"]) == ("cancelled", "cancelled", code)
    assert (row["finished_at"], row["cancel_requested_at"]) == (at(1), None)
    assert build.attempt(lease)["status"] == "cancelled"
    assert V.fail(lease, code, now=at(2)).replay


def test_open_effect_keeps_a_job_that_would_be_cancelled_by_its_code():
    lease = build.running()
    build.effect(lease, status="executing", replay="queryable")
    assert V.fail(lease, "AI_RUN_CANCELLED", now=at(1)).status == "uncertain"


@pytest.mark.parametrize("count", [16, 46, 47, 63, 1074, 2000])
def test_job_that_failed_often_waits_the_cap_and_goes_on(count):
    @job("tests.often", backoff=Backoff(base=2, factor=10, cap=3600), max_attempts=10_000)
    def often(): ...

    job_id = V.enqueue("tests.often", {}, now=at(0)).job_id
    build.edit(job_id, attempt_count=count - 1)
    lease = build.claim(job_id)
    V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", "again", now=at(1))
    row = build.row(job_id)
    assert row["status"] == "pending"
    assert at(2) <= row["next_attempt_at"] <= at(3601)


def test_last_attempt_ends_with_its_own_code():
    lease = build.running(max_attempts=1)
    V.fail(lease, "RENDER_SERVICE_UNAVAILABLE", "down", now=at(1))
    row = build.row(lease)
    assert (row["status"], row["error_code"], row["error_message"]) == (
        "failed",
        "RENDER_SERVICE_UNAVAILABLE",
        "down",
    )


@pytest.mark.parametrize(
    ("after", "waits"),
    [(-5, 0), (0, 0), (0.5, 0.5), (1e300, LONGEST_DELAY), (float("inf"), LONGEST_DELAY), (float("nan"), 0)],
)
def test_delay_that_a_handler_asks_for_is_bounded(after, waits):
    lease = build.running()
    assert V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", retry_after=after, now=at(1)).status == "pending"
    assert build.row(lease)["next_attempt_at"] == at(1 + waits)


HOSTILE = "a\0b \ud800 \x1b[2J" + "\N{EURO SIGN}" * 9_000
ENDINGS = {
    "fail": lambda lease: V.fail(lease, "HANDLER_CONTENT_FAILED", HOSTILE, now=at(1)),
    "skip": lambda lease: V.skip(lease, "NOTHING_TO_DO", HOSTILE, now=at(1)),
    "uncertain": lambda lease: V.uncertain(lease, HOSTILE, reference=HOSTILE, now=at(1)),
}


@pytest.mark.parametrize("verb", ENDINGS)
def test_message_is_bounded_and_holds_nothing_that_a_database_or_a_terminal_chokes_on(verb):
    lease = build.running()
    assert ENDINGS[verb](lease).landed
    for text in (build.row(lease)["error_message"], build.attempt(lease)["error_message"]):
        assert not set(text) & set("\0\x1b\ud800")
        assert 0 < len(text.encode()) <= 2 * settings.INTERLOCK["ERROR_BYTES"] + 20


def test_secret_of_the_input_is_struck_from_what_is_kept():
    lease = build.claim(build.enqueue({"password": "S3CR3T-1"}))
    V.skip(lease, "NOTHING_TO_DO", "tried S3CR3T-1 in vain", now=at(1))
    assert build.row(lease)["error_message"] == "tried ••• in vain"


def test_reference_of_an_uncertain_effect_stands_where_a_person_looks_for_it():
    lease = build.running()
    V.uncertain(lease, "the bank did not answer", reference="TX-4711", now=at(1))
    assert EffectSlot.objects.get().reference == "TX-4711"
    assert build.row(lease)["error_message"] == "the bank did not answer (reference TX-4711)"
