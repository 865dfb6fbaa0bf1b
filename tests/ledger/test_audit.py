"""The audit chain: every entry is sealed with the one before it, and the database keeps it as it is."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from jobs import audit, chain, seals
from jobs.models import Job
from jobs.models.audit import AuditEntry, AuditHead, Source
from tests import build
from tests.build import at
from tests.ledger.chained import append, faults, forge, hash_of, last, sql

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "because"}


@pytest.mark.parametrize("page", [1, 3, 7, 8])
def test_chain_is_whole_however_it_is_paged(page, monkeypatch):
    monkeypatch.setattr(chain, "PAGE", page)
    append(7)
    report = chain.verify("default")
    assert (report.findings, report.entries, report.last) == ([], 7, 7)
    head = AuditHead.objects.get()
    assert (head.seq, head.hash) == (7, last().hash)


def test_chain_without_entries_is_whole():
    assert faults() == []


def test_every_column_is_under_the_seal():
    assert {field.name for field in AuditEntry._meta.concrete_fields} == set(chain.FIELDS)


def test_seal_is_what_the_document_says():
    """Computed here once more from scratch, so that an archive can be verified without this product."""
    import hmac

    append(2)
    first, second = AuditEntry.objects.order_by("seq")
    fields = {name: getattr(second, name) for name in chain.FIELDS if name != "hash"}
    fields |= {"seq": "2", "at": second.at.isoformat(timespec="microseconds")}
    text = first.hash + json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    mac = hmac.new(settings.AUDIT_KEY.encode(), text.encode(), hashlib.sha256)
    assert (second.prev_hash, second.hash) == (first.hash, mac.hexdigest())


def test_texts_are_bounded_and_secrets_are_masked():
    append(
        actor="a" * 500,
        reason="password=hunter22 " + "x" * 2000,
        before={"token": "hunter22", "n": 1},
        after={"long": "y" * 100_000},
        object_id="bad\x00\x1b[31m",
    )
    entry = last()
    assert (len(entry.actor), entry.reason[:12], len(entry.reason)) == (150, "password=•••", 995)
    assert "hunter22" not in entry.reason + entry.before
    assert json.loads(entry.after)["bytes"] > 100_000
    assert "\x1b" not in entry.object_id
    assert faults() == []


def test_rolled_back_operation_leaves_no_entry_and_no_gap():
    append(2)
    with transaction.atomic():
        audit.append("default", action="x", **_object(), source=Source.API)
        assert last().seq == 3
        transaction.set_rollback(True)
    assert last().seq == 2
    append()
    assert last().seq == 3
    assert faults() == []


def _object() -> dict[str, Any]:
    return {**BY, "object_type": "job", "object_id": "1"}


@pytest.mark.django_db(transaction=True)
def test_append_outside_a_transaction_is_refused():
    with pytest.raises(audit.OutsideTransaction):
        audit.append("default", action="x", **_object(), source=Source.API)
    assert not AuditEntry.objects.exists()


def test_nobody_operates_without_a_head():
    with build.unguarded():
        sql("DELETE FROM jobs_audithead")
    job_id = build.enqueue()
    with pytest.raises(audit.HeadMissing), build.savepoint():
        V.hold(job_id, **BY, now=at(1))
    assert build.row(job_id)["hold_reason"] == ""
    assert faults() == [("head_missing", 0)]


@pytest.mark.django_db(transaction=True)
def test_two_operations_at_once_make_one_chain_without_gaps():
    """The second waits for the first one's end, and goes on from it; with a rollback, from before it."""
    if not connection.features.has_select_for_update:
        pytest.skip("no row locks")
    for outcome in ("commit", "rollback"):
        holds, release = Event(), Event()

        def first(how: str = outcome, holds: Event = holds, release: Event = release) -> None:
            try:
                with transaction.atomic():
                    audit.append("default", action="first", **_object(), source=Source.API)
                    holds.set()
                    assert release.wait(20)
                    transaction.set_rollback(how == "rollback")
            finally:
                connection.close()

        def second() -> None:
            try:
                with transaction.atomic():
                    audit.append("default", action="second", **_object(), source=Source.API)
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(first)
            assert holds.wait(20)
            two = pool.submit(second)
            while not _someone_waits() and not two.done():
                pass
            assert not two.done(), "it did not wait for the head"
            release.set()
            one.result(20)
            two.result(20)
    actions = list(AuditEntry.objects.order_by("seq").values_list("seq", "action"))
    assert actions == [(1, "first"), (2, "second"), (3, "second")]
    times = list(AuditEntry.objects.order_by("seq").values_list("at", flat=True))
    assert times == sorted(times)
    assert faults() == []


def _someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_key_is_not_in_the_database():
    append(3, reason=f"the key is not {settings.AUDIT_KEY[:4]}")
    V.raise_epoch(expected=build.epoch(), **BY, now=at(1))
    for model in apps.get_app_config("jobs").get_models():
        assert settings.AUDIT_KEY not in repr(list(model._default_manager.values())), model


def test_chain_outlives_the_rotation_of_its_key(settings):
    append(2)
    old, settings.AUDIT_KEY = settings.AUDIT_KEY, "n" * 40
    assert [fault for fault, _ in faults()] == ["unknown_key", "unknown_key"]
    settings.AUDIT_OLD_KEYS = [old]
    append(2)
    assert faults() == []
    assert AuditEntry.objects.get(seq=1).key_id == seals.key_id(old)
    assert last().key_id == seals.key_id("n" * 40)


# -- the database refuses -------------------------------------------------------------------------------

REFUSED = [
    "UPDATE jobs_auditentry SET actor = 'mallory' WHERE seq = 1",
    "UPDATE jobs_auditentry SET actor = actor",
    "DELETE FROM jobs_auditentry WHERE seq = 3",
    "DELETE FROM jobs_auditentry",
    forge(4),
    forge(9),
    "UPDATE jobs_audithead SET seq = 2",
    "UPDATE jobs_audithead SET seq = 5",
    "UPDATE jobs_audithead SET hash = 'x'",
    "DELETE FROM jobs_audithead",
    "TRUNCATE jobs_auditentry",
    "TRUNCATE jobs_audithead",
    "TRUNCATE jobs_job, jobs_auditentry CASCADE",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_database_refuses(statement):
    append(3)
    says = "syntax error" if statement.startswith("TRUNCATE") and connection.vendor == "sqlite" else "audit"
    with pytest.raises(DatabaseError, match=says), build.savepoint():
        sql(statement)
    assert faults() == []


def test_entry_of_another_seal_than_its_head_is_refused():
    append(3)
    sql(f"UPDATE jobs_audithead SET seq = 4, hash = '{'b' * 64}'")
    with pytest.raises(DatabaseError, match="audit"), build.savepoint():
        sql(forge(4, hash_of(3)))
    assert faults() == [("truncated", 4)]
