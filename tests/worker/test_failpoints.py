"""Failpoints: every name exists in the code, every name in the code is known, and none works by accident."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError

from jobs import failpoints
from jobs.failpoints import NAMES, failpoint

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm("")


def called() -> set[str]:
    """Return every name that the product's code passes to failpoint()."""
    found = set()
    for path in (ROOT / "jobs").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "failpoint":
                found |= {str(n.value) for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)}
    return found


def test_the_names_that_can_be_armed_are_those_that_the_code_passes() -> None:
    assert called() == NAMES
    assert len(NAMES) > 20


def test_off_a_failpoint_does_nothing() -> None:
    for name in NAMES:
        failpoint(name)


def test_an_armed_failpoint_raises_what_it_was_told_to() -> None:
    failpoints.arm("commit.before=raise:OperationalError, run.before=raise:SystemExit")
    with pytest.raises(OperationalError):
        failpoint("commit.before")
    with pytest.raises(SystemExit):
        failpoint("run.before")
    failpoint("commit.after")


def test_a_count_means_that_time_only() -> None:
    failpoints.arm("claim.after=raise:KeyError@2")
    failpoint("claim.after")
    with pytest.raises(KeyError):
        failpoint("claim.after")
    failpoint("claim.after")


@pytest.mark.parametrize(
    "text",
    ["nowhere=kill", "claim.before", "claim.before=explode", "claim.before=raise:Nothing", "run.after=kill@0",
     "run.after=raise:str"],
)  # fmt: skip
def test_a_point_or_an_action_that_does_not_exist_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|whole number"):
        failpoints.arm(text)


@pytest.mark.parametrize(("action", "code"), [("kill", -9), ("exit", 9)])
def test_kill_and_exit_end_the_process_there(action: str, code: int) -> None:
    program = f"from jobs import failpoints as f; f.arm('run.after={action}'); f.failpoint('run.after')"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == code


@pytest.mark.parametrize(
    "environment",
    [
        {"INTERLOCK_FAILPOINTS": "run.after=kill"},
        {"INTERLOCK_FAILPOINTS": "run.after=kill", "INTERLOCK_ALLOW_FAILPOINTS": "1", "HTTPS_ONLY": "1"},
    ],
    ids=["not allowed", "in production"],
)
def test_failpoints_are_refused_where_people_work(environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", "import config.settings"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("INTERLOCK_FAILPOINTS is for tests only")
