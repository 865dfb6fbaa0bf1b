"""The zombie drill: refused everywhere where the fence is whole, an alarm where one predicate is missing."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from jobs import health, metrics
from jobs.drills import kept, zombie
from jobs.handlers import DRILL, job
from jobs.ledger import fence, settle, slots
from jobs.models import Drill, EffectSlot, FenceRefusal, Job, Queue
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.operations import drain

pytestmark = pytest.mark.django_db(transaction=True)
POINTS = {
    *("renew", "prepare", "grant", "stage", "commit", "fail", "release", "wait", "skip", "uncertain"),
    "acknowledge_cancel",
}


def command(*arguments: str) -> tuple[int, str]:
    """Run the command; returns how it ended and what it printed."""
    out = StringIO()
    try:
        call_command("zombie_drill", *arguments, stdout=out, stderr=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def finding() -> health.Finding:
    return {found.part: found for found in health.examine()}["drill"]


def test_a_whole_fence_refuses_every_point_and_each_part_for_its_own_reason():
    code, out = command("--json")
    shown = json.loads(out)
    assert (code, shown["verdict"], shown["note"]) == (0, "passed", "")
    assert {(t["part"], t["point"]) for t in shown["tries"]} == {
        (part, point) for part in zombie.PARTS for point in POINTS
    }
    assert shown["tried"] == shown["refused"] == len(zombie.PARTS) * len(POINTS)
    reasons = {t["part"]: t["reason"] for t in shown["tries"] if t["point"] == "commit"}
    assert reasons == {
        "lease": "LEASE_EXPIRED",
        "own": "GENERATION",
        "generation": "GENERATION",
        "attempt_id": "ATTEMPT",
        "worker_id": "OWNER",
        "epoch": "EPOCH",
    }
    # Every refusal was kept and is named.
    assert FenceRefusal.objects.count() == shown["tried"]
    assert set(FenceRefusal.objects.values_list("id", flat=True)) == set(shown["refusals"])
    # The jobs ended by the rightful owner's commit, nothing was ever granted, nothing blocks a drain.
    assert Counter(Job.objects.values_list("queue", "status")) == {(DRILL, "succeeded"): len(zombie.PARTS)}
    assert set(EffectSlot.objects.values_list("status", "grants")) == {("abandoned", 0)}
    Job.objects.close_claims(actor="ann", reason="release")
    assert drain.look().verdict is drain.Verdict.SAFE
    # And it is told everywhere.
    assert finding().level is health.Level.OK
    assert b"interlock_zombie_drill_ok 1.0" in metrics.exposition()


@pytest.mark.parametrize(
    ("texts", "name", "guard", "part", "point"),
    [
        (vars(settle), "COMMIT", fence.GENERATION, "generation", "commit"),
        (vars(settle), "COMMIT", fence.LEASE, "lease", "commit"),
        (slots.FENCES, "prepare", fence.ATTEMPT, "attempt_id", "prepare"),
    ],
    ids=["commit-generation", "commit-lease", "prepare-attempt"],
)
def test_one_missing_predicate_is_an_alarm(
    texts: dict[str, Any],
    name: str,
    guard: fence.Guard,
    part: str,
    point: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert guard.line in texts[name]
    monkeypatch.setitem(texts, name, texts[name].replace(guard.line, ""))
    code, out = command()
    assert code == 1
    assert f"NOT REFUSED: {point} with a token whose {part} is not current" in out
    drill = Drill.objects.get()
    assert {(t["part"], t["point"]) for t in drill.observed["tries"] if t["accepted"]} == {(part, point)}
    assert not EffectSlot.objects.filter(grants__gt=0).exists()
    assert set(Job.objects.values_list("status", flat=True)) == {"succeeded"}
    assert finding().level is health.Level.BROKEN
    assert b"interlock_zombie_drill_ok 0.0" in metrics.exposition()


def test_with_claims_or_its_queue_closed_it_shows_nothing_and_says_so():
    Job.objects.close_claims(actor="ann", reason="release")
    code, out = command()
    assert (code, "claims are closed" in out) == (3, True)
    assert Drill.objects.get().verdict == DrillVerdict.STOPPED
    assert not Job.objects.exists()
    Job.objects.open_claims(actor="ann", reason="done")
    Job.objects.pause_queue(DRILL, actor="ann", reason="quiet")
    assert command()[0] == 3
    assert Queue.objects.get().paused_by == "ann"
    assert finding().level is health.Level.WARNING
    assert b"\ninterlock_zombie_drill_ok " not in metrics.exposition()


def test_one_that_was_killed_is_unfinished_and_its_jobs_end_by_recovery():
    def killed(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zombie.drill(by="cron", sleep=killed)
    drill = Drill.objects.get()
    assert (drill.finished_at, drill.verdict) == (None, "")
    now = drill.started_at + timedelta(seconds=zombie.DEADLINE + 1)
    assert {f.part: f for f in health.examine(now=now)}["drill"].level is health.Level.WARNING
    for _pass in range(2):  # the leases first, then the deadlines
        Job.objects.recover(now=now)
    assert set(Job.objects.values_list("status", "error_code")) == {("failed", "JOB_DEADLINE_EXCEEDED")}


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_person_whom_nobody_knows_is_no_alarm(options):
    code, out = command("--as", "nobody", *options)
    assert (code, "There is no user nobody." in out) == (3, True)
    assert not Drill.objects.exists()


def test_an_alarm_stays_until_a_drill_passes():
    for verdict in (DrillVerdict.FAILED, DrillVerdict.STOPPED):
        number = kept.begin(DrillKind.ZOMBIE, by="cron")
        kept.finish(number, verdict, tried=1, passed=0, record={"note": "", "tries": []})
    assert finding().level is health.Level.BROKEN
    number = kept.begin(DrillKind.ZOMBIE, by="cron")
    kept.finish(number, DrillVerdict.PASSED, tried=1, passed=1, record={"note": "", "tries": []})
    assert finding().level is health.Level.OK


def test_nobody_registers_the_kind_of_the_canaries():
    with pytest.raises(ValueError, match="reserved"):
        job(DRILL)(lambda: None)
