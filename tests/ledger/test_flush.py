"""The suite's own ground: after a transactional test the database is as migrate left it."""

import pytest
from django.db import connection

from jobs.guards import guarding
from jobs.ledger import triggers
from jobs.models import AuditEntry, AuditHead, EffectSlot, Job, Scheduler
from tests import build, flush

pytestmark = pytest.mark.django_db(transaction=True)


def test_flush_leaves_nothing_of_what_the_triggers_keep(django_user_model):
    django_user_model.objects.create_user("someone")
    lease = build.running(now=build.T0)
    Job.objects.uncertain(lease, "no answer", now=build.at(1))
    Job.objects.raise_epoch(expected=1, actor="a", reason="r", claims_open=False, now=build.at(2))
    flush.empty("default")
    assert not Job.objects.exists()
    assert not EffectSlot.objects.exists()
    assert not django_user_model.objects.exists()
    scheduler = Scheduler.objects.get()
    head = AuditHead.objects.get()
    assert (head.seq, head.hash, AuditEntry.objects.count()) == (0, "", 0)
    assert (scheduler.epoch, scheduler.claims_open, scheduler.clock_high_water) == (1, True, None)


def test_triggers_are_there_again_after_the_flush():
    flush.empty("default")
    with connection.cursor() as cursor:
        assert len(triggers._present(cursor, connection.vendor)) == len(guarding(connection.vendor))


def test_flush_keeps_what_migrate_laid():
    from django.contrib.auth.models import Permission
    from django.contrib.contenttypes.models import ContentType

    before = Permission.objects.count()
    ContentType.objects.create(app_label="jobs", model="strange")
    flush.empty("default")
    assert Permission.objects.count() == before > 0
    assert not ContentType.objects.filter(model="strange").exists()


def test_flush_lays_again_what_a_test_deleted_of_it():
    from django.contrib.auth.models import Permission

    before = Permission.objects.count()
    Permission.objects.filter(codename="cancel_job").delete()
    flush.empty("default")
    assert Permission.objects.count() == before
