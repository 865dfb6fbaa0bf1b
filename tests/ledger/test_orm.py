"""The ORM reads protocol tables and writes none: not by save, not by a query set, not by a fixture file."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.core.management import call_command

from jobs.models import Attempt, Job
from jobs.models.protected import LedgerOnly, Protected
from tests import build

MODELS = [m for m in apps.get_app_config("jobs").get_models() if issubclass(m, Protected)]

WRITES: dict[str, Any] = {
    "create": lambda q: q.create(),
    "update": lambda q: q.update(label="x"),
    "delete": lambda q: q.delete(),
    "bulk_create": lambda q: q.bulk_create([]),
    "bulk_update": lambda q: q.bulk_update([], []),
    "get_or_create": lambda q: q.get_or_create(),
    "update_or_create": lambda q: q.update_or_create(),
    "_raw_delete": lambda q: q._raw_delete("default"),
    "acreate": lambda q: q.acreate(),
    "aupdate": lambda q: q.aupdate(),
    "adelete": lambda q: q.adelete(),
    "abulk_create": lambda q: q.abulk_create([]),
    "abulk_update": lambda q: q.abulk_update([], []),
    "aget_or_create": lambda q: q.aget_or_create(),
    "aupdate_or_create": lambda q: q.aupdate_or_create(),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_query_set_writes_nothing(model, write):
    with pytest.raises(LedgerOnly):
        write(model._default_manager.all())


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_instance_is_neither_saved_nor_deleted(model):
    for write in (model().save, model().delete, model().save_base):
        with pytest.raises(LedgerOnly):
            write()


@pytest.mark.django_db
def test_what_hangs_on_a_job_is_not_written_through_it():
    job = Job.objects.get(pk=build.id_of(build.running()))
    for write in (
        lambda: job.attempts.create(),
        lambda: job.attempts.update(log="x"),
        lambda: job.effects.all().delete(),
        lambda: job.children.add(job, bulk=False),
    ):
        with pytest.raises(LedgerOnly):
            write()


@pytest.mark.django_db
def test_fixture_file_writes_nothing(tmp_path):
    lease = build.running()
    path = tmp_path / "rows.json"
    path.write_text(serializers.serialize("json", [Job.objects.get(), Attempt.objects.get()]))
    with pytest.raises(LedgerOnly):
        call_command("loaddata", path, verbosity=0)
    assert build.row(lease)["status"] == "running"


@pytest.mark.django_db
def test_refusal_says_what_to_do():
    with pytest.raises(LedgerOnly, match=r"use a verb of Job\.objects"):
        Job.objects.update(status="succeeded")
