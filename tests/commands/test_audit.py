"""`manage.py audit`: verifies, anchors and lists."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from jobs.models.audit import AuditHead
from tests import build
from tests.ledger.chained import append, head_to, sql

pytestmark = pytest.mark.django_db


def _run(*arguments: object) -> tuple[int, str]:
    out, errors, code = StringIO(), StringIO(), 0
    try:
        call_command("audit", *map(str, arguments), stdout=out, stderr=errors)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue() + errors.getvalue()


def test_command_verifies_anchors_and_notes_the_outcome(tmp_path):
    append(3)
    place = tmp_path / "anchors"
    code, out = _run("verify")
    assert (code, "whole: 3" in out, "anchor" in out) == (0, True, True)
    assert _run("anchor", "--file", place)[0] == 0
    append(2)
    code, line = _run("anchor", "--file", place)
    assert (code, place.read_text().splitlines()[1], json.loads(line)["seq"]) == (0, line.strip(), 5)
    code, out = _run("verify", "--anchors", place, "--json")
    assert (code, json.loads(out)["newest_anchor"], json.loads(out)["anchors"]) == (0, 5, 2)
    assert (AuditHead.objects.get().checked_ok, AuditHead.objects.get().checked_seq) == (True, 5)
    with build.unguarded():
        sql("DELETE FROM jobs_auditentry WHERE seq > 4")
        sql(head_to(4))
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
    append(3)
    append(actor="bob\x9b31m", object_type="queue", object_id="mail:x")
    code, out = _run("list")
    assert (code, len(out.splitlines()), "\x9b" in out) == (0, 4, False)
    assert out.split()[0] == "4"
    assert "cancel job:j1" in _run("list", "--object", "job:j1")[1]
    assert len(_run("list", "--actor", "ann", "--limit", 2)[1].splitlines()) == 2
    code, out = _run("list", "--object", "queue:mail:x", "--json")
    assert [entry["seq"] for entry in json.loads(out)["entries"]] == [4]


def test_metrics_tell_what_the_last_verification_found():
    from jobs import metrics

    def figures() -> dict[str, str]:
        lines = metrics.exposition().decode().splitlines()
        return dict(line.split() for line in lines if line.startswith("interlock_audit"))

    append(2)
    assert figures() == {"interlock_audit_entries": "2.0"}
    _run("verify")
    assert figures()["interlock_audit_chain_ok"] == "1.0"
    with build.unguarded():
        sql("DELETE FROM jobs_auditentry WHERE seq = 1")
    _run("verify")
    assert figures()["interlock_audit_chain_ok"] == "0.0"
    assert float(figures()["interlock_audit_verified_age_seconds"]) < 60
