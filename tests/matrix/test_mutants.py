"""A predicate that is dropped, turned round or let slip by a tick is noticed by the one-false matrix."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from jobs.ledger import claim, settle
from tests.matrix.mutants import Mutant, mutants
from tests.matrix.predicates import REDUNDANT
from tests.matrix.score import tell
from tests.matrix.statements import STATEMENTS
from tests.matrix.trial import Case, Statement, answer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.looks_alike]
NAMED = {statement.name: statement for statement in STATEMENTS}


@pytest.fixture(autouse=True)
def _no_text_outlives_its_mutant():
    yield
    _forget()


def _forget() -> None:
    settle.end_text.cache_clear()
    claim.claim_text.cache_clear()


@pytest.mark.parametrize("name", sorted({mutant.statement for mutant in mutants()}))
def test_matrix_notices_every_mutant(name, monkeypatch):
    statement = NAMED[name]
    unnoticed = set()
    for mutant in (m for m in mutants() if m.statement == name):
        with monkeypatch.context() as patch:
            mutant.apply(patch)
            _forget()
            noticed = _notices(statement, mutant)
            tell(mutant, noticed)
            if not noticed:
                unnoticed.add(str(mutant))
    assert unnoticed == {m for m in REDUNDANT if m.startswith(f"{name}: ")}


def _notices(statement: Statement, mutant: Mutant) -> bool:
    cases = [c for c in statement.cases if c.predicate in (mutant.predicate, "all")]
    return any(not _as_it_should(statement, case) for case in cases)


def _as_it_should(statement: Statement, case: Case) -> bool:
    try:
        return answer(statement, case) == case.refused
    except (DatabaseError, KeyError, AssertionError):
        return False  # a constraint, a trigger or a check of ours stopped what the mutant let through


def test_every_guard_of_the_fence_has_its_case():
    from jobs.ledger.fence import VERBS

    lacking = {
        f"{verb}: {guard.name}"
        for verb, guards in VERBS.items()
        for guard in guards
        if not any(c.predicate == guard.name and c.refused for c in NAMED[verb].cases)
    }
    assert lacking == set()
