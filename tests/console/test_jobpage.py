"""A job's page: what its effects are about, whose its attempts were, and what can be copied from it."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.urls import reverse

from jobs.ledger.clock import clock
from jobs.models import Job, Worker
from tests import build
from tests.console import matters

pytestmark = pytest.mark.django_db


def page(client, job_id):
    return client.get(reverse("admin:job", args=[build.id_of(job_id)])).content.decode()


def text_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_effect_says_what_it_is_about_for_how_much_and_to_whom(viewer):
    lease = build.running()
    build.effect(
        lease,
        status="committed",
        label="refund <b>INV-7</b>",
        amount=Decimal("4200.00"),
        currency="EUR",
        target="card …1234",
        reference="R-77120",
    )
    html = page(viewer, lease)
    effects = html.partition('id="ef"')[2].partition("</section>")[0]
    assert "refund &lt;b&gt;INV-7&lt;/b&gt;, <strong" in effects
    said = text_of(effects)
    for words in ("4,200.00 EUR", "tests.effect", "target card …1234", "reference R-77120"):
        assert words in said


def test_ids_keys_and_workers_can_be_copied_whole(viewer):
    lease = build.running(unique_key="account-7781")
    key = build.effect(lease, status="prepared", grants=0)
    html = page(viewer, lease)
    copied = re.findall(r'<button class="button plain copy noprint" type="button" data-copy="([^"]*)"', html)
    assert copied == [str(build.id_of(lease)), "account-7781", build.WORKER, key]
    assert "Copy the job’s id" in text_of(html)


def worker(worker_id, version, beat):
    build.register(worker_id)
    field = Worker._meta.get_field("beat_at")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_worker SET version = %s, beat_at = %s WHERE id = %s",
            [version, field.get_db_prep_save(beat, connection), worker_id],
        )


def test_attempt_says_the_version_of_its_worker_and_when_a_lost_one_was_last_heard_of(viewer):
    job_id = build.enqueue()
    build.claim(job_id)
    Job.objects.runtime.recover(limit=10, now=build.at(61))
    lease = build.claim(job_id, worker=build.RIVAL, now=build.at(70))
    assert Job.objects.commit(lease, {}, now=build.at(71)).landed
    assert "version" not in page(viewer, job_id).partition('id="at"')[2].partition("</section>")[0]
    worker(build.WORKER, "8.4.0", clock() - timedelta(minutes=7, seconds=3))
    worker(build.RIVAL, "8.4.1", clock())
    attempts = text_of(page(viewer, job_id).partition('id="at"')[2].partition("</section>")[0])
    newest, _, lost = attempts.partition("Attempt 1")
    assert "version 8.4.1" in newest
    assert "last heard of" not in newest
    assert "version 8.4.0" in lost
    assert "its worker was last heard of 7 min ago" in lost


def test_page_of_an_uncertain_job_names_its_effect_once_more_in_the_reason(viewer):
    case = matters.open_case()
    html = page(viewer, case.job_id)
    assert "The outcome of to acme (42.00 EUR) is unknown; a person must rule." in html
