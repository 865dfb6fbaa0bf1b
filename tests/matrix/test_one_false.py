"""A guarded statement with every predicate true lands; with one of them false it does not, and says why."""

from __future__ import annotations

import pytest

from tests.matrix.case_statements import CASES
from tests.matrix.claim_statements import CLAIMS
from tests.matrix.effect_statements import EFFECTS
from tests.matrix.held_statements import HELD
from tests.matrix.people_statements import PEOPLE
from tests.matrix.trial import answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("statement", [*HELD, *CLAIMS, *PEOPLE, *EFFECTS, *CASES], ids=lambda s: s.name)
def test_one_false_predicate_refuses_and_is_named(statement):
    seen = {f"{c.predicate}: {c.title}": answer(statement, c) for c in statement.cases}
    assert seen == {f"{c.predicate}: {c.title}": c.refused for c in statement.cases}
