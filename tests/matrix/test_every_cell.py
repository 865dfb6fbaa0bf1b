"""Every verb in every status under every relation of token and row: what lands, what is refused and why.

The expected values come from tests/matrix/contract.py and people.py, which say the contract again and call
nothing of what is under test; the transition table is held against what is seen from both sides.
"""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from jobs.status import TRANSITIONS, JobStatus
from tests import build
from tests.matrix.relations import ONLY_THE_TOKEN, RELATIONS
from tests.matrix.verbs import VARIANTS, VERBS, Verb, perform
from tests.matrix.world import Expected, World, look

# A transaction of its own for each relation: thousands of savepoints in one are slow on PostgreSQL.
pytestmark = pytest.mark.django_db(transaction=True)

LATER = {"enqueue", "predecessor", "resolve", "doubt"}
"""Verbs that have no source among the jobs here: enqueue has tests of its own, the others come with edges and
rulings."""


@pytest.mark.parametrize("status", list(JobStatus))
def test_every_verb_does_what_the_contract_says_in_every_relation(status):
    moves: set[tuple[str, str]] = set()
    wrong: list[str] = []
    for name, relation in RELATIONS.items():
        with build.undone():
            cell = relation(status)
            if cell is None:
                continue
            before = look(*cell)
            for title, verb in VERBS.items():
                if not _worth_trying(name, title, verb):
                    continue
                with build.undone():
                    problems = _compare(verb, before, moves)
                wrong += [f"{title} | {name}: {problem}" for problem in problems]
    assert wrong == [], "\n".join(["", *wrong])
    legal = {(t.verb, t.target.value) for t in TRANSITIONS if t.source == status and t.verb not in LATER}
    if status == JobStatus.UNCERTAIN:
        legal.discard(("revise", "uncertain"))  # only by a ruling on a conflict
    assert moves == legal


def _worth_trying(relation: str, title: str, verb: Verb) -> bool:
    if relation in ONLY_THE_TOKEN and not verb.point:
        return False  # the same as in `fresh`
    return relation == "fresh" or not any(variant in title for variant in VARIANTS)


def _compare(verb: Verb, before: World, moves: set[tuple[str, str]]) -> list[str]:
    """Perform one verb and return in how far it did not do what was foretold."""
    expected = verb.foretell(before)
    answer = perform(verb, before)
    after = look(before.token, before.now)
    problems = []
    if answer != expected.answer:
        problems.append(f"answered {answer}, not {expected.answer}")
    problems += _rows(before, after, expected)
    problems += _attempts(before, after, expected)
    slots = {s["slot"]: s["status"] for s in before.slots} | expected.slots
    if {s["slot"]: s["status"] for s in after.slots} != slots:
        problems.append(f"slots {[(s['slot'], s['status']) for s in after.slots]}, not {slots}")
    told = [(verb.point, expected.refusal)] if expected.refusal else []
    if after.refusals != before.refusals + told:
        problems.append(f"refusals {after.refusals}, not {before.refusals + told}")
    landed = bool(expected.target or expected.row.get("state_version"))
    if after.changes - before.changes != landed:
        problems.append(f"{after.changes - before.changes} rows in the feed")
    if expected.target:
        moves.add((_move(verb, expected), expected.target))
    return problems


def _move(verb: Verb, expected: Expected) -> str:
    """A takeover that finds another ending than `pending` performs it: that is a recovery."""
    return "recover" if verb.name == "claim" and not expected.claims else verb.name


def _rows(before: World, after: World, expected: Expected) -> list[str]:
    if before.row is None:
        return [] if after.row is None else ["a row appeared"]
    wanted = before.row | expected.row
    if expected.claims:
        wanted["attempt_id"] = after.found["attempt_id"]
        if after.found["attempt_id"] == before.row["attempt_id"]:
            return ["the attempt is the old one"]
    return [
        f"{column} = {value!r}, not {wanted[column]!r}"
        for column, value in after.found.items()
        if value != wanted[column]
    ]


def _attempts(before: World, after: World, expected: Expected) -> list[str]:
    problems = []
    named = before.row["attempt_id"] if before.row else None
    for key, row in before.attempts.items():
        wanted = row | (expected.attempt if key == named else {})
        problems += [
            f"attempt's {column} = {after.attempts[key][column]!r}, not {value!r}"
            for column, value in wanted.items()
            if after.attempts[key][column] != value
        ]
    born = set(after.attempts) - set(before.attempts)
    if len(born) != expected.claims:
        return [*problems, f"{len(born)} attempts were opened"]
    for key in born:
        row, attempt = after.found, after.attempts[key]
        facts = {
            "id": row["attempt_id"],
            "generation": row["claim_generation"],
            "revision": row["revision"],
            "worker_id": row["worker_id"],
            "scheduler_epoch": row["scheduler_epoch"],
            "status": "running",
            "started_at": before.now,
            "finished_at": None,
        }
        problems += [f"new attempt's {k} = {attempt[k]!r}" for k, v in facts.items() if attempt[k] != v]
    return problems


def test_oracle_is_no_rubber_stamp():
    """A wrong expectation is seen: the comparison itself can fail."""
    lease = build.running()
    before = look(lease, build.at(30))
    verb = VERBS["renew"]

    def foretell(w: World) -> Expected:
        expected = verb.foretell(w)
        expected.row["lease_expires_at"] += timedelta(microseconds=1)
        return expected

    assert _compare(Verb("renew", verb.do, foretell, "renew"), before, set())
    assert uuid.UUID(lease.attempt_id) in before.attempts
