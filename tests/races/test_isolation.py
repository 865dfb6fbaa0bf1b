"""Whatever isolation level a site's connections begin at, the verbs give the same answers.

The scenes are those of the other files, run again on connections that would begin every transaction at
REPEATABLE READ or SERIALIZABLE, by the driver's setting or by the session's own default.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.models import Job
from jobs.status import TERMINAL, JobStatus
from tests.build import enqueue
from tests.races.conftest import find_deadlocks_at_once, know_the_database
from tests.races.ground import PERSON, queue
from tests.races.interleave import Race, Run, Scene
from tests.races.test_claims import (  # noqa: F401  (collected again here, with this file's `race`)
    test_a_takeover_and_the_holders_commit_end_in_one_result,
    test_no_claim_lands_after_claims_were_stopped,
)
from tests.races.test_endings import (  # noqa: F401
    test_a_cancel_and_a_commit_agree_on_which_came_first,
    test_a_renewed_lease_is_not_recovered_and_a_recovered_one_not_renewed,
)
from tests.races.test_epoch import (  # noqa: F401
    test_a_claim_lands_before_the_raise_or_not_at_all,
    test_of_two_raises_at_once_one_is_told_that_the_epoch_has_moved,
)
from tests.races.test_keys import (  # noqa: F401
    test_a_key_freed_by_its_holders_commit_goes_to_one_new_job_or_names_the_holder,
    test_a_key_with_another_input_is_refused_whoever_comes_first,
)
from tests.races.test_people import (  # noqa: F401
    test_of_two_retries_at_once_one_lands_and_the_other_is_told,
)

LEVELS = {"REPEATABLE READ": 3, "SERIALIZABLE": 4}


def by_driver(level: str) -> Callable[[BaseDatabaseWrapper], None]:
    def prepare(own: BaseDatabaseWrapper) -> None:
        find_deadlocks_at_once(own)
        own.connection.isolation_level = LEVELS[level]

    return prepare


def by_session(level: str) -> Callable[[BaseDatabaseWrapper], None]:
    def prepare(own: BaseDatabaseWrapper) -> None:
        find_deadlocks_at_once(own)
        own.connection.isolation_level = None  # the server decides
        with own.cursor() as cursor:
            cursor.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")

    return prepare


WAYS = [(by_driver, "SERIALIZABLE"), (by_session, "REPEATABLE READ")]


@pytest.fixture(params=WAYS, ids=[f"{way.__name__}-{level}" for way, level in WAYS])
def race(request: pytest.FixtureRequest, transactional_db: None, _patient: None) -> Iterator[Race]:
    if not connection.features.has_select_for_update:
        pytest.skip("this database has one isolation level")
    way, level = request.param
    with Race(way(level), know_the_database, keeps_snapshots=True) as race:
        race.level = level.lower()  # type: ignore[attr-defined]
        yield race


def test_the_connections_do_begin_at_that_level(race: Race) -> None:
    def level() -> str:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            return str(cursor.fetchone()[0])

    explored = race.explore(lambda: Scene({"one": level}, lambda _run: None))
    assert explored.answers["one"] == {race.level}  # type: ignore[attr-defined]


def inside(program: Callable[[], Any]) -> Any:
    """Run a verb in a caller's transaction that has looked at the table before."""
    with transaction.atomic():
        Job.objects.filter(pk=uuid.uuid4()).exists()
        return program()


PERSONS: dict[str, Callable[[uuid.UUID], Any]] = {
    "cancel": lambda job_id: Job.objects.cancel(job_id, actor="ada"),
    "hold": lambda job_id: Job.objects.hold(job_id, **PERSON),
    "force_cancel": lambda job_id: Job.objects.force_cancel(job_id, state_version=1, **PERSON),
    "close_claims": lambda _job_id: Job.objects.close_claims(**PERSON),
}


@pytest.mark.parametrize("verb", list(PERSONS))
def test_a_persons_verb_refuses_a_callers_transaction_that_keeps_its_snapshot(race: Race, verb: str) -> None:
    """It would not see a child that was born while it waited for the parent's row, and leave it alive."""

    def scene() -> Scene:
        job_id = enqueue(queue=queue())

        def check(run: Run) -> None:
            assert isinstance(run.answers[verb], transaction.TransactionManagementError)
            assert "READ COMMITTED" in str(run.answers[verb])
            assert Job.objects.get(pk=job_id).state_version == 1

        return Scene({verb: lambda: inside(lambda: PERSONS[verb](job_id))}, check)

    assert race.explore(scene, tolerate=(transaction.TransactionManagementError,)).complete


def test_an_enqueue_in_a_callers_transaction_sees_a_parent_cancelled_since_it_began(race: Race) -> None:
    def scene() -> Scene:
        parent = enqueue(queue=queue())

        def check(run: Run) -> None:
            assert run.answers["cancel"] == JobStatus.CANCELLED
            assert not Job.objects.filter(parent=parent).exclude(status__in=TERMINAL).exists()

        return Scene(
            {
                "enqueue": lambda: inside(lambda: enqueue(queue=queue(), parent_id=parent)),
                "cancel": lambda: Job.objects.cancel(parent, actor="ada"),
            },
            check,
        )

    explored = race.explore(scene, tolerate=(OperationalError,))
    assert explored.complete
