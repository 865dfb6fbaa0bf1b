"""What differs between the two databases: six fragments, and how a statement's text is rendered.

A statement is a template, read line by line. `?a,b|` in front of a line keeps it only for a
vocabulary that maps both fields. In braces: a standard field (its column), `:status` (its written
word), a fragment from here, or `rows:shape` (a row list `r`; see Dialect.rows).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache

from jobs.status import CLAIMABLE, IDLE, REQUESTABLE, RETRYABLE, REVISABLE, TERMINAL, JobStatus
from jobs.vocabulary import JobColumnVocabulary

STATUSES = {
    "claimable": CLAIMABLE,
    "idle": IDLE,
    "requestable": REQUESTABLE,
    "retryable": RETRYABLE,
    "revisable": REVISABLE,
    "terminal": TERMINAL,
}
"""Sets of statuses by the name that a template uses; all are read off the transition table."""

_PLACE = re.compile(r"\{(?!rows:)([^{}]+)\}")
_ROWS = re.compile(r"\{rows:(\w+)\}")
_READ = re.compile(r"\br\.(\w+|\*)")

# shape -> column -> type. `seconds` is a delay that the statement adds to T.
SHAPES: dict[str, dict[str, str]] = {
    "ids": {"id": "id"},
    "leases": {
        "id": "id",
        "attempt_id": "uuid",
        "generation": "bigint",
        "worker_id": "text",
        "epoch": "bigint",
        "cancel_generation": "bigint",
        "revision": "int",
        "input_digest": "text",
        "ttl": "seconds",
        "result": "text",
        "result_digest": "text",
        "log": "text",
    },
    "endings": {
        "id": "id",
        "attempt_id": "uuid",
        "generation": "bigint",
        "worker_id": "text",
        "epoch": "bigint",
        "state_version": "bigint",
        "wish": "text",
        "retry": "int",
        "excused": "int",
        "bump": "int",
        "forced": "int",
        "matter": "int",
        "delay": "seconds",
        "at_once": "int",
        "wait_reason": "text",
        "wait_total": "seconds",
        "error_code": "text",
        "error_message": "text",
        "spent_code": "text",
        "actor": "text",
        "reason": "text",
    },
    "closings": {
        "attempt_id": "uuid",
        "status": "text",
        "result": "text",
        "result_digest": "text",
        "error_code": "text",
        "error_message": "text",
        "traceback": "text",
        "log": "text",
    },
    "notes": {
        "attempt_id": "uuid",
        "beats": "int",
        "progress_done": "bigint",
        "progress_total": "bigint",
        "progress_note": "text",
        "log": "text",
    },
    "minutes": {
        "minute": "time",
        "queue": "text",
        "kind": "text",
        "measure": "text",
        "bucket": "bigint",
        "count": "bigint",
        "total": "float",
    },
    "jobs": {
        "id": "id",
        "kind": "text",
        "queue": "text",
        "label": "text",
        "priority": "int",
        "input": "text",
        "input_digest": "text",
        "unique_key": "text",
        "unique_scope": "text",
        "concurrency_key": "text",
        "parent_id": "id",
        "enqueued_by": "text",
        "traceparent": "text",
        "delay": "seconds",
        "due_at": "time",
        "deadline": "seconds",
        "deadline_at": "time",
        "lease_seconds": "int",
        "max_attempts": "int",
        "tags": "text",
    },
    "seen": {"id": "id", "input_digest": "text"},
    "attributes": {"id": "id", "name": "text", "value": "text"},
}

ONCE = frozenset(f"{shape}_{name}" for shape, columns in SHAPES.items() for name in columns)
"""The parameters that stand for a column of a row list on SQLite, where it is the same in all rows."""
NUMBERS = frozenset(["int", "bigint", "float", "seconds"])
_TYPES = {"seconds": "float8", "time": "timestamptz", "float": "float8", "int": "int", "bigint": "bigint"}


@dataclass(frozen=True)
class Dialect:
    """The fragments of one database, by name."""

    vendor: str
    fragments: Mapping[str, str]

    def rows(self, shape: str, id_type: str, read: set[str], once: Set[str]) -> str:
        """Return a row source `r` of those columns of a shape that a statement reads (`*` is all).

        On PostgreSQL each is an array parameter. On SQLite all are in one JSON parameter named like the shape,
        each row a list: taking a field out of an object costs half as much again. Columns in `once`
        have a parameter of their own instead.
        """
        columns = {name: kind for name, kind in SHAPES[shape].items() if name in read or "*" in read}
        if self.vendor == "postgresql":
            types = [id_type if kind == "id" else _TYPES.get(kind, kind) for kind in columns.values()]
            arrays = [f"%({shape}_{name})s::{kind}[]" for name, kind in zip(columns, types, strict=True)]
            return f"unnest({', '.join(arrays)}) AS r({', '.join(columns)})"
        if len(SHAPES[shape]) == 1:
            (name,) = SHAPES[shape]
            return f"(SELECT value AS {name} FROM json_each(%({shape})s)) AS r"
        each = [name for name in SHAPES[shape] if f"{shape}_{name}" not in once]
        picks = ", ".join(
            f"json_extract(value, '$[{each.index(name)}]') AS {name}"
            if name in each
            else f"%({shape}_{name})s AS {name}"
            for name in columns
        )
        return f"(SELECT {picks} FROM json_each(%({shape})s)) AS r"


_SQLITE_PLUS = (
    "strftime('%%Y-%%m-%%d %%H:%%M:%%S', substr({0}, 1, 19), ({1}) || ' seconds') || substr({0}, 20)"
)

POSTGRESQL = Dialect(
    "postgresql",
    {
        # A given instant wins: only drills and tests send one (contract §2).
        "clock": "COALESCE(%(now)s::timestamptz, clock_timestamp())",
        "lock": "FOR NO KEY UPDATE",
        "share": "FOR SHARE",
        "share_rows": "FOR SHARE OF j",
        "skip_locked": "FOR NO KEY UPDATE OF j SKIP LOCKED",
        "skip_locked_rows": "FOR NO KEY UPDATE SKIP LOCKED",
        "attempt_uuid": "(%(prefix)s || lpad(to_hex(picked.number), 5, '0'))::uuid",
        "least": "LEAST",
        "greatest": "GREATEST",
        "j": "j.",
        "s": "s.",
        "xid": "pg_current_xact_id()::text::bigint",
        "horizon": "pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
        "no_time": "NULL::timestamptz",
        "false": "false",
        "far": "'infinity'::timestamptz",
    },
)

SQLITE = Dialect(
    "sqlite",
    {
        # Read by the session after BEGIN IMMEDIATE, so that it is later than the lock.
        "clock": "%(now)s",
        "lock": "",
        "share": "",
        "share_rows": "",
        "skip_locked": "",
        "skip_locked_rows": "",
        "attempt_uuid": "%(prefix)s || printf('%%05x', picked.number)",
        "least": "MIN",
        "greatest": "MAX",
        "j": "",
        "s": "",
        "xid": "0",
        # One writer at a time: what is visible is all that there is.
        "horizon": "1",
        "no_time": "NULL",
        "false": "0",
        "far": "'9999-12-31 23:59:59'",
    },
)

DIALECTS = {dialect.vendor: dialect for dialect in (POSTGRESQL, SQLITE)}


@cache
def render(text: str, vocabulary_key: int, vendor: str, once: frozenset[str]) -> str:
    """Return the SQL of a template for one vocabulary and database; cached for the process's life."""
    vocabulary = _vocabularies[vocabulary_key]
    dialect = DIALECTS[vendor]
    lines = []
    for line in text.strip("\n").splitlines():
        condition, bar, rest = line.partition("|") if line.startswith("?") else ("", "", line)
        if bar and not all(
            vocabulary.has(name) if not name.startswith("!") else not vocabulary.has(name[1:])
            for name in condition[1:].split(",")
        ):
            continue
        while _PLACE.search(rest):  # innermost first, so that a fragment may hold a column
            rest = _PLACE.sub(lambda found: _place(found[1], vocabulary, dialect), rest)
        lines.append(rest)
    rendered = "\n".join(lines)
    read = set(_READ.findall(rendered))
    return _ROWS.sub(lambda found: dialect.rows(found[1], vocabulary.id_type, read, once), rendered)


_vocabularies: dict[int, JobColumnVocabulary] = {}


def sql(text: str, vocabulary: JobColumnVocabulary, vendor: str, once: frozenset[str] = frozenset()) -> str:
    """Return `render`'s text; a vocabulary is told by identity, because a mapping cannot be hashed."""
    key = id(vocabulary)
    _vocabularies.setdefault(key, vocabulary)
    return render(text, key, vendor, once)


def _place(name: str, vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    if name == "table":
        return vocabulary.table
    if name == "generation":
        return vocabulary.generation_column
    if name in vocabulary.columns:
        return vocabulary.columns[name]
    if name in dialect.fragments:
        return dialect.fragments[name]
    head, _, rest = name.partition(":")
    return _FRAGMENTS[head](rest, vocabulary, dialect)


def _after(delay: str, _vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    """T plus a delay column of a row list. SQLite cannot add fractions of a second to text exactly, so there
    the session has added T already."""
    return delay if dialect.vendor == "sqlite" else f"t.now + {delay} * interval '1 second'"


def _plus(text: str, _vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    """`start+seconds`, whole seconds."""
    start, _, seconds = text.partition("+")
    if dialect.vendor == "sqlite":
        return _SQLITE_PLUS.format(start, seconds)
    return f"{start} + ({seconds}) * interval '1 second'"


def _in(text: str, vocabulary: JobColumnVocabulary, _dialect: Dialect) -> str:
    words = sorted(word for status in STATUSES[text] for word in vocabulary.read_words(status))
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"


def _word(column: str, vocabulary: JobColumnVocabulary, _dialect: Dialect) -> str:
    """A column of standard words, in the table's own."""
    if not vocabulary.words:
        return column
    cases = " ".join(f"WHEN '{s.value}' THEN '{vocabulary.word(s)}'" for s in vocabulary.words)
    return f"CASE {column} {cases} ELSE {column} END"


def _key(column: str, _vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    """An id as the ledger carries it: hex text, which saves building a UUID per row."""
    if dialect.vendor == "sqlite" or _vocabulary.id_type != "uuid":
        return column
    return f"replace({column}::text, '-', '')"


def _micros(column: str, _vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    """A time in a form that costs little to read; Session.moment makes an instant of it."""
    if dialect.vendor == "sqlite":
        return f"{column} || ''"
    return f"(extract(epoch FROM {column}) * 1000000)::bigint"


def _among(shape: str, vocabulary: JobColumnVocabulary, dialect: Dialect) -> str:
    """The test whether an id is one of a row list's; an array is searched along the index in one go."""
    if dialect.vendor == "sqlite":
        return f"IN (SELECT value FROM json_each(%({shape})s))"
    return f"= ANY (%({shape}_id)s::{vocabulary.id_type}[])"


_FRAGMENTS: dict[str, Callable[[str, JobColumnVocabulary, Dialect], str]] = {
    "": lambda text, vocabulary, _: f"'{vocabulary.word(JobStatus(text))}'",
    "among": _among,
    "after": _after,
    "plus": _plus,
    "in": _in,
    "word": _word,
    "key": _key,
    "micros": _micros,
}
