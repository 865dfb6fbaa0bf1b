"""A guarded statement with every predicate true lands; with one of them false it does not, and says why."""

from __future__ import annotations

import pytest

from tests.matrix.statements import STATEMENTS
from tests.matrix.trial import answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_one_false_predicate_refuses_and_is_named(statement):
    seen = {f"{c.predicate}: {c.title}": answer(statement, c) for c in statement.cases}
    assert seen == {f"{c.predicate}: {c.title}": c.refused for c in statement.cases}
