"""docs/lifecycle.md says what the transition table says, and the table is a whole."""

from __future__ import annotations

import re
from pathlib import Path

from jobs import lifecycle
from jobs.status import TERMINAL, TRANSITIONS, UNFINISHED, JobStatus, targets, verbs

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_page_is_what_the_table_prints():
    assert PAGE.read_text("utf-8") == lifecycle.page()


def test_diagram_and_table_show_the_same_moves():
    """Nothing is drawn that is not legal, and nothing legal is left out."""
    text = PAGE.read_text("utf-8")
    drawn = {
        (source, target, verb)
        for source, target, names in re.findall(r"^    (\S+) --> (\w+): (.+)$", text, re.MULTILINE)
        for verb in names.split(", ")
    }
    legal = {
        (t.source.value if t.source else "[*]", t.target.value, t.verb)
        for t in TRANSITIONS
        if t.source != t.target
    }
    assert drawn == legal
    ends = set(re.findall(r"^    (\w+) --> \[\*\]$", text, re.MULTILINE))
    assert ends == set(TERMINAL)


def test_every_status_is_explained():
    for status in JobStatus:
        assert re.search(
            rf"^\| `{status.value}` \| (terminal)? *\| \w.+\. \|$", PAGE.read_text("utf-8"), re.M
        )


def test_no_move_is_listed_twice():
    moves = [(t.source, t.target, t.verb) for t in TRANSITIONS]
    assert len(moves) == len(set(moves))


def test_every_status_is_reached_and_every_unfinished_one_is_left():
    assert {t.target for t in TRANSITIONS} == set(JobStatus)
    for status in UNFINISHED:
        assert any(t.source == status and t.target != status for t in TRANSITIONS), status


def test_success_is_for_good_and_the_other_ends_are_left_by_retry_only():
    assert verbs(JobStatus.SUCCEEDED) == frozenset()
    for status in TERMINAL - {JobStatus.SUCCEEDED}:
        assert verbs(status) == {"retry", "revise"}
        assert targets(status, "retry") == {"pending", "blocked"}


def test_only_a_claim_begins_a_run():
    assert {
        t.verb for t in TRANSITIONS if t.target == JobStatus.RUNNING and t.source != JobStatus.RUNNING
    } == {"claim"}
    assert targets(JobStatus.UNCERTAIN, "claim") == frozenset()


def test_only_a_commit_makes_a_success():
    assert {t.verb for t in TRANSITIONS if t.target == JobStatus.SUCCEEDED} == {"commit"}
