"""What every test may use.

Of the browser and pgbouncer see tests/needs.py. For the database:

- `db` (one transaction, rolled back) is for a single connection. The ledger's transactions run inside it;
  pass `now` to every verb, because what a test does takes time and a lease must not depend on it.
- `transactional_db` is for several connections, threads and processes. Afterwards every table is emptied and
  the scheduler stands at epoch 1 with claims open (tests/flush.py); close your own threads' connections.
- Rows of any status are built by tests/build.py.

Counts in memory (jobs.measures), callbacks on jobs (HOOKS), kinds registered by a test, the note beside an
SQLite file, and the language and time zone of a request are gone after it.
"""

from collections.abc import Iterator

import pytest
from django.utils import timezone, translation
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.needs"]

# How long an example takes says how busy the machine is, and nothing of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: object) -> None:
    """Beside pytest-django's own: remember what migrate laid, and empty tables our way."""
    from tests import flush

    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        flush.laid_by_migrate("default")
    flush.replace_djangos()


@pytest.fixture(autouse=True)
def _nothing_left_in_memory() -> Iterator[None]:
    from jobs import handlers, measures
    from jobs.ledger import timeline
    from jobs.manager import HOOKS

    measures.drain()
    timeline.forget_note("default")  # beside an SQLite file: how far an earlier test's clock had come
    callbacks = [*HOOKS.on_ended], [*HOOKS.on_recovered]
    kinds = dict(handlers._handlers)
    yield
    HOOKS.on_ended[:], HOOKS.on_recovered[:] = callbacks
    handlers._handlers.clear()
    handlers._handlers.update(kinds)
    translation.deactivate()
    timezone.deactivate()
