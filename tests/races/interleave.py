"""Runs real verbs of the product one SQL statement at a time, in every order that the database allows.

    def scene():                                      # the world before, made anew for each schedule
        lease = running()
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
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs import measures
from jobs.ledger.settle import Ended
from jobs.outcomes import Lease, Outcome, Refused

ALIAS = "default"
PATIENCE = 20.0
"""Seconds after which a statement that neither ends nor waits for a lock fails the test."""
GLANCE = 0.002
ENDS = ("COMMIT", "ROLLBACK")

# Rows that are only written under the lock of their job's row: with or without a hold before them the
# same orders are seen.
BESIDE = frozenset({"jobs_attempt", "jobs_effectslot", "jobs_change", "jobs_fencerefusal"})
_WRITE = re.compile(r"\b(LOCK TABLE|(?<!KEY )(?<!FOR )(?<!DO )UPDATE|INSERT INTO|DELETE FROM) \"?(\w+)")
_READ = re.compile(r"\b(?:FROM|JOIN) \"?(\w+)")
_LOCKING = re.compile(r"\bFOR (NO KEY UPDATE|UPDATE|SHARE)")
_FILE = frozenset({"the whole file"})
NOTHING: frozenset[str] = frozenset()
_UNHELD = ("pg_notify", "SAVEPOINT")


@dataclass(frozen=True)
class Step:
    """One statement, or the end of a transaction with all that the transaction has touched."""

    label: str
    reads: frozenset[str] = NOTHING
    shares: frozenset[str] = NOTHING
    """Tables locked against an exclusive lock only."""
    writes: frozenset[str] = NOTHING
    """Tables written, or with rows locked."""

    @property
    def ends(self) -> bool:
        return self.label in ENDS

    @property
    def touches(self) -> frozenset[str]:
        return self.reads | self.shares | self.writes

    def meets(self, other: Step) -> bool:
        """Return whether the order of the two can matter.

        What is not committed nobody reads; a lock is met by a lock; the end of a transaction is met by
        whatever reads what it wrote or waits for what it locked.
        """
        if self.ends or other.ends:
            return bool(
                self.writes & other.touches or other.writes & self.touches
                if self.ends and other.ends
                else self.writes & other.touches or self.shares & other.writes
                if self.ends
                else other.writes & self.touches or other.shares & self.writes
            )
        return bool(self.writes & other.writes or self.writes & other.shares or self.shares & other.writes)

    def after(self, earlier: Step) -> Step:
        """Return this step with what its transaction touched before."""
        return replace(
            self,
            reads=self.reads | earlier.reads,
            shares=self.shares | earlier.shares,
            writes=self.writes | earlier.writes,
        )


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

    def before(self, first: str, second: str) -> bool:
        """Return whether `first` had committed its last when `second` did; false when either never did."""
        order = {name: index for index, name in enumerate(self.commits)}
        return first in order and second in order and order[first] < order[second]


@dataclass
class Explored:
    """What a walk has seen."""

    schedules: int = 0
    complete: bool = False
    """Whether every schedule was run, none left out by `most` or `seconds`."""
    waits: int = 0
    """Schedules in which at least one actor waited for another."""
    retries: int = 0
    """Transactions that the ledger ran again after a deadlock or a serialisation failure."""
    answers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What each actor answered under some schedule, as short text."""
    together: set[tuple[str, ...]] = field(default_factory=set)
    """The answers of all actors under one schedule, in the scene's order."""


class Race:
    """The scheduler and its actors' connections; close it at the end."""

    def __init__(self, *, prepare: Callable[[BaseDatabaseWrapper], None] | None = None) -> None:
        self.events: queue.SimpleQueue[Player] = queue.SimpleQueue()
        self.players: list[Player] = []
        self.monitor = connections.create_connection(ALIAS)
        self.rows_are_locked = self.monitor.features.has_select_for_update
        self.prepare = prepare
        self.every_statement = self.over = False
        self.tolerated: tuple[type[Exception], ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True  # after a failure some may still be held
        for player in self.players:
            player.programs.put(None)
            player.go.release()
        for player in self.players:
            player.join(PATIENCE)
        self.monitor.close()

    def explore(
        self,
        scene: Callable[[], Scene],
        *,
        most: int | None = None,
        seconds: float | None = None,
        every_statement: bool = False,
        every_order: bool = False,
        tolerate: tuple[type[Exception], ...] = (),
        schedule: str = "",
    ) -> Explored:
        """Run `scene` under every schedule and check each; a failure carries the schedule it came from.

        `most` and `seconds` cut the walk off; `every_statement` also holds before the statements that no
        other actor can meet, `every_order` runs also what differs only in steps that do not meet; an actor
        may raise Refused and what `tolerate` names; `schedule` runs one order only, as a failure printed it.
        """
        self.every_statement, self.tolerated = every_statement, tolerate
        explored = Explored()
        ends = time.monotonic() + (seconds or float("inf"))
        todo: list[_Prefix] = [_Prefix(0, 0, 0, schedule.split(), NOTHING)]
        pushed = 0
        while todo and explored.schedules != most and time.monotonic() < ends:
            prefix = heapq.heappop(todo)
            nodes = self._checked(scene(), prefix, explored)
            if schedule:
                return explored
            switches = 0
            for depth, node in enumerate(nodes):
                if depth >= len(prefix.choices):
                    tried = {node.chosen}
                    for other in node.able:
                        if other not in node.asleep | tried:
                            pushed += 1
                            cost = switches + (node.last in node.able and node.last != other)
                            choices = [n.chosen for n in nodes[:depth]] + [other]
                            asleep = node.asleep_after(
                                other, node.asleep | (NOTHING if every_order else tried)
                            )
                            heapq.heappush(todo, _Prefix(cost, -depth, pushed, choices, asleep))
                            tried.add(other)
                switches += node.last in node.able and node.last != node.chosen
        explored.complete = not todo
        return explored

    def _checked(self, scene: Scene, prefix: _Prefix, explored: Explored) -> list[_Node]:
        run = Run()
        nodes = self._play(scene, prefix, run)
        explored.schedules += 1
        explored.waits += bool(run.waited)
        counted = measures.drain()
        explored.retries += sum(int(str(c["count"])) for c in counted if c["measure"] == "transaction_retry")
        for name, answer in run.answers.items():
            explored.answers[name].add(short(answer))
        explored.together.add(tuple(short(answer) for answer in run.answers.values()))
        try:
            for name, answer in run.answers.items():
                expected = not isinstance(answer, Exception) or isinstance(answer, (Refused, *self.tolerated))
                assert expected, f"{name} raised {answer!r}"
            scene.check(run)
        except AssertionError as error:
            error.add_note(f"schedule {explored.schedules}: explore(..., schedule={' '.join(run.choices)!r})")
            error.add_note("\n".join(run.story))
            error.add_note("\n".join(f"{name} -> {answer!r}" for name, answer in run.answers.items()))
            raise
        return nodes

    def _play(self, scene: Scene, prefix: _Prefix, run: Run) -> list[_Node]:
        """Run one schedule; returns where it could have gone another way."""
        while len(self.players) < len(scene.actors):
            self.players.append(Player(self))
        cast = self.players[: len(scene.actors)]
        for player, (name, program) in zip(cast, scene.actors.items(), strict=True):
            player.begin(name, program)
        self._settle(cast, run)
        nodes: list[_Node] = []
        asleep = prefix.asleep
        last = ""
        while any(player.busy for player in cast):
            occupied = any(player.inside for player in cast)
            able = {p.name: p for p in cast if p.held and not (p.step.label == "BEGIN" and occupied)}
            if not able:  # all wait for locks: the server finds the deadlock
                self._settle(cast, run, patient=True)
                continue
            repeats = len(nodes) < len(prefix.choices)
            wanted = prefix.choices[len(nodes)] if repeats else last
            awake = able if repeats else {name: p for name, p in able.items() if name not in asleep} or able
            chosen = awake.get(wanted) or next(iter(awake.values()))
            steps = {name: player.step for name, player in able.items()}
            node = _Node(chosen.name, last, steps, NOTHING if repeats else asleep)
            nodes.append(node)
            if not repeats:
                asleep = frozenset(steps) if chosen.name in asleep else node.asleep_after(chosen.name, asleep)
            run.choices.append(chosen.name)
            run.story.append(f"{chosen.name}: {chosen.step.label}")
            last = chosen.name
            chosen.let_go()
            self._settle(cast, run)
        run.answers = {player.name: player.answer for player in cast}
        return nodes

    def _settle(self, cast: Sequence[Player], run: Run, *, patient: bool = False) -> None:
        """Return when every statement that was let go has ended or waits for a lock.

        With `patient` at least one has to end: nothing else can happen any more.
        """
        ends = time.monotonic() + PATIENCE
        while patient or any(player.moving and not player.waits for player in cast):
            try:
                moved = self.events.get(timeout=GLANCE)
            except queue.Empty:
                if time.monotonic() > ends:
                    raise AssertionError(f"{[p.name for p in cast if p.moving]} never ended") from None
                if not patient:
                    self._ask_who_waits(cast, run)
            else:
                freed = moved.step.ends or moved.waits
                moved.arrived(run)
                patient = False
                if freed and any(player.waits for player in cast):
                    self._ask_who_waits(cast, run)

    def _ask_who_waits(self, cast: Sequence[Player], run: Run) -> None:
        moving = [player for player in cast if player.moving]
        if not self.rows_are_locked:
            return
        with self.monitor.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM unnest(%s::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0",
                [[player.pid for player in moving]],
            )
            waiting = {row[0] for row in cursor.fetchall()}
        for player in moving:
            if player.pid in waiting and not player.waits:
                run.waited.add(player.name)
                run.story.append(f"{player.name} waits for a lock")
            player.waits = player.pid in waiting


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

    def asleep_after(self, name: str, asleep: frozenset[str] | set[str]) -> frozenset[str]:
        """Return who of `asleep` sleeps on when `name` goes on: those whose next step it does not meet."""
        step = self.able[name]
        return frozenset(a for a in asleep if a != name and a in self.able and not self.able[a].meets(step))


class Player(threading.Thread):
    """One actor: a thread and its connection; `held` before a statement, `moving` in one."""

    def __init__(self, race: Race) -> None:
        super().__init__(daemon=True)
        self.race = race
        self.programs: queue.SimpleQueue[tuple[str, Callable[[], Any]] | None] = queue.SimpleQueue()
        self.go = threading.Semaphore(0)
        self.name = ""
        self.step = self._next = self._touched = Step("")
        self.pid = 0
        self.held = self.moving = self.waits = self.busy = self.inside = False
        self.answer: Any = None
        self.start()

    # -- the scheduler's side

    def begin(self, name: str, program: Callable[[], Any]) -> None:
        """Start a program; it stops before its first statement."""
        self.name, self.step = name, Step("")
        self.busy = self.moving = True
        self.held = self.inside = False
        self.programs.put((name, program))

    def let_go(self) -> None:
        """Let the held statement run."""
        if self.step.label == "BEGIN":
            self.inside = True
        self.held, self.moving = False, True
        self.go.release()

    def arrived(self, run: Run) -> None:
        """Note that the statement let go has ended: the thread is held before the next, or at its end."""
        if self.step.ends:
            self.inside = False
            if self.step.label == "COMMIT":
                run.commits.append(self.name)
        self.moving = self.waits = False
        self.step = self._next
        self.held = self.busy = bool(self.step.label)
        if not self.busy:
            run.story.append(f"{self.name} -> {short(self.answer)}")

    # -- the actor's side

    def run(self) -> None:
        connection = connections[ALIAS]
        try:
            connection.ensure_connection()
            if self.race.prepare:
                self.race.prepare(connection)
            for name in ("_commit", "_rollback"):
                self._hold_before(connection, name)
            with connection.execute_wrapper(self._statement):
                while (task := self.programs.get()) is not None:
                    if self.race.rows_are_locked:
                        connection.ensure_connection()
                        self.pid = connection.connection.info.backend_pid
                    self.answer = answer_of(task[1])
                    self._report(Step(""))
        finally:
            connection.close()

    def _hold_before(self, connection: BaseDatabaseWrapper, name: str) -> None:
        ending = getattr(connection, name)

        def held() -> Any:
            self._hold(Step(name.removeprefix("_").upper()).after(self._touched))
            self._touched = Step("")
            return ending()

        setattr(connection, name, held)

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        step, table = step_of(sql)
        self._touched = step.after(self._touched)
        if not any(word in sql for word in _UNHELD) and (self.race.every_statement or table not in BESIDE):
            self._hold(step)
        return execute(sql, params, many, context)

    def _hold(self, step: Step) -> None:
        if not self.race.over:
            self._report(step)
            self.go.acquire()

    def _report(self, step: Step) -> None:
        self._next = step
        self.race.events.put(self)


def answer_of(program: Callable[[], Any]) -> Any:
    """Return what a program returned, or what it raised."""
    try:
        return program()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is this actor's answer)
        return error


def step_of(sql: str) -> tuple[Step, str]:
    """Return what a statement touches, and the one table that it is about."""
    if sql.startswith("BEGIN"):
        return Step("BEGIN", writes=_FILE), ""
    reads = frozenset(_READ.findall(sql))
    found = _WRITE.search(sql)
    if found is None:
        first = next(iter(_READ.findall(sql)), "")
        if _LOCKING.search(sql):
            return Step(f"SELECT FOR {first}", reads, writes=frozenset({first})), first
        return Step(f"SELECT {first}" if first else sql.strip()[:40], reads), first
    verb, table = found[1].split()[0], found[2]
    if "ROW SHARE MODE" in sql:
        return Step(f"{verb} {table}", shares=frozenset({table})), table
    return Step(f"{verb} {table}", reads, writes=frozenset({table})), table


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
