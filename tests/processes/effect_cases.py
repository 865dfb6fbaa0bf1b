"""What must become of an effect when something goes wrong, for each replay policy: one table.

tests/processes/test_effects.py makes it happen with real processes, and docs/effects.md prints it:

    python -m tests.processes.effect_cases      # brings the page up to date
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

POLICIES = ("idempotent", "queryable", "non_replayable")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "effects.md"
BEGIN, END = "<!-- table: failures -->", "<!-- end of table -->"


class Left(NamedTuple):
    """What is found at the end: acts in the provider's ledger, permissions given, slot, job."""

    acts: int
    grants: int
    slot: str
    job: str


ONCE = Left(1, 1, "committed", "succeeded")
"""Done by the one sending there was."""
AGAIN = Left(1, 2, "committed", "succeeded")
"""Done once, although it was sent twice."""
ASK_DONE = Left(1, 1, "unknown", "uncertain")
ASK_NOT_DONE = Left(0, 1, "unknown", "uncertain")
REFUSED = Left(0, 1, "absent", "failed")
LATE = Left(1, 1, "abandoned", "failed")
"""Against what was ruled: a person is told by a case of its own."""


@dataclass(frozen=True)
class Case:
    """One thing that goes wrong, and what it leaves under each policy, in the order of POLICIES.

    `failpoint` is where the worker dies or stands still; `fault` what the provider does; neither is a
    provider that nobody can connect to. `unseen` has the provider's first inquiry find nothing all the same.
    `meanwhile` is what is there while the worker stands still; `ruling` what a person says then, where one is
    asked, and `ruled` what is there before the worker goes on.
    """

    name: str
    said: str
    ends: tuple[Left, Left, Left]
    failpoint: str = ""
    fault: str = ""
    unseen: bool = False
    meanwhile: tuple[Left, Left, Left] | None = None
    ruling: str = ""
    ruled: tuple[Left, Left, Left] | None = None

    def end(self, policy: str) -> Left:
        return self.ends[POLICIES.index(policy)]


CASES = (
    Case(
        "killed-before-grant",
        "the worker dies before the permission to send is recorded",
        (ONCE, ONCE, ONCE),
        failpoint="grant.sent=kill",
    ),
    Case(
        "killed-before-call",
        "it dies with the permission, before the call",
        (AGAIN, AGAIN, ASK_NOT_DONE),
        failpoint="grant.after=kill",
    ),
    Case(
        "killed-after-call",
        "it dies after the call, before it has written the answer down",
        (AGAIN, ONCE, ASK_DONE),
        failpoint="report.sending=kill",
    ),
    Case(
        "killed-while-recording",
        "it dies while it writes the answer down",
        (AGAIN, ONCE, ASK_DONE),
        failpoint="report.sent=kill",
    ),
    Case(
        "killed-after-recording",
        "it dies when the answer is written down",
        (ONCE, ONCE, ONCE),
        failpoint="report.after=kill",
    ),
    Case("lost", "the provider acts, and its answer is lost", (AGAIN, ONCE, ASK_DONE), fault="drop"),
    Case(
        "not-found-yet",
        "its answer is lost, and its first inquiry finds nothing, before `settle_after` has passed",
        (AGAIN, ONCE, ASK_DONE),
        fault="drop",
        unseen=True,
    ),
    Case("garbage", "the provider acts and answers with garbage", (AGAIN, ONCE, ASK_DONE), fault="garbage"),
    Case("error-after", "the provider acts and answers 500", (AGAIN, ONCE, ASK_DONE), fault="act_then_error"),
    Case(
        "error-before", "the provider answers 503 without acting", (AGAIN, AGAIN, ASK_NOT_DONE), fault="error"
    ),
    Case(
        "lost-before",
        "the connection breaks before the provider acts; it is not found, before and after `settle_after`",
        (AGAIN, AGAIN, ASK_NOT_DONE),
        fault="drop_before",
    ),
    Case("unreachable", "the connection is refused", (AGAIN, AGAIN, AGAIN)),
    Case("declined", "the provider declines (402)", (REFUSED, REFUSED, REFUSED), fault="refuse"),
    Case(
        "asleep",
        "the worker stands still before the call until its lease is over, then goes on",
        (AGAIN, AGAIN, AGAIN),
        failpoint="grant.after=stop",
        meanwhile=(AGAIN, ASK_NOT_DONE, ASK_NOT_DONE),
    ),
    Case(
        "asleep-at-the-call",
        "it stands still after its last look at its lease, and calls when it goes on",
        (AGAIN, ONCE, ONCE),
        failpoint="send.before=stop",
        meanwhile=(AGAIN, ASK_NOT_DONE, ASK_NOT_DONE),
    ),
    Case(
        "asleep-ruled-again",
        "it stands still before the call, a person rules `did_not_happen`, and then it goes on",
        (AGAIN, AGAIN, AGAIN),
        failpoint="grant.after=stop",
        meanwhile=(AGAIN, ASK_NOT_DONE, ASK_NOT_DONE),
        ruling="did_not_happen",
        ruled=(AGAIN, AGAIN, AGAIN),
    ),
    Case(
        "asleep-ruled-abandon",
        "it stands still after its last look, a person rules `abandon`, and it calls when it goes on",
        (AGAIN, LATE, LATE),
        failpoint="send.before=stop",
        meanwhile=(AGAIN, ASK_NOT_DONE, ASK_NOT_DONE),
        ruling="abandon",
        ruled=(AGAIN, Left(0, 1, "abandoned", "failed"), Left(0, 1, "abandoned", "failed")),
    ),
)


def table() -> str:
    """Return the table as Markdown."""
    rows = [f"| what happens | {' | '.join(f'`{policy}`' for policy in POLICIES)} |", "|---|---|---|---|"]
    for case in CASES:
        cells = [_cell(end) for end in case.ends]
        if case.meanwhile is not None:
            steps = [case.meanwhile, *([case.ruled] if case.ruled else []), case.ends]
            cells = [_story(list(dict.fromkeys(lefts))) for lefts in zip(*steps, strict=True)]
        rows.append(f"| {case.said} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _story(lefts: list[Left]) -> str:
    told = [_cell(left) for left in lefts]
    return "; then ".join([*(f"meanwhile {cell}" for cell in told[:1] if told[1:]), *told[1:]] or told)


def _cell(left: Left) -> str:
    times = {1: "permitted once", 2: "permitted twice"}[left.grants]
    done = "done once" if left.acts else "not done"
    told = ", and a person is told" if left == LATE else ""
    return f"`{left.job}`: {times}, {done}{told}"


def printed(page: str) -> str:
    """Return the page with the table of this file between its markers."""
    block = f"{BEGIN}\n{table()}\n{END}"
    new, found = re.subn(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, page, flags=re.DOTALL)
    if found != 1:
        raise ValueError(f"{PAGE} has {found} places for the table")
    return new


if __name__ == "__main__":
    PAGE.write_text(printed(PAGE.read_text("utf-8")), "utf-8")
