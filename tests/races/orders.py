"""How many orders of the same steps one run stands for, where only those that meet have to keep theirs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from tests.races.steps import Step


class Place(NamedTuple):
    """One step of a run: whose, what, and how many steps of all had to be let go before it could be."""

    actor: str
    step: Step
    possible_at: int


def orders(places: Sequence[Place]) -> int:
    """Return the number of orders that keep each actor's own and that of every two steps which meet.

    A step that came after another one's end only because it waited for its lock goes on doing so.
    """
    actors = list(dict.fromkeys(place.actor for place in places))
    steps: list[list[list[int]]] = [[] for _ in actors]
    """For each actor's steps, how many of each other actor's must come before."""
    for index, (actor, step, possible_at) in enumerate(places):
        needs, met = [0] * len(actors), [0] * len(actors)
        for earlier, (other, before, _) in enumerate(places[:index]):
            met[actors.index(other)] += 1
            # The last step let go before it became possible is what made it so.
            if step.meets(before) or earlier == possible_at - 1:
                needs[actors.index(other)] = met[actors.index(other)]
        steps[actors.index(actor)].append(needs)

    @cache
    def rest(done: tuple[int, ...]) -> int:
        found = 0
        for number, own in enumerate(steps):
            if done[number] == len(own):
                continue
            if all(have >= need for have, need in zip(done, own[done[number]], strict=True)):
                found += rest((*done[:number], done[number] + 1, *done[number + 1 :]))
        return found or int(all(d == len(own) for d, own in zip(done, steps, strict=True)))

    return rest((0,) * len(actors)) if places else 0
