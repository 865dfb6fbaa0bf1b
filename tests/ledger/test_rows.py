"""Rows come as the driver gives them, whatever was asked for."""

import pytest
from django.db.models import Value
from django.db.models.functions import Concat, Upper

from jobs.ledger.epochs import Epoch
from jobs.ledger.rows import fetch
from jobs.models import Job
from tests import build

pytestmark = pytest.mark.django_db


def test_texts_numbers_and_instants_are_what_django_reads():
    for number in range(3):
        build.enqueue(label=f"50 % of {number}", priority=number)
    jobs = Job.objects.filter(label__icontains="50 % of").order_by("priority")
    found = fetch(jobs.values_list(Upper(Concat("label", Value("%"))), "priority", Epoch("created_at")))
    assert [row[:2] for row in found] == [(f"50 % OF {number}%", number) for number in range(3)]
    for row, job in zip(found, jobs, strict=True):
        assert row[2] == pytest.approx(job.created_at.timestamp(), abs=0.001)


def test_what_is_null_is_none_and_a_slice_is_a_slice():
    for _ in range(3):
        build.enqueue()
    values = Job.objects.order_by("id").values_list("unique_key", "finished_at")
    assert fetch(values[:2]) == [(None, None)] * 2


def test_what_nothing_can_match_has_no_rows():
    build.enqueue()
    assert fetch(Job.objects.none().values_list("id")) == []
    assert fetch(Job.objects.filter(id__in=[]).values_list("id")) == []
