"""What the races share: the scheduler of statements, and the deadlock check set to be quick."""

import contextlib
from collections.abc import Iterator

import pytest
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.ledger import session, timeline
from tests.races.interleave import Race


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that is held must not run into a time-out because the machine is busy with something else."""
    for name in ("OPEN_FENCED", "OPEN_EXCLUSIVE"):
        patient = getattr(session, name).replace("'2s'", "'60s'").replace("'5s'", "'60s'")
        monkeypatch.setattr(session, name, patient)


@pytest.fixture
def race(transactional_db: None, _patient: None) -> Iterator[Race]:
    """Runs actors' verbs statement by statement; see interleave.py."""
    with Race(find_deadlocks_at_once, know_the_database) as race:
        yield race


def know_the_database(connection: BaseDatabaseWrapper) -> None:
    """Ask what is asked once for a connection: a schedule that had these steps would not come again."""
    timeline.moved(connection.alias)


def find_deadlocks_at_once(connection: BaseDatabaseWrapper) -> None:
    """Let the server look for a deadlock after twenty milliseconds instead of a second."""
    if connection.features.has_select_for_update:
        # Only a superuser may; without, the server's own second has to do.
        with contextlib.suppress(ProgrammingError), connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '20ms'")
