"""How many jobs there are of each status, and how many cases are open: a bounded number of rows along each index."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections
from django.db.models import QuerySet, UUIDField

from jobs.ledger.indexed import ABNORMAL, IS_ABNORMAL, IS_CLAIMABLE, IS_FREE, IS_HELD, IS_RUNNING
from jobs.ledger.rows import statement
from jobs.models import Job

CASES = """
SELECT COUNT(*), COUNT(CASE WHEN c.kind = 'contradiction' OR c.sla_due_at <= %s THEN 1 END)
  FROM (SELECT kind, sla_due_at FROM jobs_case WHERE closed_at IS NULL ORDER BY opened_at LIMIT %s) AS c
"""
LATELY = """
WITH lately AS (SELECT closed_as, {took} AS took FROM jobs_case
                 WHERE id >= %s AND opened_at >= %s ORDER BY id DESC LIMIT %s),
ruled AS (SELECT took FROM lately WHERE closed_as = 'ruled')
SELECT COUNT(*), COUNT(CASE WHEN closed_as = 'resolved' THEN 1 END), (SELECT COUNT(*) FROM ruled)
     , (SELECT took FROM ruled ORDER BY took LIMIT 1 OFFSET (SELECT (COUNT(*) - 1) / 2 FROM ruled))
  FROM lately
"""
TOOK = {
    "postgresql": "EXTRACT(EPOCH FROM closed_at - opened_at)",
    "sqlite": "(julianday(closed_at) - julianday(opened_at)) * 86400.0",
}
SKEW = timedelta(hours=1)
"""An id tells when it was made by the clock of whoever made it: so much is allowed for."""
READY = "WHERE ready_at IS NOT NULL"
DUE = f"WHERE {IS_FREE % 'hold_reason'} AND {IS_CLAIMABLE % 'status'} AND ready_at IS NULL"
HELD = f"WHERE {IS_HELD % 'hold_reason'}"
NEWEST = "ORDER BY id DESC"
ASKED = "cancel_requested_at"


@dataclass(frozen=True)
class Found:
    """So many rows were read along one index, and so many of them had the status that was asked for."""

    rows: int
    of_word: int


@dataclass(frozen=True)
class Asked:
    """So many jobs were counted, and so many of them have been asked to stop."""

    rows: int
    asked: int


def by_status(using: str, *, claimable: int, newest: int, most: int) -> dict[str, Found]:
    """Count rows along each of these: `ready`, `due` and `held` (at most `claimable` of each, the waiting ones
    told apart), `newest` (so many, the succeeded ones told apart), and `all ready`, `running` and each
    status of `job_abnormal` by its own name (at most `most` of each).

    Nothing is grouped: to put 10,000 rows under their status's text costs four times what it takes to read them.
    """
    parts = [
        _part("ready", READY, claimable, word="waiting"),
        _part("due", DUE, claimable, word="waiting"),
        _part("held", HELD, claimable, word="waiting"),
        _part("newest", NEWEST, newest, word="succeeded"),
        _part("all ready", READY, most),
        _part("running", f"WHERE {IS_RUNNING % 'status'}", most),
        *(
            _part(status, f"WHERE {IS_ABNORMAL % 'status'} AND status = '{status}'", most)
            for status in ABNORMAL
        ),
    ]
    with connections[using].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return {source: Found(rows, of_word) for source, rows, of_word in cursor.fetchall()}


def floors(using: str, place: int) -> dict[str, uuid.UUID]:
    """Return of each status of `job_abnormal` that has more jobs than `place` the newest one beyond them."""
    parts = [
        f"SELECT '{status}', p.id FROM (SELECT id FROM jobs_job WHERE {IS_ABNORMAL % 'status'}"
        f" AND status = '{status}' ORDER BY id DESC LIMIT 1 OFFSET {int(place)}) AS p"
        for status in ABNORMAL
    ]
    with connections[using].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        found = cursor.fetchall()
    return {status: UUIDField().to_python(job_id) for status, job_id in found}


def of_parts(using: str, parts: dict[str, list[QuerySet[Job]]], *, most: int) -> dict[str, Asked]:
    """Count the jobs of each part, up to `most` of each of its pieces, in one statement: to compose and to plan
    ten took longer than to read what they look at."""
    texts: list[str] = []
    values: list[Any] = []
    for name, pieces in parts.items():
        for piece in pieces:
            few = statement(piece.using(using).order_by().values_list(ASKED)[:most])
            if few is not None:
                texts.append(f"SELECT '{name}', COUNT(*), COUNT(p.{ASKED}) FROM ({few[0]}) AS p")
                values += few[1]
    found = {name: Asked(0, 0) for name in parts}
    if texts:
        with connections[using].cursor() as cursor:
            cursor.execute(" UNION ALL ".join(texts), values)
            for name, rows, asked in cursor.fetchall():
                found[name] = Asked(found[name].rows + rows, found[name].asked + asked)
    return found


def _part(source: str, where: str, limit: int, *, word: str = "") -> str:
    column, of_word = ("status", f"COUNT(*) FILTER (WHERE p.status = '{word}')") if word else ("1", "0")
    few = f"SELECT {column} FROM jobs_job {where} LIMIT {int(limit)}"
    return f"SELECT '{source}', COUNT(*), {of_word} FROM ({few}) AS p"


def open_cases(using: str, now: datetime, *, most: int) -> tuple[int, int]:
    """Return how many of the `most` oldest open cases there are, and of how many the time limit is over at `now`
    or what was recorded is contradicted."""
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(CASES, [connection.ops.adapt_datetimefield_value(now), most])
        n, urgent = cursor.fetchone()
    return n, urgent


@dataclass(frozen=True)
class Lately:
    """Cases that were opened since some instant, and what became of them."""

    opened: int
    inquired: int
    """Settled by an inquiry: no person was needed."""
    ruled: int
    median: float | None
    """Seconds from the opening that half of the rulings took."""


def cases_since(using: str, since: datetime, *, most: int) -> Lately:
    """Return what became of the cases opened since then, of the `most` newest: read along their ids, which grow
    with time."""
    connection = connections[using]
    first = uuid.UUID(int=int((since - SKEW).timestamp() * 1000) << 80)
    key = UUIDField().get_db_prep_value(first, connection)
    moment = connection.ops.adapt_datetimefield_value(since)
    with connection.cursor() as cursor:
        cursor.execute(LATELY.format(took=TOOK[connection.vendor]), [key, moment, most])
        opened, inquired, ruled, median = cursor.fetchone()
    return Lately(opened, inquired, ruled, None if median is None else round(float(median), 3))
