"""What the races share: the scheduler of statements, and the deadlock check set to be quick."""

import contextlib
from collections.abc import Iterator

import pytest
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.races.interleave import Race


@pytest.fixture
def race(transactional_db: None) -> Iterator[Race]:
    """Runs actors' verbs statement by statement; see interleave.py."""
    with Race(find_deadlocks_at_once) as race:
        yield race


def find_deadlocks_at_once(connection: BaseDatabaseWrapper) -> None:
    """Let the server look for a deadlock after twenty milliseconds instead of a second."""
    if connection.features.has_select_for_update:
        # Only a superuser may; without, the server's own second has to do.
        with contextlib.suppress(ProgrammingError), connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '20ms'")
