"""What a verb finds: one job, a token, the cluster and the instant; and what it leaves behind."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Model

from jobs.models import Attempt, EffectSlot, Job
from jobs.outcomes import Lease

Columns = dict[str, Any]


@dataclass
class World:
    """Everything that the contract lets a verb look at."""

    token: Lease
    now: datetime
    row: Columns | None
    attempts: dict[uuid.UUID, Columns]
    slots: list[Columns]
    epoch: int
    claims_open: bool
    changes: int
    refusals: list[tuple[str, str]]

    @property
    def found(self) -> Columns:
        assert self.row is not None
        return self.row

    @property
    def current(self) -> Columns | None:
        """The attempt that the job row names."""
        return self.attempts.get(self.found["attempt_id"])

    @property
    def held_by_token(self) -> bool:
        return self.row is not None and self.row["attempt_id"] == uuid.UUID(self.token.attempt_id)


def look(token: Lease, now: datetime) -> World:
    """Read the whole world of one job."""
    key = Job._meta.pk.get_db_prep_value(uuid.UUID(token.job_id), connection)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, claims_open, (SELECT COUNT(*) FROM jobs_change),"
            " (SELECT COUNT(*) FROM jobs_fencerefusal), (SELECT COUNT(*) FROM jobs_effectslot)"
            " FROM jobs_scheduler WHERE id = 1"
        )
        epoch, claims_open, changes, refused, slots = cursor.fetchone()
        refusals = []
        if refused:
            cursor.execute("SELECT point, reason FROM jobs_fencerefusal WHERE job_id = %s ORDER BY id", [key])
            refusals = cursor.fetchall()
        return World(
            token=token,
            now=now,
            row=next(iter(_rows(cursor, Job, "id", key)), None),
            attempts={row["id"]: row for row in _rows(cursor, Attempt, "job_id", key)},
            slots=_rows(cursor, EffectSlot, "job_id", key) if slots else [],
            epoch=epoch,
            claims_open=bool(claims_open),
            changes=changes,
            refusals=refusals,
        )


def all_rows(model: type[Model]) -> list[Columns]:
    """Return every row of a table."""
    with connection.cursor() as cursor:
        return _rows(cursor, model)


def _rows(cursor: Any, model: type[Model], column: str = "", key: Any = None) -> list[Columns]:
    """Read rows as `values()` would, without building a query each time: the matrix looks 15,000 times."""
    names, adapters = _shape(model)
    where = f"WHERE {column} = %s" if column else ""
    cursor.execute(
        f"SELECT {', '.join(names)} FROM {model._meta.db_table} {where} ORDER BY id", [key] if column else []
    )
    return [
        {
            name: adapt(value) if adapt is not None and value is not None else value
            for name, adapt, value in zip(names, adapters, row, strict=True)
        }
        for row in cursor.fetchall()
    ]


@cache
def _shape(model: type[Model]) -> tuple[list[str], list[Callable[[Any], Any] | None]]:
    fields: Any = model._meta.concrete_fields
    kinds: dict[str, Callable[[Any], Any]] = {
        "UUIDField": _uuid,
        "ForeignKey": _uuid,
        "DateTimeField": _instant,
        "BooleanField": bool,
    }
    return [f.column for f in fields], [kinds.get(type(f).__name__) for f in fields]


def _uuid(value: Any) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def _instant(value: Any) -> datetime:
    moment: datetime = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass
class Expected:
    """What the contract says of one verb in one world: the answer and every column that changes."""

    answer: Any
    row: Columns = field(default_factory=dict)
    attempt: Columns = field(default_factory=dict)
    slots: dict[str, str] = field(default_factory=dict)
    """slot name → its status afterwards, where it changes or is new"""
    refusal: str = ""
    """the reason in a FenceRefusal row, or none"""
    target: str = ""
    """the status that the transition table must allow from here"""
    claims: bool = False
    """a new attempt is opened"""
