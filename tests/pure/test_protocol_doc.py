"""docs/protocol.md says what the fence does."""

import re
from pathlib import Path

from jobs.fenced import REFUSALS_KEPT
from jobs.ledger.fence import VERBS
from jobs.outcomes import REASONS

TEXT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")


def rows() -> list[list[str]]:
    """Return the cells of the fence's table, head first."""
    lines = [line for line in TEXT.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_the_fence_is_the_fence():
    head, *body = rows()
    verbs = head[2:]
    said: dict[str, set[str]] = {verb: set() for verb in verbs}
    for cells in body:
        for verb, mark in zip(verbs, cells[2:], strict=True):
            assert mark in ("✓", "–")
            said[verb] |= set(cells[1].split(", ")) if mark == "✓" else set()
    assert said == {verb: {guard.name for guard in guards} for verb, guards in VERBS.items()}


def test_the_reasons_are_told_in_the_order_in_which_they_apply():
    told = re.findall(r"`([A-Z_]+)`[,.]", TEXT[TEXT.index("The first reason") :])[: len(REASONS)]
    assert told == list(REASONS)


def test_the_number_of_refusals_kept_is_the_ledgers():
    assert f"the newest {REFUSALS_KEPT} per job" in " ".join(TEXT.split())
