"""The scenarios say what the golden traces say, and say why."""

import json
from pathlib import Path

import pytest

from jobs.drills.record import Record, Row
from jobs.drills.scenarios import LEASE_SECONDS, SCENARIOS
from jobs.drills.step import KEPT, Action, Scenario, Step

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "job_state_traces.json").read_text("utf-8"))


def written(step: Step) -> dict[str, object]:
    """Return a step as the golden file writes it."""
    shown: dict[str, object] = {"t": step.t, "action": step.text, "returned": step.returned}
    shown |= {"status": step.status, "generation": step.generation}
    for name in ("lease_until", "outside_actions", "slot"):
        if getattr(step, name) is not KEPT:
            shown[name] = getattr(step, name)
    return shown | ({"t_chosen": True} if step.t_chosen else {})


def test_the_scenarios_are_the_golden_traces():
    ours = {scenario.name: [written(step) for step in scenario.steps] for scenario in SCENARIOS}
    golden = {s["name"]: s["steps"] for s in GOLDEN["scenarios"]}
    assert [s.replay for s in SCENARIOS] == [s.get("replay", "") for s in GOLDEN["scenarios"]]
    assert json.dumps(ours, sort_keys=True) == json.dumps(golden, sort_keys=True)
    assert list(ours) == list(golden)
    assert GOLDEN["lease_seconds"] == LEASE_SECONDS


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_every_step_says_why_in_one_sentence(scenario: Scenario):
    for step in scenario.steps:
        assert step.why.endswith(".")
        assert step.why.count(". ") == 0


def test_a_record_names_every_value_that_deviates():
    scenario = Scenario("s", "", (Step(0, Action.CLAIM, "A", 1, "running", 1, "", lease_until=30),))
    record = Record(scenario)
    record.add(True, Row("running", 2, 30.000001, 0))
    assert [d[1:] for d in record.deviations()] == [
        (1, "claim A", "returned", 1, True),
        (1, "claim A", "generation", 1, 2),
        (1, "claim A", "lease_until", 30, 30.000001),
    ]
    assert not record.ok


def test_a_record_that_stops_half_way_is_not_ok():
    assert not Record(SCENARIOS[0]).ok


def test_an_absent_lease_end_is_as_before_while_running_and_null_otherwise():
    steps = (
        Step(0, Action.CLAIM, "A", 1, "running", 1, "", lease_until=30),
        Step(1, Action.EXIT, "A", None, "running", 1, ""),
        Step(2, Action.FINISH_DONE, "A", True, "done", 1, ""),
    )
    record = Record(Scenario("s", "", steps))
    record.add(1, Row("running", 1, 30, 0))
    record.add(None, Row("running", 1, 30, 0))
    record.add(True, Row("done", 1, None, 0))
    assert record.ok


def test_every_scenario_is_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "drills.md").read_text("utf-8")
    for scenario in SCENARIOS:
        assert f"`{scenario.name}`" in text
