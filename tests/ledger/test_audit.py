"""The audit chain: who changes it without the key is found out; an operation stands with its entry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from threading import Event
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from jobs import audit, chain, seals
from jobs.chain import Fault
from jobs.models import Job
from jobs.models.audit import AuditEntry, AuditHead, Source
from jobs.outcomes import Refused
from jobs.status import JobStatus
from tests import build
from tests.build import at

pytestmark = pytest.mark.django_db
V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "because"}


def _append(number: int = 1, **given: Any) -> None:
    for index in range(number):
        known: dict[str, Any] = {
            "action": "cancel",
            "actor": "ann",
            "object_type": "job",
            "object_id": f"j{index}",
            "reason": "because",
            "source": Source.COMMAND,
            "before": {"status": "pending"},
            "after": {"status": "cancelled"},
        }
        with transaction.atomic():
            audit.append("default", **known | given)


def _sql(text: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)


def _faults(anchors: Iterable[str] = ()) -> list[tuple[str, int]]:
    report = chain.verify("default", anchors)
    assert report.ok is not bool(report.findings)
    assert all(finding.sentence() for finding in report.findings)
    return [(finding.fault.value, finding.seq) for finding in report.findings]


def _last() -> AuditEntry:
    entry = AuditEntry.objects.order_by("-seq").first()
    assert entry is not None
    return entry


# -- the chain ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 3, 7, 8])
def test_chain_is_whole_however_it_is_paged(page, monkeypatch):
    monkeypatch.setattr(chain, "PAGE", page)
    _append(7)
    report = chain.verify("default")
    assert (report.findings, report.entries, report.last) == ([], 7, 7)
    head = AuditHead.objects.get()
    assert (head.seq, head.hash) == (7, _last().hash)


def test_chain_without_entries_is_whole():
    assert _faults() == []


def test_every_column_is_under_the_seal():
    assert {field.name for field in AuditEntry._meta.concrete_fields} == set(chain.FIELDS)


def test_seal_is_what_the_document_says():
    """Computed here once more from scratch, so that an archive can be verified without this product."""
    import hmac

    _append(2)
    first, second = AuditEntry.objects.order_by("seq")
    fields = {name: getattr(second, name) for name in chain.FIELDS if name != "hash"}
    fields |= {"seq": "2", "at": second.at.isoformat(timespec="microseconds")}
    text = first.hash + json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    mac = hmac.new(settings.AUDIT_KEY.encode(), text.encode(), hashlib.sha256)
    assert (second.prev_hash, second.hash) == (first.hash, mac.hexdigest())


def test_texts_are_bounded_and_secrets_are_masked():
    _append(
        actor="a" * 500,
        reason="password=hunter22 " + "x" * 2000,
        before={"token": "hunter22", "n": 1},
        after={"long": "y" * 100_000},
        object_id="bad\x00\x1b[31m",
    )
    entry = _last()
    assert (len(entry.actor), entry.reason[:12], len(entry.reason)) == (150, "password=•••", 995)
    assert "hunter22" not in entry.reason + entry.before
    assert json.loads(entry.after)["bytes"] > 100_000
    assert "\x1b" not in entry.object_id
    assert _faults() == []


def test_rolled_back_operation_leaves_no_entry_and_no_gap():
    _append(2)
    with transaction.atomic():
        audit.append("default", action="x", **_object(), source=Source.API)
        assert _last().seq == 3
        transaction.set_rollback(True)
    assert _last().seq == 2
    _append()
    assert _last().seq == 3
    assert _faults() == []


def _object() -> dict[str, Any]:
    return {**BY, "object_type": "job", "object_id": "1"}


@pytest.mark.django_db(transaction=True)
def test_append_outside_a_transaction_is_refused():
    with pytest.raises(audit.OutsideTransaction):
        audit.append("default", action="x", **_object(), source=Source.API)
    assert not AuditEntry.objects.exists()


def test_nobody_operates_without_a_head():
    with build.unguarded():
        _sql("DELETE FROM jobs_audithead")
    job_id = build.enqueue()
    with pytest.raises(audit.HeadMissing), build.savepoint():
        V.hold(job_id, **BY, now=at(1))
    assert build.row(job_id)["hold_reason"] == ""
    assert _faults() == [("head_missing", 0)]


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
    assert _faults() == []


def _someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_key_is_not_in_the_database():
    _append(3, reason=f"the key is not {settings.AUDIT_KEY[:4]}")
    V.raise_epoch(expected=build.epoch(), **BY, now=at(1))
    for model in apps.get_app_config("jobs").get_models():
        assert settings.AUDIT_KEY not in repr(list(model._default_manager.values())), model


def test_chain_outlives_the_rotation_of_its_key(settings):
    _append(2)
    old, settings.AUDIT_KEY = settings.AUDIT_KEY, "n" * 40
    assert [fault for fault, _ in _faults()] == ["unknown_key", "unknown_key"]
    settings.AUDIT_OLD_KEYS = [old]
    _append(2)
    assert _faults() == []
    assert AuditEntry.objects.get(seq=1).key_id == seals.key_id(old)
    assert _last().key_id == seals.key_id("n" * 40)


# -- tampering, by somebody who owns the database: the triggers are gone ---------------------------------

OTHER: dict[str, Any] = {
    "at": "2020-01-01 00:00:00+00",
    "before": "{}",
    "after": "{}",
    "source": "automatic",
    "prev_hash": "f" * 64,
    "hash": "e" * 64,
    "key_id": "00000000",
}


@pytest.mark.parametrize("seq", [2, 4, 7], ids=["first page", "middle", "last"])
@pytest.mark.parametrize("column", [name for name in chain.FIELDS if name != "seq"])
def test_edit_of_any_column_of_any_entry_is_detected(column, seq, monkeypatch):
    monkeypatch.setattr(chain, "PAGE", 3)
    _append(7, user="ann", request_id="r1", snapshot="s1", approver="bob")
    with build.unguarded():
        _sql(f'UPDATE jobs_auditentry SET "{column}" = %s WHERE seq = %s', OTHER.get(column, "other"), seq)
    found = _faults()
    assert seq in {place for _, place in found}
    kind = {"prev_hash": "out_of_place", "key_id": "unknown_key"}.get(column, "edited")
    assert (kind, seq) in found


def _forge(seq: int, previous: str = "") -> str:
    """Return the text of an INSERT by somebody who knows everything but the key."""
    columns = ", ".join(f'"{name}"' for name in chain.FIELDS)
    picks = {"seq": str(seq), "actor": "'mallory'", "hash": f"'{'a' * 64}'"}
    if previous:
        picks["prev_hash"] = previous
    values = ", ".join(picks.get(name, f'"{name}"') for name in chain.FIELDS)
    return f"INSERT INTO jobs_auditentry ({columns}) SELECT {values} FROM jobs_auditentry WHERE seq = 2"


def _hash_of(seq: int) -> str:
    return f"(SELECT e.hash FROM jobs_auditentry e WHERE e.seq = {seq})"


def _renumber(old: int, new: int) -> str:
    return f"UPDATE jobs_auditentry SET seq = {new} WHERE seq = {old}"


def _head_to(seq: int) -> str:
    return f"UPDATE jobs_audithead SET seq = {seq}, hash = {_hash_of(seq)}"


TAMPERED: list[tuple[str, list[str], set[tuple[str, int]]]] = [
    ("delete the first", ["DELETE FROM jobs_auditentry WHERE seq = 1"], {("missing", 1)}),
    ("delete one", ["DELETE FROM jobs_auditentry WHERE seq = 4"], {("missing", 4)}),
    ("delete three", ["DELETE FROM jobs_auditentry WHERE seq BETWEEN 3 AND 5"], {("missing", 3)}),
    (
        "delete one and close the gap",
        [
            "DELETE FROM jobs_auditentry WHERE seq = 4",
            *[_renumber(n, n - 1) for n in (5, 6, 7)],
            _head_to(6),
        ],
        {("out_of_place", 4), ("edited", 5), ("edited", 6)},
    ),
    (
        "delete one, close the gap and link over it",
        [
            "DELETE FROM jobs_auditentry WHERE seq = 4",
            *[_renumber(n, n - 1) for n in (5, 6, 7)],
            f"UPDATE jobs_auditentry SET prev_hash = {_hash_of(3)} WHERE seq = 4",
            _head_to(6),
        ],
        {("edited", 4), ("edited", 5), ("edited", 6)},
    ),
    (
        "reorder two",
        [_renumber(3, 99), _renumber(4, 3), _renumber(99, 4)],
        {("out_of_place", 3), ("out_of_place", 4), ("out_of_place", 5)},
    ),
    (
        "exchange the contents of two",
        [
            "UPDATE jobs_auditentry SET object_id = 'tmp' WHERE seq = 3",
            "UPDATE jobs_auditentry SET object_id = 'j2' WHERE seq = 4",
            "UPDATE jobs_auditentry SET object_id = 'j3' WHERE seq = 3",
        ],
        {("edited", 3), ("edited", 4)},
    ),
    (
        "insert in the middle and renumber",
        [*[_renumber(n, n + 1) for n in (7, 6, 5)], _forge(5, _hash_of(4)), _head_to(8)],
        {("edited", 5), ("out_of_place", 6), ("edited", 7), ("edited", 8)},
    ),
    ("insert at the end", [_forge(8, _hash_of(7))], {("edited", 8), ("head_differs", 7)}),
    ("insert at the end, head and all", [_forge(8, _hash_of(7)), _head_to(8)], {("edited", 8)}),
    ("insert far beyond", [_forge(20)], {("missing", 8), ("edited", 20), ("head_differs", 7)}),
    (
        "replace one",
        ["DELETE FROM jobs_auditentry WHERE seq = 4", _forge(4, _hash_of(3))],
        {("edited", 4), ("out_of_place", 5)},
    ),
    ("copy one", [_forge(8).replace("'mallory'", "actor")], {("out_of_place", 8), ("head_differs", 7)}),
    ("truncate the tail", ["DELETE FROM jobs_auditentry WHERE seq > 4"], {("truncated", 5)}),
    ("truncate the last", ["DELETE FROM jobs_auditentry WHERE seq = 7"], {("truncated", 7)}),
    ("empty it", ["DELETE FROM jobs_auditentry"], {("truncated", 1)}),
    ("move the head back", [_head_to(5)], {("head_differs", 5)}),
    ("move the head on", ["UPDATE jobs_audithead SET seq = 9"], {("truncated", 8)}),
    ("change the head's seal", [f"UPDATE jobs_audithead SET hash = '{'b' * 64}'"], {("head_differs", 7)}),
    ("delete the head", ["DELETE FROM jobs_audithead"], {("head_missing", 7)}),
]


@pytest.mark.parametrize("page", [2, 500])
@pytest.mark.parametrize(("statements", "expected"), [t[1:] for t in TAMPERED], ids=[t[0] for t in TAMPERED])
def test_tampering_is_detected_and_every_fault_named(statements, expected, page, monkeypatch):
    monkeypatch.setattr(chain, "PAGE", page)
    _append(7)
    with build.unguarded():
        for statement in statements:
            _sql(statement)
    assert set(_faults()) == expected


CUT: list[tuple[str, list[str]]] = [
    ("the tail and the head", ["DELETE FROM jobs_auditentry WHERE seq > 4", _head_to(4)]),
    ("everything", ["DELETE FROM jobs_auditentry", "UPDATE jobs_audithead SET seq = 0, hash = ''"]),
]


@pytest.mark.parametrize("statements", [c[1] for c in CUT], ids=[c[0] for c in CUT])
def test_tail_cut_off_with_its_head_is_found_by_an_anchor_and_by_nothing_else(statements):
    _append(6)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        for statement in statements:
            _sql(statement)
    assert _faults() == [], "what docs/audit.md says cannot be told without an anchor"
    assert [fault for fault, _ in _faults(anchors)] == ["truncated"]
    _append(4)
    found = _faults(anchors)
    assert found, "grown again beyond the anchor"
    assert {fault for fault, _ in found} <= {"anchor_differs", "truncated"}


def test_anchored_entry_that_was_deleted_from_the_middle_is_found_twice():
    _append(5)
    anchors = [chain.anchor("default").line()]
    _append(2)
    with build.unguarded():
        _sql("DELETE FROM jobs_auditentry WHERE seq = 5")
    assert _faults(anchors) == [("missing", 5), ("anchor_differs", 5)]


def test_chain_written_anew_by_somebody_who_stole_the_key_is_found_by_an_anchor():
    _append(5)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        _sql("DELETE FROM jobs_auditentry")
        _sql("UPDATE jobs_audithead SET seq = 0, hash = ''")
    _append(8, actor="mallory")
    assert _faults() == []
    assert _faults(anchors) == [("anchor_differs", 5)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_auditentry SET at = 'yesterday' WHERE seq = 4",
        "UPDATE jobs_auditentry SET at = 5 WHERE seq = 4",
        "UPDATE jobs_auditentry SET reason = CAST(X'ff' AS TEXT) WHERE seq = 4",
        "UPDATE jobs_auditentry SET reason = X'00' WHERE seq = 4",
        "UPDATE jobs_auditentry SET before = 5 WHERE seq = 4",
        "UPDATE jobs_auditentry SET seq = 'four' WHERE seq = 4",
        "UPDATE jobs_auditentry SET seq = 3.5 WHERE seq = 4",
        "UPDATE jobs_auditentry SET hash = X'01' WHERE seq = 4",
    ],
)
def test_value_of_another_type_is_a_fault_and_no_crash(statement):
    if connection.vendor != "sqlite":
        pytest.skip("columns have types here")
    from jobs.ledger import triggers

    _append(6)
    triggers.lift("default")
    _sql("PRAGMA ignore_check_constraints = ON")
    _sql(statement)
    _sql("PRAGMA ignore_check_constraints = OFF")
    triggers.lay("default")
    assert _faults()


def test_number_that_stands_twice_is_detected(monkeypatch):
    """Somebody has taken the primary key away, and the page ends between the two."""
    if connection.vendor == "sqlite":
        pytest.skip("the primary key cannot be taken away")
    monkeypatch.setattr(chain, "PAGE", 3)
    _append(5)
    with build.unguarded():
        _sql("ALTER TABLE jobs_auditentry DROP CONSTRAINT jobs_auditentry_pkey CASCADE")
        _sql(_forge(3))
    assert ("out_of_place", 0) in _faults()


# -- anchors ------------------------------------------------------------------------------------------


def _changed(line: str, **parts: Any) -> str:
    return json.dumps(json.loads(line) | parts)


FORGED: list[Callable[[str], str]] = [
    lambda line: _changed(line, seq=2),
    lambda line: _changed(line, hash="0" * 64),
    lambda line: _changed(line, at="2020-01-01T00:00:00+00:00"),
    lambda line: _changed(line, mac="0" * 64),
    lambda line: _changed(line, seq="3"),
    lambda line: _changed(line, more=1),
    lambda line: line[:-3],
    lambda _line: "[]",
    lambda _line: '{"seq": 1}',
    lambda _line: "\ud800",
]


@pytest.mark.parametrize("forge", FORGED)
def test_anchor_that_was_touched_is_a_fault(forge):
    _append(3)
    line = chain.anchor("default").line()
    assert _faults([line, "", line]) == []
    report = chain.verify("default", [line, forge(line)])
    assert [(f.fault, f.line) for f in report.findings] == [(Fault.ANCHOR_FORGED, 2)]


def test_seal_of_an_entry_is_no_seal_of_an_anchor():
    _append(3)
    entry = _last()
    line = json.dumps({"seq": 3, "hash": entry.hash, "at": "x", "key_id": entry.key_id, "mac": entry.hash})
    assert _faults([line]) == [("anchor_forged", 3)]


def test_nothing_broken_is_anchored():
    _append(3)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        _sql("DELETE FROM jobs_auditentry WHERE seq = 3")
        with pytest.raises(chain.NothingToAnchor):
            chain.anchor("default")
        _sql(_head_to(2))
    assert chain.anchor("default").seq == 2
    with pytest.raises(chain.NothingToAnchor):
        chain.anchor("default", anchors)
    _append(2)
    with pytest.raises(chain.NothingToAnchor):
        chain.anchor("default", anchors)


# -- the database refuses -------------------------------------------------------------------------------

REFUSED = [
    "UPDATE jobs_auditentry SET actor = 'mallory' WHERE seq = 1",
    "UPDATE jobs_auditentry SET actor = actor",
    "DELETE FROM jobs_auditentry WHERE seq = 3",
    "DELETE FROM jobs_auditentry",
    _forge(4),
    _forge(9),
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
    _append(3)
    says = "syntax error" if statement.startswith("TRUNCATE") and connection.vendor == "sqlite" else "audit"
    with pytest.raises(DatabaseError, match=says), build.savepoint():
        _sql(statement)
    assert _faults() == []


def test_entry_of_another_seal_than_its_head_is_refused():
    _append(3)
    _sql(f"UPDATE jobs_audithead SET seq = 4, hash = '{'b' * 64}'")
    with pytest.raises(DatabaseError, match="audit"), build.savepoint():
        _sql(_forge(4, _hash_of(3)))
    assert _faults() == [("truncated", 4)]


# -- operations -----------------------------------------------------------------------------------------


def _told() -> tuple[str, str, Any, Any]:
    entry = _last()
    assert (entry.actor, entry.reason) == ("ann", "because")
    assert _faults() == []
    return entry.action, entry.object_type, json.loads(entry.before), json.loads(entry.after)


def test_cancel_of_a_family_is_one_entry_that_names_its_descendants():
    parent = build.enqueue()
    child = build.enqueue(parent_id=parent)
    assert V.cancel(parent, **BY, now=at(1)) == JobStatus.CANCELLED
    action, kind, before, after = _told()
    assert (action, kind, _last().object_id) == ("cancel", "job", str(parent))
    assert (before["status"], after["status"]) == ("pending", "cancelled")
    assert after["descendants_named"] == {str(child): "cancelled"}
    assert AuditEntry.objects.count() == 1
    V.cancel(parent, **BY, now=at(2))
    assert AuditEntry.objects.count() == 1, "a second request changes nothing"


def test_every_verb_of_a_person_leaves_an_entry_with_before_and_after():
    lease = build.running()
    job_id = build.id_of(lease)

    def version() -> int:
        return int(build.row(job_id)["state_version"])

    V.revise(job_id, {"x": 2}, state_version=version(), **BY, now=at(2))
    action, _, before, after = _told()
    assert (action, before["revision"], after["revision"]) == ("revise", 1, 2)
    assert before["input_digest"] != after["input_digest"]
    V.hold(job_id, **BY, now=at(3))
    assert _told()[0] == "hold"
    assert (_told()[2]["hold_reason"], _told()[3]["hold_reason"]) == ("", "operator")
    V.hold(job_id, **BY, now=at(3))
    assert AuditEntry.objects.count() == 2
    V.unhold(job_id, **BY, now=at(4))
    assert (_told()[0], _told()[3]["hold_reason"]) == ("unhold", "")
    V.cancel(job_id, **BY, now=at(5))
    assert (_told()[0], _told()[3]["cancel_requested"]) == ("cancel", True)
    V.force_cancel(job_id, state_version=version(), **BY, now=at(6))
    action, _, before, after = _told()
    assert (action, before["status"], after["status"]) == ("force_cancel", "running", "cancelled")
    assert after["claim_generation"] == before["claim_generation"] + 1
    V.retry(job_id, state_version=version(), **BY, now=at(7))
    assert (_told()[0], _told()[3]["status"]) == ("retry", "pending")
    assert [e.object_id for e in AuditEntry.objects.all()] == [str(job_id)] * 6


def test_every_verb_on_the_cluster_leaves_an_entry():
    V.close_claims(**BY, now=at(1))
    assert (_told()[0], _told()[2]["claims_open"], _told()[3]["claims_open"]) == ("close_claims", True, False)
    V.open_claims(**BY, now=at(2))
    assert _told()[:2] == ("open_claims", "scheduler")
    epoch = build.epoch()
    V.raise_epoch(expected=epoch, **BY, now=at(3))
    assert (_told()[0], _told()[2]["epoch"], _told()[3]["epoch"]) == ("raise_epoch", epoch, epoch + 1)
    V.pause_queue("mail", **BY, until=at(90), now=at(4))
    action, kind, before, after = _told()
    assert (action, kind, _last().object_id, before) == ("pause_queue", "queue", "mail", {})
    assert after == {
        "paused_at": at(4).isoformat(),
        "paused_until": at(90).isoformat(),
        "paused_by": "ann",
    }
    V.resume_queue("mail", **BY, now=at(5))
    assert (_told()[0], _told()[3]["paused_at"]) == ("resume_queue", None)
    assert _told()[2] == after
    assert V.resume_queue("mail", **BY, now=at(6)) is False
    assert AuditEntry.objects.count() == 5


def test_refused_operation_and_rolled_back_operation_leave_no_entry():
    job_id = build.enqueue()
    with pytest.raises(Refused):
        V.hold(job_id, **BY, state_version=9, now=at(1))
    with transaction.atomic():
        assert V.hold(job_id, **BY, now=at(1))
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()
    assert AuditHead.objects.get().seq == 0


def test_entry_tells_the_door_and_what_was_known_there():
    job_id = build.enqueue()
    known = {"user": "ann", "request_id": "r", "snapshot": "5" * 64, "approver": "bob"}
    with audit.through(Source.CONSOLE, **known):
        V.hold(job_id, **BY, now=at(1))
    entry = _last()
    assert (entry.source, {name: getattr(entry, name) for name in known}) == ("console", known)
    V.unhold(job_id, **BY, now=at(2))
    assert (_last().source, _last().user) == ("automatic", "")


# -- the command ----------------------------------------------------------------------------------------


def _run(*arguments: object) -> tuple[int, str]:
    out, errors, code = StringIO(), StringIO(), 0
    try:
        call_command("audit", *map(str, arguments), stdout=out, stderr=errors)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue() + errors.getvalue()


def test_command_verifies_anchors_and_notes_the_outcome(tmp_path):
    _append(3)
    place = tmp_path / "anchors"
    code, out = _run("verify")
    assert (code, "whole: 3" in out, "anchor" in out) == (0, True, True)
    assert _run("anchor", "--file", place)[0] == 0
    _append(2)
    code, line = _run("anchor", "--file", place)
    assert (code, place.read_text().splitlines()[1], json.loads(line)["seq"]) == (0, line.strip(), 5)
    code, out = _run("verify", "--anchors", place, "--json")
    assert (code, json.loads(out)["newest_anchor"], json.loads(out)["anchors"]) == (0, 5, 2)
    assert (AuditHead.objects.get().checked_ok, AuditHead.objects.get().checked_seq) == (True, 5)
    with build.unguarded():
        _sql("DELETE FROM jobs_auditentry WHERE seq > 4")
        _sql(_head_to(4))
    assert _run("verify")[0] == 0
    code, out = _run("verify", "--anchors", place)
    assert (code, "5 to 5 are missing at the end" in out, "BROKEN" in out) == (1, True, True)
    assert AuditHead.objects.get().checked_ok is False
    assert _run("anchor", "--file", place)[0] == 1
    assert len(place.read_text().splitlines()) == 2


def test_command_answers_wrong_usage_with_two(tmp_path):
    assert _run("verify", "--anchors", tmp_path / "none")[0] == 2
    assert _run("anchor", "--file", tmp_path / "no" / "where")[0] == 2


def test_command_lists_by_object_and_actor_and_harmlessly():
    _append(3)
    _append(actor="bob\x9b31m", object_type="queue", object_id="mail:x")
    code, out = _run("list")
    assert (code, len(out.splitlines()), "\x9b" in out) == (0, 4, False)
    assert out.split()[0] == "4"
    assert "cancel job:j1" in _run("list", "--object", "job:j1")[1]
    assert len(_run("list", "--actor", "ann", "--limit", 2)[1].splitlines()) == 2
    code, out = _run("list", "--object", "queue:mail:x", "--json")
    assert [entry["seq"] for entry in json.loads(out)["entries"]] == [4]


def test_cancel_through_the_api_is_told_so():
    from tests.api.caller import EVERY_SCOPE, Api, secret

    job_id = build.enqueue()
    answer = Api(secret(*EVERY_SCOPE)).send({"reason": "wrong letter"}, f"/jobs/{job_id}/cancel")
    assert answer.status_code == 200
    entry = _last()
    assert (entry.source, entry.user, entry.actor) == ("api", "owner", "owner by token ci")


def test_jobs_command_says_through_which_door(django_user_model):
    django_user_model.objects.create_superuser("root")
    job_id = build.enqueue()
    call_command("jobs", "hold", str(job_id), "--reason", "r", "--as", "root", stdout=StringIO())
    assert (_last().source, _last().user) == ("command", "root")
    assert _last().actor.startswith("root (shell: ")


def test_metrics_tell_what_the_last_verification_found():
    from jobs import metrics

    def figures() -> dict[str, str]:
        lines = metrics.exposition().decode().splitlines()
        return dict(line.split() for line in lines if line.startswith("interlock_audit"))

    _append(2)
    assert figures() == {"interlock_audit_entries": "2.0"}
    _run("verify")
    assert figures()["interlock_audit_chain_ok"] == "1.0"
    with build.unguarded():
        _sql("DELETE FROM jobs_auditentry WHERE seq = 1")
    _run("verify")
    assert figures()["interlock_audit_chain_ok"] == "0.0"
    assert float(figures()["interlock_audit_verified_age_seconds"]) < 60
