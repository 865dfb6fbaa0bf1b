"""The lists of the console and the API find their rows by the partial indexes."""

import pytest
from django.db import connection

from jobs.ledger import indexed
from jobs.models import EffectSlot, Job, Minute
from jobs.status import JobStatus
from tests import build

pytestmark = pytest.mark.django_db

READS = {
    "job_abnormal": lambda: indexed.abnormal(Job.objects.filter(status=JobStatus.FAILED)).order_by("-id"),
    "job_running": lambda: indexed.running(Job.objects.all()).order_by("-id"),
    "job_ready": lambda: indexed.ready(Job.objects.filter(queue="mail")).order_by(),
    "job_due": lambda: indexed.due(Job.objects.all()).order_by(),
    "job_held": lambda: indexed.held(Job.objects.all()).order_by("-id"),
    "minute_whole": lambda: indexed.whole(Minute.objects.filter(minute__gte=build.T0)).order_by(),
    "effect_open": lambda: indexed.open_effects(EffectSlot.objects.all()).order_by("changed_at"),
}


@pytest.mark.parametrize("name", READS)
def test_read_uses_its_index(name):
    if connection.features.has_select_for_update:
        pytest.skip("this database chooses by the sizes of tables; `make bench-console` has large ones")
    plan = READS[name]().values("pk")[:50].explain()
    assert name in plan, plan


def test_each_read_keeps_what_its_name_says():
    for status in JobStatus:
        build.job(status)
    waiting = build.enqueue(now=build.T0, delay=60)
    Job.objects.hold(build.enqueue(now=build.T0), actor="a", reason="r", now=build.T0)

    def statuses(jobs):
        return sorted(jobs.values_list("status", flat=True))

    everything = Job.objects.order_by()
    assert statuses(indexed.abnormal(everything)) == indexed.ABNORMAL
    assert statuses(indexed.running(everything)) == ["running"]
    assert statuses(indexed.ready(everything)) == ["pending"]
    assert statuses(indexed.due(everything)) == ["pending", "waiting"]
    assert waiting in indexed.due(everything).values_list("id", flat=True)
    assert statuses(indexed.held(everything)) == ["pending"]
    assert indexed.open_effects(EffectSlot.objects.all()).count() == 1
