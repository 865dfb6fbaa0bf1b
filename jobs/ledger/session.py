"""A ledger transaction: opened so that the scheduler stands still and the plans are pinned (contract §12).

Lock order everywhere: scheduler, parent job, jobs by id, slot. T is judged after the row locks: on
PostgreSQL by the statement itself (`clock_timestamp()` in a statement that starts after the lock), on
SQLite by one reading after BEGIN IMMEDIATE.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from django.db import OperationalError, connections, transaction

from jobs import measures
from jobs.ledger import prepared
from jobs.ledger.arrays import literal
from jobs.ledger.dialect import NUMBERS, ONCE, SHAPES, sql
from jobs.vocabulary import JobColumnVocabulary

log = logging.getLogger("interlock.ledger")
Result = TypeVar("Result")
Encoded = dict[str, Any]
"""A row list as parameters, by name."""
RowLists = Mapping[str, "Sequence[dict[str, Any]] | Encoded"]

# The queue churns faster than ANALYZE runs. Four plan flips of 2 to 45 times were measured, so index order
# and nested loops are pinned, for this transaction only. The time-outs end a session that was paused while
# it held the lock that a raise of the epoch waits for: after two seconds, which began before the raise's own.
PINNED = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; "
    "SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan; "
    "SET LOCAL lock_timeout = '5s'; "
    "SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '2s'; "
)
HOLD_SCHEDULER = "LOCK TABLE jobs_scheduler IN ROW SHARE MODE"
OPEN_FENCED = PINNED + HOLD_SCHEDULER
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
OPEN_EXCLUSIVE = "SET LOCAL lock_timeout = '2s'; LOCK TABLE jobs_scheduler IN EXCLUSIVE MODE"

MANY = 50
"""From so many rows on, SQLite is given what all of them have in common as one parameter each. Taking a field
out of a JSON row took it 1.3 µs, which for 19 fields was most of an insert; a few rows are not worth another text.
"""
RETRIES = 5
_AGAIN = {"40001", "40P01"}  # serialisation failure, deadlock: the whole transaction may be tried again


class Session:
    """One open ledger transaction on one connection, for one vocabulary."""

    def __init__(
        self, using: str, vocabulary: JobColumnVocabulary, now: datetime | None, *, pinned: bool = False
    ) -> None:
        self.using = using
        self.pinned = pinned
        """Whether plans are pinned in this transaction, so that statements may be prepared."""
        self.connection = connections[using]
        self.vendor = self.connection.vendor
        self.vocabulary = vocabulary
        self._given = now
        self._instant: datetime | None = now
        self.refused: list[dict[str, Any]] = []
        """Refusals found in this transaction, to be kept in one of their own afterwards."""

    @property
    def locks_rows(self) -> bool:
        """Whether this database has row locks; SQLite's write lock covers the whole file instead."""
        return self.vendor == "postgresql"

    @property
    def instant(self) -> datetime:
        """T on SQLite, read once after BEGIN IMMEDIATE."""
        if self._instant is None:
            self._instant = datetime.now(UTC)
        return self._instant

    def run(
        self, text: str, rows: RowLists | None = None, *, prepare: bool = False, **params: Any
    ) -> list[Any]:
        """Execute a template and return its rows. `rows` maps a shape to its row list.

        `prepare` says that the statement needs no plan that could grow old.
        """
        with self._cursor(prepare) as cursor:
            self._execute(cursor, text, rows, params)
            return cursor.fetchall() if cursor.description else []

    def write(self, text: str, rows: RowLists | None = None, *, prepare: bool = False, **params: Any) -> int:
        """Execute a template and return how many rows it wrote; `WITH` must not be its first word.

        Python's sqlite3 counts for what begins with INSERT, UPDATE or DELETE only.
        """
        with self._cursor(prepare) as cursor:
            self._execute(cursor, text, rows, params)
            return int(cursor.rowcount)

    def _cursor(self, prepare: bool) -> Any:
        return prepared.cursor(self.connection) if prepare or self.pinned else self.connection.cursor()

    def _execute(self, cursor: Any, text: str, rows: RowLists | None, params: dict[str, Any]) -> None:
        values = self._values(rows, params)
        once = frozenset(values.keys() & ONCE) if self.vendor == "sqlite" else frozenset()
        cursor.execute(sql(text, self.vocabulary, self.vendor, once), values)

    def clock(self) -> datetime:
        """Return T as the database has it now; what is sent later than this was sent after it."""
        now = self.moment(self.run("SELECT {clock}")[0][0])
        assert now is not None  # noqa: S101
        return now

    def _values(self, rows: RowLists | None, params: dict[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {name: self.value(value) for name, value in params.items()}
        values["now"] = self.stamp(self.instant) if self.vendor == "sqlite" else self._given
        for shape, entries in (rows or {}).items():
            values.update(entries if isinstance(entries, dict) else self.encode(shape, entries))
        return values

    def lock(self, ids: Sequence[Any]) -> None:
        """Hold the job rows `ids`, in id order, before any is judged."""
        if self.locks_rows and ids:
            self.run(LOCK_ROWS, {"ids": [{"id": self.key(i)} for i in ids]})

    def encode(self, shape: str, entries: Sequence[dict[str, Any]]) -> Encoded:
        """Return a row list as parameters, for statements that share one."""
        columns = SHAPES[shape]
        lists = [[entry.get(name) for entry in entries] for name in columns]
        if self.vendor == "postgresql":
            return {
                f"{shape}_{name}": literal(values, numbers=kind in NUMBERS)
                for (name, kind), values in zip(columns.items(), lists, strict=True)
            }
        if len(columns) == 1:
            return {shape: _dumps(lists[0])}
        for index, kind in enumerate(columns.values()):
            adapt: Callable[[Any], str] | None = {"seconds": self._later, "time": self.stamp}.get(kind)
            if adapt:
                lists[index] = [None if value is None else adapt(value) for value in lists[index]]
        once = {}
        if len(entries) >= MANY:
            for name, values in zip(columns, lists, strict=True):
                if values.count(values[0]) == len(values):
                    once[f"{shape}_{name}"] = self.value(values[0])
            lists = [
                values for name, values in zip(columns, lists, strict=True) if f"{shape}_{name}" not in once
            ]
        return {shape: _dumps(list(zip(*lists, strict=True)) or [()] * len(entries)), **once}

    def _later(self, seconds: float) -> str:
        return self.stamp(self.instant + timedelta(seconds=seconds))

    def stamp(self, moment: Any) -> str:
        """Return an instant as Django stores it here; one form everywhere, so that text order is time order."""
        if not isinstance(moment, datetime):
            return str(moment)
        if self.vendor == "sqlite":
            return str(moment.astimezone(UTC).replace(tzinfo=None))
        return moment.astimezone(UTC).isoformat()

    def value(self, value: Any) -> Any:
        """Adapt one parameter: times and ids enter raw SQL through here only."""
        if self.vendor == "sqlite":
            if isinstance(value, datetime):
                return self.stamp(value)
            if isinstance(value, uuid.UUID):
                return value.hex
        return value

    @staticmethod
    def key(value: Any) -> Any:
        """Return an id as a row list carries it."""
        return value.hex if isinstance(value, uuid.UUID) else value

    @staticmethod
    def moment(value: Any) -> datetime | None:
        """Return a time column read by raw SQL as an aware datetime."""
        return None if value is None else _moment(value)


@lru_cache(maxsize=2048)
def _moment(value: Any) -> datetime:
    """Rows of one batch share most of their instants."""
    if type(value) is int:
        return EPOCH + timedelta(microseconds=value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


LOCK_ROWS = """
SELECT 1 FROM {table} WHERE {id} {among:ids} ORDER BY {id} {lock}
"""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} does not belong into a row list")


def transact(
    work: Callable[[Session], Result],
    *,
    using: str,
    vocabulary: JobColumnVocabulary,
    now: datetime | None = None,
    exclusive: bool = False,
    durable: bool = True,
    fenced: bool = True,
) -> Result:
    """Run `work` in one ledger transaction and return what it returns.

    `durable` refuses to run inside a caller's transaction, begun by an atomic block or by autocommit turned
    off: a worker's verb must be final when it returns. A person's verb joins the caller's, so that its audit
    row stands and falls with it; that one must be at READ COMMITTED. `exclusive` is the raise: it waits for
    every fenced transaction under way. A serialisation failure or deadlock is answered by running the whole
    transaction again, bounded and counted; inside a caller's transaction it cannot be, and is raised.
    """
    connection = connections[using]
    block = connection.in_atomic_block
    manual = not block and connection.connection is not None and not connection.autocommit
    outermost = not (block or manual)
    if durable and manual:
        # Django's own refusal knows of atomic blocks only, and what this wrote would wait for the caller.
        raise transaction.TransactionManagementError(
            "This verb must be final when it returns, so it cannot be called with autocommit off."
        )
    for attempt in range(RETRIES + 1):
        try:
            if manual:
                _begin(connection)
            with transaction.atomic(using=using, durable=durable):
                if connection.vendor == "postgresql" and (fenced or exclusive):
                    with connection.cursor() as cursor:
                        if not outermost:
                            _need_read_committed(cursor)
                        cursor.execute(_opening(exclusive=exclusive, outermost=outermost))
                return work(Session(using, vocabulary, now, pinned=fenced and outermost and not exclusive))
        except OperationalError as error:
            if not outermost or attempt == RETRIES or not _may_run_again(error):
                raise
            measures.count("transaction_retry")
            log.warning("transaction run again", extra={"cause": str(error).splitlines()[0]})
            # Jitter, so that the two that met do not meet again.
            time.sleep(random.uniform(0, 0.02) * (attempt + 1))
    raise AssertionError("unreachable")


def _begin(connection: Any) -> None:
    """Begin the caller's transaction where turning autocommit off has not: on SQLite, before the first write.

    And Python knows a write there by its first word, which ours do not begin with.
    """
    if connection.vendor == "sqlite" and not connection.connection.in_transaction:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")


def _opening(*, exclusive: bool, outermost: bool) -> str:
    """Return what a ledger transaction opens with. A caller's transaction is not ours to pin or to time out."""
    if exclusive:
        return OPEN_EXCLUSIVE
    return READ_COMMITTED + OPEN_FENCED if outermost else HOLD_SCHEDULER


def _need_read_committed(cursor: Any) -> None:
    """Refuse a caller's transaction that keeps one snapshot: it would not see what our locks waited for.

    A cancel there left alive a child that was born while it waited for the parent's row.
    """
    cursor.execute("SHOW transaction_isolation")
    level = cursor.fetchone()[0]
    if level != "read committed":
        raise transaction.TransactionManagementError(
            f"This verb needs a transaction at READ COMMITTED; the caller's is at {level.upper()}."
        )


def _may_run_again(error: OperationalError) -> bool:
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _AGAIN or "database is locked" in str(error)


_dumps = json.JSONEncoder(ensure_ascii=False, default=_plain, separators=(",", ":")).encode


def attempt_prefix() -> str:
    """Return all of new attempt ids but their last five digits, which number the rows of one claim.

    48 bits of milliseconds, so that ids sort by age; then 54 random bits, drawn once for a claim. Drawing them
    for each row took the server a sixth of the claim's time.
    """
    bits = secrets.randbits(54)
    noise = f"{bits & (2**52 - 1):013x}"
    # Version 4 and its variant, where RFC 9562 has them.
    return f"{time.time_ns() // 1_000_000:012x}4{noise[:3]}{8 + (bits >> 52):x}{noise[3:]}"
