"""The page Drills: what was tried, what came of it, and the golden scenarios step by step."""

from __future__ import annotations

from html import unescape

import pytest
from django.urls import reverse

from console import groups
from jobs.drills import kept
from jobs.drills.scenarios import SCENARIOS
from jobs.models import Drill
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.outcomes import Refused

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]
URL = "admin:drills"


def zombie(verdict=DrillVerdict.PASSED, **more):
    number = kept.begin(DrillKind.ZOMBIE, by="shell: cron")
    tries = [
        {
            "part": "generation",
            "point": "commit",
            "answer": "COMMITTED" if verdict == DrillVerdict.FAILED else "FENCED",
            "reason": "" if verdict == DrillVerdict.FAILED else "GENERATION",
            "refused": verdict != DrillVerdict.FAILED,
            "accepted": verdict == DrillVerdict.FAILED,
        }
    ]
    record = {"tries": tries, "refusals": [], "jobs": [], "note": ""} | more
    return kept.finish(number, verdict, tried=1, passed=int(tries[0]["refused"]), record=record)


def page(client, query=""):
    answer = client.get(reverse(URL) + query)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_golden_scenarios_are_replayed_kept_and_stepped_through(browse):
    operator = browse("operator")
    assert "Replay now" in page(operator)
    assert operator.post(reverse(URL)).status_code == 302
    drill = Drill.objects.get()
    assert (drill.kind, drill.verdict, drill.by) == ("golden", "passed", "operator-1")
    assert (drill.tried, drill.passed) == (len(SCENARIOS), len(SCENARIOS))
    scenario = next(s for s in SCENARIOS if s.name == "crash-with-slot-queryable")
    html = page(operator, f"?scenario={scenario.name}&step=6")
    assert all(step.why in html for step in scenario.steps)
    assert f"step 6 of {len(scenario.steps)}" in html
    assert "t=31: claim B" in html
    assert "step=5#golden" in html
    assert "step=7#golden" in html
    # What an address says wrongly shows the nearest that there is.
    for query in ("?scenario=nonsense&step=x", "?step=99", "?step=0"):
        assert "step " in page(operator, query)
    # One at a time: the next one has to wait, and is told so.
    assert "has just been begun" in unescape(operator.post(reverse(URL), follow=True).content.decode())
    assert Drill.objects.count() == 1


def test_who_may_not_run_a_drill_sees_the_page_and_no_button(browse):
    for role in ("viewer", "adjudicator", "approver", "nobody"):
        client = browse(role)
        assert client.post(reverse(URL)).status_code == 403
        if "view_job" in groups.GROUPS.get(role, ()):
            assert "Replay now" not in page(client)
    assert not Drill.objects.exists()


def test_an_operation_reads_the_account_again(browse, django_user_model):
    from jobs.operations import drills

    browse("operator")
    user = django_user_model.objects.get(username="operator-1")
    assert user.has_perm("jobs.run_drill")  # and remembers it
    user.groups.clear()
    with pytest.raises(Refused, match="run_drill"):
        drills.replay_golden(actor=user)
    assert not Drill.objects.exists()


def test_a_deviation_is_shown_at_its_step(viewer):
    step = {
        "t": 1,
        "action": "claim {actor}",
        "actor": "A",
        "returned": 1,
        "why": "A takes it.",
        "status": "running",
        "generation": 1,
        "lease_until": 31,
        "outside_actions": 0,
        "slot": None,
        "deviations": [{"field": "returned", "expected": None, "observed": 1}],
    }
    told = {"name": "s", "title": "T", "note": "", "replay": "", "ok": False, "steps": [step]}
    number = kept.begin(DrillKind.GOLDEN, by="ann")
    record = {"note": "", "place": "a file", "scenarios": [told]}
    kept.finish(number, DrillVerdict.FAILED, tried=1, passed=0, record=record)
    assert "returned: expected null, observed 1" in page(viewer)


def test_zombie_drills_are_listed_newest_first_each_with_its_verdict(viewer):
    assert "No zombie drill was run yet" in page(viewer)
    zombie()
    zombie(DrillVerdict.STOPPED, note="claims are closed")
    zombie(DrillVerdict.FAILED)
    kept.begin(DrillKind.ZOMBIE, by="shell: cron")
    html = page(viewer)
    words = ["not finished", "let in", "claims are closed", "refused everywhere"]
    places = [html.index(word) for word in words]
    assert places == sorted(places)
    assert "COMMITTED" in html


@pytest.mark.parametrize(
    ("verdict", "words"),
    [(None, "never"), (DrillVerdict.PASSED, "all 1 points refused"), (DrillVerdict.FAILED, "was let in")],
)
def test_overview_tells_of_the_last_zombie_drill(viewer, verdict, words):
    if verdict:
        zombie(verdict)
    html = viewer.get("/").content.decode()
    assert words in html[html.index("Last zombie drill") :][:600]
