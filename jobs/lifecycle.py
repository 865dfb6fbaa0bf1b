"""The life of a job as a page: `python -m jobs.lifecycle` prints docs/lifecycle.md."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from itertools import pairwise

from jobs import status
from jobs.status import TERMINAL, TRANSITIONS, JobStatus

HEAD = """\
# The life of a job

Printed from `jobs/status.py` by `python -m jobs.lifecycle`; a test compares the two. Guards, constraints and
buttons read the same table, so what is not listed here is refused everywhere.
"""
START = "[*]"


def page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join(
        [
            HEAD,
            "## Statuses\n",
            *_table(("status", "", "what it means, who moves it on, what a crash leaves"), _statuses()),
            "\n## Moves\n",
            *_table(("from", "to", "verb", "guard"), _moves()),
            "\n## Diagram\n",
            "```mermaid",
            diagram(),
            "```",
            "",
        ]
    )


def diagram() -> str:
    """Return the table as a Mermaid state diagram; a move on the spot is left to the list above it."""
    verbs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for move in TRANSITIONS:
        source = move.source.value if move.source else START
        if source != move.target.value:
            verbs[source, move.target.value].append(move.verb)
    lines = [f"    {a} --> {b}: {', '.join(dict.fromkeys(names))}" for (a, b), names in verbs.items()]
    ends = [f"    {s.value} --> {START}" for s in JobStatus if s in TERMINAL]
    return "\n".join(["stateDiagram-v2", *lines, *ends])


def _statuses() -> list[tuple[str, ...]]:
    meanings = _docstrings()
    return [(f"`{s.value}`", "terminal" if s in TERMINAL else "", meanings[s.name]) for s in JobStatus]


def _moves() -> list[tuple[str, ...]]:
    return [
        (f"`{m.source.value}`" if m.source else "–", f"`{m.target.value}`", m.verb, m.guard)
        for m in TRANSITIONS
    ]


def _docstrings() -> dict[str, str]:
    """Return what stands beside each member of JobStatus; the enum itself does not keep it."""
    (body,) = (
        node.body
        for node in ast.parse(inspect.getsource(status)).body
        if isinstance(node, ast.ClassDef) and node.name == "JobStatus"
    )
    found = {}
    for member, words in pairwise(body):
        if isinstance(member, ast.Assign) and isinstance(words, ast.Expr):
            assert isinstance(member.targets[0], ast.Name)  # noqa: S101  (an enum member has one name)
            found[member.targets[0].id] = " ".join(str(ast.literal_eval(words.value)).split())
    return found


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


if __name__ == "__main__":
    sys.stdout.write(page())
