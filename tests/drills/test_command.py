"""`manage.py drills`: what it prints, how it ends, and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from jobs.drills.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "job_state_traces.json").read_text("utf-8"))
pytestmark = pytest.mark.django_db


PLACES = ["current", "sqlite"] if connection.features.has_select_for_update else ["current"]
"""On SQLite both are the same file: tests/drills/test_database.py takes both all the same."""


def drills(*arguments: str) -> str:
    """Return what the command prints."""
    out = StringIO()
    call_command("drills", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("where", PLACES)
def test_json_has_every_golden_value_as_observed(where, unchanged):
    shown = json.loads(drills("--json", "--database", where))
    golden = {s["name"]: s["steps"] for s in GOLDEN["scenarios"]}
    observed = {s["name"]: s["steps"] for s in shown["scenarios"]}
    # As text: to Python 1 == True.
    assert json.dumps(observed, sort_keys=True) == json.dumps(golden, sort_keys=True)
    assert shown["ok"] is True
    assert all(s["ok"] is True for s in shown["scenarios"])
    assert (shown["vocabulary"], shown["lease_seconds"]) == ("job-state", 30)


def test_the_table_shows_each_step_with_its_reason(unchanged):
    chosen = ("edges", "crash-with-slot-queryable")
    text = drills(*(word for name in chosen for word in ("--scenario", name)))
    for scenario in SCENARIOS:
        for step in scenario.steps if scenario.name in chosen else ():
            assert step.why in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "30.999999 renew A true running 1 60.999999" in lines
    assert "31 claim B 2 running 2 61 1 unknown" in lines
    assert "2 of 2 scenarios as expected" in text


def test_one_scenario_can_be_run_alone(unchanged):
    shown = json.loads(drills("--json", "--scenario", "edges"))
    assert [s["name"] for s in shown["scenarios"]] == ["edges"]


def test_a_scenario_that_is_not_there_ends_with_2():
    with pytest.raises(CommandError) as refused:
        drills("--scenario", "nonsense")
    assert refused.value.returncode == 2


def test_a_database_that_is_not_there_ends_with_2():
    if connection.features.has_select_for_update:
        pytest.skip("the product's database is a server")
    with pytest.raises(CommandError, match="DATABASE_URL") as refused:
        drills("--database", "postgresql")
    assert refused.value.returncode == 2


def test_list_and_sheet_run_nothing(monkeypatch):
    monkeypatch.setattr("jobs.management.commands.drills.replay", None)
    names = [line.split()[0] for line in drills("--list").splitlines()]
    assert names == [s["name"] for s in GOLDEN["scenarios"]]
    assert "Stop, change nothing" in drills("--sheet")


def test_the_sheet_gives_the_exercises_expected_values():
    text = drills("--sheet")
    assert "t=30  claim B                         -> 2        running, generation 2, lease_until 60\n" in text
    assert "t=31  finish A done                   -> false    running, generation 2, lease_until 60\n" in text
    assert "t=32  read the outside ledger         -> 1        uncertain, generation 1, outside 1\n" in text


def test_a_broken_statement_is_a_deviation_and_not_a_traceback(monkeypatch, unchanged):
    monkeypatch.setattr("jobs.ledger.settle.COMMIT", "UPDATE nowhere SET nothing = 1")
    out, errors = StringIO(), StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("drills", "--json", "--scenario", "edges", stdout=out, stderr=errors)
    assert ended.value.code == 1
    shown = json.loads(out.getvalue())
    assert shown["ok"] is False
    assert "edges, step 5 (finish A done): returned expected False, observed 'OperationalError" in (
        errors.getvalue().replace("ProgrammingError", "OperationalError")
    )


WAITING_FOR_EVER = """
import signal, django
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is born ignoring it
django.setup()
from django.core.management import call_command
from jobs.drills.database import ALIAS
from jobs.drills.model import JobState
from jobs.drills import run as runs

def run(scenario, database):
    JobState.objects.using(ALIAS).create(id="half-way")
    print("drilling", flush=True)
    signal.pause()

runs.run = run
call_command("drills")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_drill_that_is_stopped_half_way_removes_its_database(number, code, unchanged, tmp_path):
    before = unchanged()
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING_FOR_EVER],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url_of_this_database(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "drilling\n"
    assert unchanged() != before
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (code, "")


def url_of_this_database() -> str:
    """Return the URL of the test database, for another process."""
    at = connection.settings_dict
    if not connection.features.has_select_for_update:
        return f"sqlite:////{str(at['NAME']).lstrip('/')}"
    password = f":{at['PASSWORD']}" if at["PASSWORD"] else ""
    return f"postgresql://{at['USER']}{password}@/{at['NAME']}?host={at['HOST']}&port={at['PORT'] or 5432}"
