"""After every migrate the guards stand again, also where Django has rebuilt a table under them."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import CheckConstraint, Q

from jobs.guards import TRIGGERS, guarding
from jobs.ledger import triggers
from jobs.models import Job, Scheduler

pytestmark = pytest.mark.django_db(transaction=True)
PROBE = CheckConstraint(name="job_probe", condition=Q(priority__lte=100))


def _present() -> set[str]:
    with connection.cursor() as cursor:
        return triggers._present(cursor, connection.vendor)


@pytest.fixture
def _altered_table():
    """Add a constraint as a later migration would: SQLite cannot alter, so Django makes the table anew."""
    with connection.schema_editor() as editor:
        editor.add_constraint(Job, PROBE)
    yield
    with connection.schema_editor() as editor:
        editor.remove_constraint(Job, PROBE)
    triggers.lay("default")


@pytest.mark.usefixtures("_altered_table")
def test_guards_stand_again_after_a_migration_that_rebuilt_their_table():
    call_command("migrate", verbosity=0)
    assert len(_present()) == len(guarding(connection.vendor))


def test_guard_whose_text_has_changed_is_replaced():
    name = sorted(_present())[0]
    with connection.cursor() as cursor:
        triggers._drop(cursor, connection.vendor, name)
        old = f"{name[:-8]}00000000"
        definition = next(t for t in TRIGGERS if f"guard_{t.name}_" == name[:-8])
        for statement in triggers._statements(old, definition, connection.vendor):
            cursor.execute(statement)
    assert old in _present()
    call_command("migrate", verbosity=0)
    assert name in _present()
    assert old not in _present()


def test_migrate_lays_the_scheduler_row_where_it_is_missing_and_leaves_it_where_it_is():
    triggers.lift("default")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_scheduler")
    call_command("migrate", verbosity=0)
    assert Scheduler.objects.get().epoch == 1
    Job.objects.raise_epoch(expected=1, actor="a", reason="r", floor=41)
    call_command("migrate", verbosity=0)
    assert Scheduler.objects.get().epoch == 42
