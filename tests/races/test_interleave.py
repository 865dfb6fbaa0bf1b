"""The explorer itself: it finds what is wrong, says in which order, and leaves no ending out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, transaction

from jobs.models import Job
from tests.build import at, enqueue
from tests.races.ground import held, job_of, queue
from tests.races.interleave import Race, Run, Scene


def counter() -> Scene:
    """The textbook's lost update: read, add one, write."""
    user = User.objects.create(username=queue(), first_name="0")

    def add() -> None:
        seen = User.objects.get(pk=user.pk).first_name
        User.objects.filter(pk=user.pk).update(first_name=str(int(seen) + 1))

    def check(_run: Run) -> None:
        assert User.objects.get(pk=user.pk).first_name == "2", "an update was lost"

    return Scene({"one": add, "two": add}, check)


def test_it_finds_a_lost_update_and_the_printed_schedule_loses_it_again(race: Race) -> None:
    with pytest.raises(AssertionError, match="an update was lost") as caught:
        race.explore(counter)
    (schedule,) = [note for note in caught.value.__notes__ if note.startswith("schedule")]
    order = schedule.partition("schedule='")[2].rstrip("')")
    with pytest.raises(AssertionError, match="an update was lost"):
        race.explore(counter, schedule=order)
    assert race.explore(counter, schedule="one one two two").schedules == 1


def meeting() -> Scene:
    lease = held()
    return Scene(
        {
            "commit": lambda: Job.objects.commit(lease, 1, now=at(59)),
            "cancel": lambda: Job.objects.cancel(job_of(lease), actor="ada"),
        },
        lambda _run: None,
    )


def keys() -> Scene:
    key = queue()
    return Scene(
        {"one": lambda: enqueue(unique_key=key), "two": lambda: enqueue({"n": 2}, unique_key=key)},
        lambda _run: None,
    )


@pytest.mark.parametrize("scene", [meeting, keys])
def test_leaving_out_orders_that_cannot_matter_leaves_no_ending_out(race: Race, scene: Any) -> None:
    reduced = race.explore(scene, tolerate=(Exception,))
    full = race.explore(scene, tolerate=(Exception,), every_order=True)
    assert reduced.complete
    assert full.complete
    assert reduced.together == full.together
    assert reduced.schedules <= full.schedules == reduced.orders


def test_a_walk_that_is_cut_off_says_so(race: Race) -> None:
    explored = race.explore(meeting, most=1)
    assert (explored.schedules, explored.complete) == (1, False)


def test_it_lets_the_server_end_a_deadlock(race: Race) -> None:
    if not race.rows_are_locked:
        pytest.skip("this database has no row locks to deadlock on")

    def scene() -> Scene:
        first, second = enqueue(), enqueue()

        def lock(*ids: Any) -> Callable[[], str]:
            def program() -> str:
                with transaction.atomic():
                    for job_id in ids:
                        Job.objects.select_for_update().get(pk=job_id)
                return "both"

            return program

        def check(run: Run) -> None:
            assert "both" in run.answers.values()

        return Scene({"up": lock(first, second), "down": lock(second, first)}, check)

    explored = race.explore(scene, tolerate=(OperationalError,))
    assert explored.complete
    assert {("both", "both")} < explored.together
