"""The page Drills: what was tried, what came of it, and the golden scenarios step by step."""

from __future__ import annotations

from html import unescape

import pytest
from django.urls import reverse

from console import groups, stepper, zombies
from jobs.drills import kept
from jobs.drills.scenarios import SCENARIOS
from jobs.drills.zombie import PARTS
from jobs.drills.zombie import drill as run_zombie
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


def whole(leak=()):
    """Keep a drill as a run leaves it, each point once for each token; `leak` is (part, point) let in."""
    course, tries = [], []
    for n, part in enumerate(PARTS):
        late = part == "lease"
        at = {"claim": 0.1, "lapse": 2.2, "take_over": 2.9 if late else 2.3, "renew": 3.5, "commit": 3.6}
        for does, t in at.items():
            generation, end = (1, 2.1) if does in ("claim", "lapse") else (2, 60.0)
            entry = {"t": t + n / 1000, "part": part, "does": does, "generation": generation}
            course.append(entry | {"lease_until": None if does == "commit" else end})
        for m, point in enumerate(("renew", "commit")):
            refused = (part, point) != leak
            answer = {
                "answer": "FENCED" if refused else "COMMITTED",
                "reason": "GENERATION" if refused else "",
            }
            tries.append(
                {"t": 2.5 + m / 10, "part": part, "point": point, "refused": refused, "accepted": not refused}
                | answer
            )
    number = kept.begin(DrillKind.ZOMBIE, by="shell: cron")
    verdict = DrillVerdict.FAILED if leak else DrillVerdict.PASSED
    record = {"tries": tries, "course": course, "refusals": [], "jobs": [], "note": ""}
    return kept.finish(number, verdict, tried=12, passed=12 - bool(leak), record=record)


@pytest.mark.parametrize("part", PARTS)
def test_last_zombie_drill_is_stepped_through_for_each_token_with_a_sentence_for_each_step(viewer, part):
    drill = whole()
    course = next(c for c in zombies.courses(drill) if c["name"] == part)
    shown = stepper.of(course, 1, digits=4)
    done = [step.action for step in shown.steps]
    tried = ["A tries renew", "A tries commit"]
    after = ["the lease of A runs out", *tried, "claim B"]
    if part != "lease":
        after = ["the lease of A runs out", "claim B", *tried]
    assert done == ["claim A", *after, "renew B", "finish B done"]
    assert all(step.why for step in shown.steps)
    assert [step.generation for step in shown.steps][-1] == 2
    assert [lane for lane, _y in shown.lanes] == ["A", "B"]
    # A's lease ends where it runs out, B's where it has committed.
    steps = {step.action: step.x for step in shown.steps}
    (a_from, _, a_wide), (b_from, _, b_wide) = shown.bars
    assert a_from == steps["claim A"]
    assert a_from + a_wide == pytest.approx(steps["the lease of A runs out"])
    assert b_from + b_wide == pytest.approx(steps["finish B done"])
    html = page(viewer, f"?token={part}&try=3")
    assert f"step 3 of {len(shown.steps)}" in html
    assert all(step.why in html for step in shown.steps)
    assert f"token={part}&try=4#zombie" in html


def test_zombie_that_was_let_in_is_what_the_page_opens_with(viewer):
    whole(leak=("worker_id", "commit"))
    html = page(viewer)
    assert "This must be refused, and was not: the fence has a gap here." in html
    assert "A comes back with B's token, but the worker is A" in html
    assert 'returned: expected "FENCED", observed "COMMITTED"' in html


def test_drill_that_kept_no_times_is_shown_point_by_point_only(viewer):
    drill = zombie()
    assert zombies.courses(drill) == []
    html = page(viewer)
    assert "Tokens of the last one" not in html
    assert "The last one, point by point" in html
    for query in ("?token=nonsense&try=x", "?try=99"):
        assert page(viewer, query)


@pytest.mark.django_db(transaction=True)
def test_real_drill_keeps_what_its_owners_did_and_no_more():
    drill = run_zombie(by="cron")
    kept_steps = drill.observed["course"]
    assert len(kept_steps) == 5 * len(PARTS)
    courses = zombies.courses(drill)
    assert [course["name"] for course in courses] == list(PARTS)
    for course in courses:
        assert course["ok"]
        assert len(course["steps"]) == 5 + 11
        assert [step["t"] for step in course["steps"]] == sorted(step["t"] for step in course["steps"])
        assert [step["generation"] for step in course["steps"]][:2] == [1, 1]
        assert course["steps"][-1]["status"] == "succeeded"
        assert 1.5 < course["steps"][0]["lease_until"] < 3
    assert len(drill.record) < 20_000
