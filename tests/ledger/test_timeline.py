"""Another life of the database: claims close and verbs say TIMELINE, until a raise with a floor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import connection

from jobs.ledger import timeline
from jobs.models import AuditEntry, FenceRefusal, Job, Scheduler
from jobs.outcomes import Refused
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Word
from jobs.vocabulary import JOB
from tests import build
from tests.build import KIND, QUEUE, RIVAL, at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "failover"}


@pytest.fixture
def _tells(db):
    if timeline.read("default") == "":
        pytest.skip("this database does not tell which of its lives this is")


def be_another(text: str = "1/1/00000001") -> None:
    """Let what was stored be what another database had."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_scheduler SET timeline = %s", [text])
    timeline.forget("default")


def test_what_cannot_be_read_is_never_taken_for_another_database():
    assert timeline.same("", "1/2/3")
    assert timeline.same("1/2/3", "-/2/-")
    assert not timeline.same("1/2/3", "-/2/4")


def test_a_database_that_does_not_tell_refuses_nothing():
    if timeline.read("default") != "":
        pytest.skip("this database tells")
    be_another()
    assert build.running()
    assert V.know_timeline(actor="w")
    assert Scheduler.objects.get().timeline == "1/1/00000001"


@pytest.mark.usefixtures("_tells")
def test_first_worker_stores_it_and_the_next_finds_it_the_same():
    timeline.forget("default")
    assert V.know_timeline(actor="w")
    assert Scheduler.objects.get().timeline == timeline.read("default")
    assert V.know_timeline(actor="v")
    assert Scheduler.objects.get().claims_open


@pytest.mark.usefixtures("_tells")
def test_another_database_closes_claims_once_and_refuses_every_authorising_verb():
    lease, ready = build.running(), build.enqueue()
    be_another()
    assert V.know_timeline(actor="w") is False
    row = Scheduler.objects.get()
    assert (row.claims_open, row.reason, row.changed_by) == (False, "timeline", "w")
    assert V.know_timeline(actor="v") is False
    assert AuditEntry.objects.filter(action="close_claims").count() == 1
    before = build.row(lease)
    for answer in (
        V.renew(lease, now=at(1)),
        V.stage(lease, 1, now=at(1)),
        V.commit(lease, 1, now=at(1)),
        V.fail(lease, "RUNTIME_HANDLER_EXCEPTION", now=at(1)),
        V.release(lease, now=at(1)),
    ):
        assert (answer.landed, answer.reason) == (False, "TIMELINE")
    kept = FenceRefusal.objects.filter(job_id=build.id_of(lease), reason="TIMELINE").order_by("id")
    assert list(kept.values_list("point", flat=True)) == ["renew", "stage", "commit", "fail", "release"]
    nothing: Any = None  # not even looked at
    gate = EffectRuntime(JOB).grant_again(lease, nothing, nothing, grant_id=None, now=at(1))
    assert gate.word is Word.REFUSED
    assert gate.outcome is not None
    assert gate.outcome.reason == "TIMELINE"
    assert V.claim(worker_id=RIVAL, queues=[QUEUE], kinds=[KIND], now=at(1)) == []
    assert V.claim_job(ready, worker_id=RIVAL, now=at(1)) is None
    assert build.row(lease) == before
    with pytest.raises(Refused) as refused:
        V.open_claims(**BY, now=at(2))
    assert refused.value.code == "TIMELINE_MOVED"


@pytest.mark.usefixtures("_tells")
def test_only_a_raise_with_a_floor_takes_this_database_for_the_one():
    lease, ready = build.running(), build.enqueue()
    be_another()
    V.raise_epoch(expected=1, **BY, now=at(1))
    assert timeline.moved("default")
    V.raise_epoch(expected=2, floor=8, **BY, now=at(2))
    assert Scheduler.objects.get().timeline == timeline.read("default")
    assert V.commit(lease, 1, now=at(3)).reason == "EPOCH"
    V.open_claims(**BY, now=at(4))
    assert V.claim_job(ready, worker_id=RIVAL, now=at(5))


@pytest.fixture
def _noted(db) -> Iterator[None]:
    """A file whose clock's mark has been noted beside it."""
    if connection.vendor != "sqlite":
        pytest.skip("this database tells by itself")
    mark(0)
    timeline.note("default")
    timeline.forget("default")
    yield
    timeline.forget_note("default")


def mark(seconds: float | None) -> None:
    Scheduler._base_manager.update(clock_high_water=None if seconds is None else at(seconds))
    timeline.forget("default")


@pytest.mark.usefixtures("_noted")
def test_an_older_copy_of_a_file_is_another_database_until_a_raise_with_a_floor():
    assert not timeline.moved("default")
    lease, ready = build.running(), build.enqueue()
    mark(-1)  # as it was a second before
    assert V.know_timeline(actor="w") is False
    assert V.commit(lease, 1, now=at(1)).reason == "TIMELINE"
    assert V.claim_job(ready, worker_id=RIVAL, now=at(1)) is None
    V.raise_epoch(expected=1, **BY, now=at(2))
    assert timeline.moved("default")
    V.raise_epoch(expected=2, floor=8, **BY, now=at(3))
    V.open_claims(**BY, now=at(4))
    assert V.claim_job(ready, worker_id=RIVAL, now=at(5))


@pytest.mark.usefixtures("_noted")
@pytest.mark.parametrize("seconds", [0, 1, None])
def test_a_file_that_is_no_older_than_its_note_is_the_same(seconds):
    mark(seconds)
    assert not timeline.moved("default")


@pytest.mark.usefixtures("_noted")
def test_without_a_note_or_where_none_can_be_written_nothing_is_told():
    mark(70)
    with mock.patch.object(Path, "write_text", side_effect=OSError):
        timeline.note("default")
    assert not timeline.moved("default")
    timeline.forget_note("default")
    mark(-1)
    assert not timeline.moved("default")


@pytest.mark.usefixtures("_tells")
def test_connection_is_asked_once(django_assert_num_queries):
    timeline.forget("default")
    with django_assert_num_queries(1):  # and once in a connection's life for its rights
        assert not timeline.moved("default")
    with django_assert_num_queries(0):
        assert not timeline.moved("default")
