"""`manage.py effects`: the same decisions from a shell, with exit codes."""

from __future__ import annotations

import json
import os
import pwd
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any, NamedTuple

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from jobs.models import AuditEntry, Proposal, Ruling
from jobs.operations import docket
from tests.operations import scene

pytestmark = pytest.mark.django_db
SHELL = pwd.getpwuid(os.getuid()).pw_name


class Answer(NamedTuple):
    code: int
    out: str
    errors: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def effects(*arguments: object) -> Answer:
    out, errors, code = StringIO(), StringIO(), 0
    try:
        call_command("effects", *map(str, arguments), stdout=out, stderr=errors)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Answer(code, out.getvalue(), errors.getvalue())


def rule(matter, verdict, who, *more, **given):
    snapshot = given.get("snapshot") or matter.look().snapshot
    reason = ("--reason", "because", "--reason-code", given.get("code", "other"))
    return effects("rule", matter.case.id, verdict, "--as", who, *reason, "--snapshot", snapshot, *more)


def test_list_shows_what_waits_and_all_shows_the_rest(ada):
    matter = scene.unknown()
    case = matter.case
    assert [c["id"] for c in effects("list", "--json").document["cases"]] == [str(case.id)]
    assert "pay acme" in effects("list").out
    assert " 42.00 EUR " in effects("list").out
    assert effects("list", "--case", "approval", "--json").document["cases"] == []
    assert effects("list", "--kind", "other", "--json").document["cases"] == []
    matter.rule("happened", ada)
    assert effects("list", "--json").document["cases"] == []
    assert [c["closed_as"] for c in effects("list", "--all", "--json").document["cases"]] == ["ruled"]


def test_show_prints_evidence_offers_and_the_snapshot_that_rule_asks_for(ada, dan):
    matter = scene.unknown()
    found = effects("show", str(matter.case.id)[:13], "--json").document
    assert found["snapshot"] == matter.look().snapshot
    assert [o["verdict"] for o in found["offers"]] == ["happened", "did_not_happen", "abandon"]
    assert all(o["allowed"] for o in found["offers"])
    for_dan = effects("show", matter.case.id, "--as", "dan", "--json").document
    assert {o["why_code"] for o in for_dan["offers"]} == {"NOT_PERMITTED"}
    text = effects("show", matter.case.id).out
    for part in (found["snapshot"], "Evidence", "What may be ruled", "under the same key"):
        assert part in text


def test_what_a_payload_hides_show_does_not_print():
    matter = scene.unknown(redact=("to",))
    out = effects("show", matter.case.id, "--json").out
    assert "acme" not in out


def test_rule_decides_as_a_named_person_and_keeps_the_account(ada):
    matter = scene.unknown()
    answer = rule(matter, "happened", "ada", "--reference", "ch_1", "--response", '{"ok": 1}', "--json")
    assert (answer.code, answer.document["effect_status"], answer.document["job_status"]) == (
        0,
        "committed",
        "pending",
    )
    assert Ruling.objects.get().by == "ada"
    entry = AuditEntry.objects.get(action="ruling_rule")
    assert (entry.actor, entry.user, entry.source) == (f"ada (shell: {SHELL})", "ada", "command")


def test_what_waits_for_a_second_person_has_an_exit_code_of_its_own(ada, bea):
    matter = scene.unknown(second_person="always")
    answer = rule(matter, "did_not_happen", "ada")
    assert answer.code == 5
    proposal = Proposal.objects.get()
    assert str(proposal.id) in answer.out
    snapshot = matter.look().snapshot
    agreed = effects(
        "approve", proposal.id, "--as", "bea", "--reason", "yes", "--snapshot", snapshot, "--json"
    )
    assert (agreed.code, agreed.document["effect_status"]) == (0, "absent")


def test_nobody_approves_his_own_from_a_shell_either(cyd):
    matter = scene.unknown(second_person="always")
    assert rule(matter, "did_not_happen", "cyd").code == 5
    snapshot = matter.look().snapshot
    again = effects(
        "approve",
        Proposal.objects.get().id,
        "--as",
        "cyd",
        "--reason",
        "yes",
        "--snapshot",
        snapshot,
        "--json",
    )
    assert (again.code, again.document["error"]["code"]) == (1, "SELF_APPROVAL")


def test_reject_leaves_the_case_open(ada, bea):
    matter = scene.unknown(second_person="always")
    rule(matter, "did_not_happen", "ada")
    snapshot = matter.look().snapshot
    answer = effects(
        "reject", Proposal.objects.get().id, "--as", "bea", "--reason", "no", "--snapshot", snapshot
    )
    assert (answer.code, Proposal.objects.get().decision, matter.case.closed_at) == (0, "rejected", None)


def test_inquire_says_what_it_settled(ada):
    matter = scene.unknown(settle_after=None)
    answer = effects("inquire", matter.case.id, "--as", "ada", "--json")
    assert (answer.code, answer.document["settled"]) == (0, None)
    assert effects("inquire", matter.case.id, "--as", "ada").code == 1


@pytest.mark.parametrize(
    ("who", "given", "code", "error"),
    [
        ("dan", {}, 1, "NOT_PERMITTED"),
        ("nobody", {}, 1, "USER_UNKNOWN"),
        ("ada", {"snapshot": "0" * 64}, 1, "MOVED"),
        ("ada", {"code": "whim"}, 2, "REASON_CODE"),
    ],
)
def test_a_refusal_is_told_by_exit_code_and_code(ada, dan, who, given, code, error):
    matter = scene.unknown()
    before = matter.written()
    answer = rule(matter, "happened", who, "--json", **given)
    assert (answer.code, answer.document["error"]["code"], matter.written()) == (code, error, before)
    answer = rule(matter, "happened", who, **given)
    assert answer.code == code
    assert answer.errors.strip()
    assert not answer.out


@pytest.mark.parametrize(("text", "code"), [("nonsense", 2), ("0" * 32, 3)])
def test_a_case_that_cannot_be_named_or_found(text, code):
    assert effects("show", text).code == code


def test_bad_usage_is_refused_before_anything_is_asked(ada):
    matter = scene.unknown()
    with pytest.raises(CommandError):
        effects("rule", matter.case.id, "happened", "--as", "ada", "--reason", "x")
    with pytest.raises(CommandError):
        rule(matter, "happened", "ada", "--response", "{")
    with pytest.raises(CommandError, match="JSON is needed"):
        rule(matter, "happened", "ada", "--response", "[" * 100_000)
    with pytest.raises(CommandError):
        rule(matter, "retry", "ada")


def test_a_database_that_cannot_be_used_has_its_own_code(monkeypatch):
    def gone(**_options):
        raise OperationalError("no such host")

    monkeypatch.setattr(docket, "waiting", gone)
    assert effects("list").code == 4


def test_case_is_parked_with_a_word_and_brought_back_from_a_shell(ada):
    matter = scene.unknown()
    until = datetime.now(UTC) + timedelta(days=2)
    words = ("--as", "ada", "--why", "the bank answers on Monday")
    parked = effects("park", matter.case.id, "--until", until.isoformat(), *words, "--json")
    assert parked.code == 0
    assert (matter.case.parked_until, matter.case.parked_why) == (until, "the bank answers on Monday")
    shown = effects("show", matter.case.id).out
    assert "the bank answers on Monday" in shown
    assert "[x] Nobody knows the outcome" in shown
    assert effects("park", matter.case.id, "--back", "--as", "ada").code == 0
    assert (matter.case.parked_until, matter.case.parked_why) == (None, "")
    far = (until + timedelta(days=9)).isoformat()
    assert effects("park", matter.case.id, "--until", far, "--as", "ada").code == 2
    entries = AuditEntry.objects.filter(object_type="case").order_by("seq")
    assert [(e.action, e.source, e.actor) for e in entries] == [
        ("park", "command", f"ada (shell: {SHELL})"),
        ("unpark", "command", f"ada (shell: {SHELL})"),
    ]
