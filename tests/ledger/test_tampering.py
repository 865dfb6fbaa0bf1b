"""Somebody who owns the database and has no key changes the audit chain, and is found out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from jobs import chain
from jobs.chain import Fault
from tests import build
from tests.ledger.chained import append, faults, forge, hash_of, head_to, last, renumber, sql

pytestmark = pytest.mark.django_db


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
    append(7, user="ann", request_id="r1", snapshot="s1", approver="bob")
    with build.unguarded():
        sql(f'UPDATE jobs_auditentry SET "{column}" = %s WHERE seq = %s', OTHER.get(column, "other"), seq)
    found = faults()
    assert seq in {place for _, place in found}
    kind = {"prev_hash": "out_of_place", "key_id": "unknown_key"}.get(column, "edited")
    assert (kind, seq) in found


TAMPERED: list[tuple[str, list[str], set[tuple[str, int]]]] = [
    ("delete the first", ["DELETE FROM jobs_auditentry WHERE seq = 1"], {("missing", 1)}),
    ("delete one", ["DELETE FROM jobs_auditentry WHERE seq = 4"], {("missing", 4)}),
    ("delete three", ["DELETE FROM jobs_auditentry WHERE seq BETWEEN 3 AND 5"], {("missing", 3)}),
    (
        "delete one and close the gap",
        [
            "DELETE FROM jobs_auditentry WHERE seq = 4",
            *[renumber(n, n - 1) for n in (5, 6, 7)],
            head_to(6),
        ],
        {("out_of_place", 4), ("edited", 5), ("edited", 6)},
    ),
    (
        "delete one, close the gap and link over it",
        [
            "DELETE FROM jobs_auditentry WHERE seq = 4",
            *[renumber(n, n - 1) for n in (5, 6, 7)],
            f"UPDATE jobs_auditentry SET prev_hash = {hash_of(3)} WHERE seq = 4",
            head_to(6),
        ],
        {("edited", 4), ("edited", 5), ("edited", 6)},
    ),
    (
        "reorder two",
        [renumber(3, 99), renumber(4, 3), renumber(99, 4)],
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
        [*[renumber(n, n + 1) for n in (7, 6, 5)], forge(5, hash_of(4)), head_to(8)],
        {("edited", 5), ("out_of_place", 6), ("edited", 7), ("edited", 8)},
    ),
    ("insert at the end", [forge(8, hash_of(7))], {("edited", 8), ("head_differs", 7)}),
    ("insert at the end, head and all", [forge(8, hash_of(7)), head_to(8)], {("edited", 8)}),
    ("insert far beyond", [forge(20)], {("missing", 8), ("edited", 20), ("head_differs", 7)}),
    (
        "replace one",
        ["DELETE FROM jobs_auditentry WHERE seq = 4", forge(4, hash_of(3))],
        {("edited", 4), ("out_of_place", 5)},
    ),
    ("copy one", [forge(8).replace("'mallory'", "actor")], {("out_of_place", 8), ("head_differs", 7)}),
    ("truncate the tail", ["DELETE FROM jobs_auditentry WHERE seq > 4"], {("truncated", 5)}),
    ("truncate the last", ["DELETE FROM jobs_auditentry WHERE seq = 7"], {("truncated", 7)}),
    ("empty it", ["DELETE FROM jobs_auditentry"], {("truncated", 1)}),
    ("move the head back", [head_to(5)], {("head_differs", 5)}),
    ("move the head on", ["UPDATE jobs_audithead SET seq = 9"], {("truncated", 8)}),
    ("change the head's seal", [f"UPDATE jobs_audithead SET hash = '{'b' * 64}'"], {("head_differs", 7)}),
    ("delete the head", ["DELETE FROM jobs_audithead"], {("head_missing", 7)}),
]


@pytest.mark.parametrize("page", [2, 500])
@pytest.mark.parametrize(("statements", "expected"), [t[1:] for t in TAMPERED], ids=[t[0] for t in TAMPERED])
def test_tampering_is_detected_and_every_fault_named(statements, expected, page, monkeypatch):
    monkeypatch.setattr(chain, "PAGE", page)
    append(7)
    with build.unguarded():
        for statement in statements:
            sql(statement)
    assert set(faults()) == expected


CUT: list[tuple[str, list[str]]] = [
    ("the tail and the head", ["DELETE FROM jobs_auditentry WHERE seq > 4", head_to(4)]),
    ("everything", ["DELETE FROM jobs_auditentry", "UPDATE jobs_audithead SET seq = 0, hash = ''"]),
]


@pytest.mark.parametrize("statements", [c[1] for c in CUT], ids=[c[0] for c in CUT])
def test_tail_cut_off_with_its_head_is_found_by_an_anchor_and_by_nothing_else(statements):
    append(6)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        for statement in statements:
            sql(statement)
    assert faults() == [], "what docs/audit.md says cannot be told without an anchor"
    assert [fault for fault, _ in faults(anchors)] == ["truncated"]
    append(4)
    found = faults(anchors)
    assert found, "grown again beyond the anchor"
    assert {fault for fault, _ in found} <= {"anchor_differs", "truncated"}


def test_anchored_entry_that_was_deleted_from_the_middle_is_found_twice():
    append(5)
    anchors = [chain.anchor("default").line()]
    append(2)
    with build.unguarded():
        sql("DELETE FROM jobs_auditentry WHERE seq = 5")
    assert faults(anchors) == [("missing", 5), ("anchor_differs", 5)]


def test_chain_written_anew_by_somebody_who_stole_the_key_is_found_by_an_anchor():
    append(5)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        sql("DELETE FROM jobs_auditentry")
        sql("UPDATE jobs_audithead SET seq = 0, hash = ''")
    append(8, actor="mallory")
    assert faults() == []
    assert faults(anchors) == [("anchor_differs", 5)]


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

    append(6)
    triggers.lift("default")
    sql("PRAGMA ignore_check_constraints = ON")
    sql(statement)
    sql("PRAGMA ignore_check_constraints = OFF")
    triggers.lay("default")
    assert faults()


def test_number_that_stands_twice_is_detected(monkeypatch):
    """Somebody has taken the primary key away, and the page ends between the two."""
    if connection.vendor == "sqlite":
        pytest.skip("the primary key cannot be taken away")
    monkeypatch.setattr(chain, "PAGE", 3)
    append(5)
    with build.unguarded():
        sql("ALTER TABLE jobs_auditentry DROP CONSTRAINT jobs_auditentry_pkey CASCADE")
        sql(forge(3))
    assert ("out_of_place", 0) in faults()


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
    append(3)
    line = chain.anchor("default").line()
    assert faults([line, "", line]) == []
    report = chain.verify("default", [line, forge(line)])
    assert [(f.fault, f.line) for f in report.findings] == [(Fault.ANCHOR_FORGED, 2)]


def test_seal_of_an_entry_is_no_seal_of_an_anchor():
    append(3)
    entry = last()
    line = json.dumps({"seq": 3, "hash": entry.hash, "at": "x", "key_id": entry.key_id, "mac": entry.hash})
    assert faults([line]) == [("anchor_forged", 3)]


def test_nothing_broken_is_anchored():
    append(3)
    anchors = [chain.anchor("default").line()]
    with build.unguarded():
        sql("DELETE FROM jobs_auditentry WHERE seq = 3")
        with pytest.raises(chain.NothingToAnchor):
            chain.anchor("default")
        sql(head_to(2))
    assert chain.anchor("default").seq == 2
    with pytest.raises(chain.NothingToAnchor):
        chain.anchor("default", anchors)
    append(2)
    with pytest.raises(chain.NothingToAnchor):
        chain.anchor("default", anchors)
