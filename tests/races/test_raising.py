"""A raise that two people have to want: of all that answer it at once one lands, and it is used once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.models import AuditEntry, Job, RaiseProposal, Scheduler
from jobs.operations import raising
from tests.races.ground import PERSON
from tests.races.interleave import Race, Run, Scene

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _takes_two(settings: Any) -> None:
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}


def person() -> User:
    return User.objects.create_superuser(f"person-{next(_numbers)}")


def asked() -> RaiseProposal:
    """Return a raise that one person asked for, and that nobody has answered."""
    epoch = Scheduler.objects.get().epoch
    return raising.propose(actor=person(), expected=epoch, reason="two owners")


def approve(proposal: RaiseProposal) -> Callable[[], Any]:
    second = person()
    return lambda: raising.approve(proposal.pk, actor=second, reason="seen too")


def codes(run: Run) -> list[str]:
    return sorted(getattr(answer, "code", "") for answer in run.answers.values())


def test_of_two_who_confirm_at_once_one_raises(race: Race) -> None:
    def scene() -> Scene:
        proposal = asked()
        told = AuditEntry.objects.filter(action="raise_epoch")
        before = told.count()

        def check(run: Run) -> None:
            assert codes(run) in (["", "EPOCH_MOVED"], ["", "RAISE_DECIDED"])
            assert Scheduler.objects.get().epoch == proposal.epoch + 1
            assert told.count() == before + 1

        return Scene({"one": approve(proposal), "two": approve(proposal)}, check)

    assert race.explore(scene).complete


def test_what_is_declined_at_the_same_moment_is_raised_or_not_and_never_both(race: Race) -> None:
    def scene() -> Scene:
        proposal, third = asked(), person()

        def check(run: Run) -> None:
            assert codes(run) == ["", "RAISE_DECIDED"]
            proposal.refresh_from_db()
            raised = Scheduler.objects.get().epoch > proposal.epoch
            assert (proposal.decision == "approved") is raised

        def decline() -> Any:
            raising.reject(proposal.pk, actor=third, reason="one worker would do")

        return Scene({"confirm": approve(proposal), "decline": decline}, check)

    assert race.explore(scene).complete


def test_what_another_door_raises_at_the_same_moment_is_raised_once(race: Race) -> None:
    def scene() -> Scene:
        proposal = asked()

        def check(run: Run) -> None:
            assert codes(run) == ["", "EPOCH_MOVED"]
            proposal.refresh_from_db()
            assert Scheduler.objects.get().epoch == proposal.epoch + 1
            assert (proposal.decision == "approved") is (run.answers["raise"] != proposal.epoch + 1)

        def raise_it() -> Any:
            return Job.objects.raise_epoch(expected=proposal.epoch, **PERSON)

        return Scene({"confirm": approve(proposal), "raise": raise_it}, check)

    assert race.explore(scene).complete


def test_of_two_who_ask_at_once_one_is_told_of_the_other(race: Race) -> None:
    def scene() -> Scene:
        for left in RaiseProposal.objects.filter(decision=""):
            raising.reject(left.pk, actor=person(), reason="of the last schedule")
        epoch, one, two = Scheduler.objects.get().epoch, person(), person()

        def check(run: Run) -> None:
            assert codes(run) == ["", "RAISE_ASKED"]
            assert RaiseProposal.objects.filter(decision="").count() == 1

        def ask(who: User) -> Callable[[], Any]:
            return lambda: raising.propose(actor=who, expected=epoch, reason="two owners")

        return Scene({"one": ask(one), "two": ask(two)}, check)

    assert race.explore(scene).complete
