"""Runs real verbs of the product one SQL statement at a time, in every order that the database allows.

    def scene():                                      # the world before, made anew for each schedule
        lease = held()
        def check(run): ...                           # what must hold afterwards, whatever the order was
        return Scene({"commit": lambda: Job.objects.commit(lease), "cancel": lambda: ...}, check)

    explored = race.explore(scene)

Each actor is a thread with a Django connection of its own, held before every statement that can meet another
actor's and before every COMMIT and ROLLBACK. The scheduler lets one statement go at a time. A statement that
waits for a lock is recognised by the server's own word (pg_blocking_pids) and stays pending while others go
on; where the whole file is locked instead of rows, BEGIN is let go only while nobody is in a transaction.
No sleep makes an order.

The tree of schedules is walked without state: each run repeats a prefix of choices, then goes on with the
actor that ran last; every other choice seen on the way is a new prefix. Prefixes are taken in the order of
their pre-emptions, the deepest first, so that a walk cut off by `most` has seen the simple orders first. Of
orders that differ only in steps which cannot meet (see Step.meets) one is run: each prefix carries the actors
that are asleep, because going on with them was tried at the same place and nothing since has touched theirs.
"""

from __future__ import annotations

import heapq
import queue
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.db import connections

from jobs import measures
from jobs.ledger.settle import Ended
from jobs.outcomes import Lease, Outcome, Refused
from tests.races.orders import Place, orders
from tests.races.players import ALIAS, Player, Prepare, Stage
from tests.races.steps import BEGIN, BESIDE, COMMIT, NOTHING, Step

PATIENCE = 20.0
"""Seconds after which a statement that neither ends nor waits for a lock fails the test."""
GLANCE = 0.002
"""Seconds that a statement which may meet a lock is given, before the server is asked whether it waits."""
LOOK = 0.1
"""The same for one that by all we know meets none."""


@dataclass(frozen=True)
class Scene:
    """What the actors do, by name, and what must hold when all have ended."""

    actors: dict[str, Callable[[], Any]]
    check: Callable[[Run], None]


@dataclass
class Run:
    """One schedule as it went."""

    choices: list[str] = field(default_factory=list)
    """The actors in the order in which they were let go on."""
    story: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    """The actors in the order in which their transactions were committed."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What each verb returned, or the exception that it raised."""
    waited: set[str] = field(default_factory=set)
    """The actors that had to wait for another one's lock."""
    stands_for: int = 1
    """How many orders this is one of; 0 where a run before has stood for it too."""

    def before(self, first: str, second: str) -> bool:
        """Return whether `first` had committed its last when `second` did; false when either never did."""
        order = {name: index for index, name in enumerate(self.commits)}
        return first in order and second in order and order[first] < order[second]


@dataclass
class Explored:
    """What a walk has seen."""

    schedules: int = 0
    """Orders that were run."""
    orders: int = 0
    """Orders that these stand for: those too that differ only in steps which cannot meet."""
    complete: bool = False
    """Whether every schedule was run, none left out by `most`."""
    waits: int = 0
    """Schedules in which at least one actor waited for another."""
    retries: int = 0
    """Transactions that the ledger ran again after a deadlock or a serialisation failure."""
    answers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What each actor answered under some schedule, as short text."""
    together: set[tuple[str, ...]] = field(default_factory=set)
    """The answers of all actors under one schedule, in the scene's order."""

    def add(self, run: Run) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.orders += run.stands_for
        self.waits += bool(run.waited)
        counted = measures.drain()
        self.retries += sum(int(str(c["count"])) for c in counted if c["measure"] == "transaction_retry")
        for name, answer in run.answers.items():
            self.answers[name].add(short(answer))
        self.together.add(tuple(short(answer) for answer in run.answers.values()))


class Race:
    """The scheduler and its actors; leaving it closes their connections."""

    def __init__(self, *prepare: Prepare, keeps_snapshots: bool = False) -> None:
        self.stage = Stage(list(prepare), keeps_snapshots=keeps_snapshots)
        self.players: list[Player] = []
        self.monitor = connections.create_connection(ALIAS)
        self.rows_are_locked = self.monitor.features.has_select_for_update

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.over = True  # after a failure some may still be held
        for player in self.players:
            player.leave()
        for player in self.players:
            player.join(PATIENCE)
        self.monitor.close()

    def explore(
        self,
        scene: Callable[[], Scene],
        *,
        most: int | None = None,
        every_statement: bool = False,
        every_order: bool = False,
        beside: frozenset[str] = NOTHING,
        tolerate: tuple[type[Exception], ...] = (),
        schedule: str = "",
    ) -> Explored:
        """Run `scene` under every schedule and check each; a failure carries the schedule it came from.

        Explored.orders tells how many orders those that were run stand for (tests/races/orders.py).
        `most` cuts the walk off; `every_statement` also holds before the statements that no other actor can
        meet, `every_order` runs also what differs only in steps that do not meet; `beside` names tables that
        only one of these actors touches; an actor may raise Refused and what `tolerate` names; `schedule`
        runs one order only, as a failure printed it.
        """
        self.stage.every_statement, self.stage.beside = every_statement, BESIDE | beside
        explored = Explored()
        todo: list[_Prefix] = [_Prefix(0, 0, 0, schedule.split(), NOTHING)]
        pushed = 0
        while todo and explored.schedules != most:
            prefix = heapq.heappop(todo)
            nodes = self._checked(scene(), prefix, explored, tolerate, every_order)
            if schedule:
                return explored
            switches = 0
            for depth, node in enumerate(nodes):
                for other, asleep in node.others(every_order) if depth >= len(prefix.choices) else []:
                    pushed += 1
                    choices = [n.chosen for n in nodes[:depth]] + [other]
                    heapq.heappush(
                        todo, _Prefix(switches + node.preempts(other), -depth, pushed, choices, asleep)
                    )
                switches += node.preempts(node.chosen)
        explored.complete = not todo
        return explored

    def _checked(
        self,
        scene: Scene,
        prefix: _Prefix,
        explored: Explored,
        tolerate: tuple[type[Exception], ...],
        every_order: bool,
    ) -> list[_Node]:
        run = Run()
        nodes, places = self._play(scene, prefix, run)
        run.stands_for = 1 if every_order else orders(places)
        explored.add(run)
        try:
            for name, answer in run.answers.items():
                expected = not isinstance(answer, Exception) or isinstance(answer, (Refused, *tolerate))
                assert expected, f"{name} raised {answer!r}"
            scene.check(run)
        except AssertionError as error:
            error.add_note(f"schedule {explored.schedules}: explore(..., schedule={' '.join(run.choices)!r})")
            error.add_note("\n".join(run.story))
            error.add_note("\n".join(f"{name} -> {answer!r}" for name, answer in run.answers.items()))
            raise
        return nodes

    def _play(self, scene: Scene, prefix: _Prefix, run: Run) -> tuple[list[_Node], list[Place]]:
        """Run one schedule; returns where it could have gone another way, and what was run.

        The latter is empty when a run before has stood for this one.
        """
        while len(self.players) < len(scene.actors):
            self.players.append(Player(self.stage))
        cast = self.players[: len(scene.actors)]
        for player, (name, program) in zip(cast, scene.actors.items(), strict=True):
            player.begin(name, program)
        self._settle(cast, run)
        nodes: list[_Node] = []
        asleep = prefix.asleep
        last, seen_before = "", False
        places: list[Place] = []
        while any(player.busy for player in cast):
            occupied = any(player.inside for player in cast)
            able = {p.name: p for p in cast if p.held and not (p.step.label == BEGIN and occupied)}
            if not able:  # all wait for locks: the server finds the deadlock
                self._settle(cast, run, patient=True)
                continue
            repeats = len(nodes) < len(prefix.choices)
            wanted = prefix.choices[len(nodes)] if repeats else last
            # When all are asleep the rest of this run has been seen; it only has to come to its end.
            awake = able if repeats else {name: p for name, p in able.items() if name not in asleep} or able
            chosen = awake.get(wanted) or next(iter(awake.values()))
            steps = {name: player.step for name, player in able.items()}
            node = _Node(chosen.name, last, steps, NOTHING if repeats else asleep)
            nodes.append(node)
            if not repeats:
                seen_before = seen_before or chosen.name in asleep
                asleep = frozenset(steps) if chosen.name in asleep else node.asleep_after(chosen.name, asleep)
            run.choices.append(chosen.name)
            run.story.append(f"{chosen.name}: {chosen.step.label}")
            last = chosen.name
            places.append(Place(chosen.name, chosen.step, chosen.arrived_at))
            chosen.let_go()
            self._settle(cast, run)
        run.answers = {player.name: player.answer for player in cast}
        return nodes, [] if seen_before else places

    def _settle(self, cast: Sequence[Player], run: Run, *, patient: bool = False) -> None:
        """Return when every statement that was let go has ended or waits for a lock.

        With `patient` at least one has to end: nothing else can happen any more.
        """
        ends = time.monotonic() + PATIENCE
        while patient or any(player.moving and not player.waits for player in cast):
            try:
                player = self.stage.events.get(timeout=GLANCE if patient or _may_wait(cast) else LOOK)
            except queue.Empty:
                if time.monotonic() > ends:
                    raise AssertionError(f"{[p.name for p in cast if p.moving]} never ended") from None
                if not patient:
                    self._ask_who_waits(cast, run)
                continue
            patient, waited = False, player.waits
            done = player.arrive(len(run.choices))
            if done.label == COMMIT:
                run.commits.append(player.name)
            if not player.busy:
                run.story.append(f"{player.name} -> {short(player.answer)}")
            if (done.final or waited) and any(other.waits for other in cast):
                self._ask_who_waits(cast, run)

    def _ask_who_waits(self, cast: Sequence[Player], run: Run) -> None:
        if not self.rows_are_locked:
            return
        moving = [player for player in cast if player.moving]
        pids = ",".join(str(player.pid) for player in moving)
        asked = (
            f"SELECT pid FROM unnest('{{{pids}}}'::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0"
        )
        self.monitor.ensure_connection()
        waiting = {row[0] for row in self.monitor.connection.execute(asked).fetchall()}
        for player in moving:
            if player.pid in waiting and not player.waits:
                run.waited.add(player.name)
                run.story.append(f"{player.name} waits for a lock")
            player.waits = player.pid in waiting


def _may_wait(cast: Sequence[Player]) -> bool:
    """Return whether one that moves may have met a lock: then the server is asked soon."""
    return any(
        player.step.may_wait_for(other.holds)
        for player in cast
        if player.moving and not player.waits
        for other in cast
        if other is not player and other.busy
    )


@dataclass(order=True)
class _Prefix:
    """A schedule to be tried: how it begins, and which actors are asleep when it has begun."""

    preemptions: int
    depth: int
    number: int
    choices: list[str] = field(compare=False)
    asleep: frozenset[str] = field(compare=False)


@dataclass(frozen=True)
class _Node:
    """A place in a run: who went on, and who could have."""

    chosen: str
    last: str
    able: dict[str, Step]
    asleep: frozenset[str]

    def preempts(self, name: str) -> bool:
        """Return whether going on with `name` interrupts one that could have gone on."""
        return self.last in self.able and self.last != name

    def others(self, every_order: bool) -> list[tuple[str, frozenset[str]]]:
        """Return who else has to be tried here, each with those that sleep meanwhile."""
        tried = {self.chosen}
        found = []
        for name in self.able:
            if name not in self.asleep | tried:
                asleep = NOTHING if every_order else self.asleep_after(name, self.asleep | tried)
                found.append((name, asleep))
                tried.add(name)
        return found

    def asleep_after(self, name: str, asleep: frozenset[str] | set[str]) -> frozenset[str]:
        """Return who of `asleep` sleeps on when `name` goes on: those whose next step it does not meet."""
        step = self.able[name]
        return frozenset(a for a in asleep if a != name and a in self.able and not self.able[a].meets(step))


def short(answer: Any) -> str:
    """Return an answer in a word or two: an outcome's code and reason, statuses, an error's code."""
    if isinstance(answer, Exception):
        return f"{type(answer).__name__} {getattr(answer, 'code', '')}".strip()
    if isinstance(answer, Outcome):
        return f"{answer.code} {answer.reason}".strip()
    if isinstance(answer, Lease):
        return "LEASE"
    if isinstance(answer, Ended):
        return str(answer.status)
    if isinstance(answer, list | tuple):
        return " ".join(short(part) for part in answer) or "nothing"
    return str(answer) if isinstance(answer, str | bool | None) else type(answer).__name__
