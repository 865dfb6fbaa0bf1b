"""Drills as rows: begun before anything is tried, so that one that was killed is seen to be unfinished."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs import canon
from jobs.ledger import drills as rows
from jobs.ledger.session import transact
from jobs.models import Drill
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.vocabulary import JOB


def begin(kind: DrillKind, *, by: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Write that a drill begins; returns its number."""
    return transact(
        lambda session: rows.begin(session, kind=kind, by=by),
        using=using,
        vocabulary=JOB,
        durable=False,
        fenced=False,
    )


def finish(
    number: int,
    verdict: DrillVerdict,
    *,
    tried: int,
    passed: int,
    record: Any,
    using: str = DEFAULT_DB_ALIAS,
) -> Drill:
    """Write how a drill ended, once; returns its row."""
    text = canon.canonical(record)
    transact(
        lambda session: rows.finish(
            session, number, verdict=verdict.value, tried=tried, passed=passed, record=text
        ),
        using=using,
        vocabulary=JOB,
        durable=False,
        fenced=False,
    )
    return Drill.objects.using(using).get(pk=number)


def last(kind: DrillKind, *, using: str = DEFAULT_DB_ALIAS) -> Drill | None:
    """Return the newest drill of a kind, finished or not."""
    return Drill.objects.using(using).filter(kind=kind).order_by("-id").first()


def last_finished(kind: DrillKind, *, recorded: bool = True, using: str = DEFAULT_DB_ALIAS) -> Drill | None:
    """Return the newest drill of a kind that shows something: one that passed or failed.

    Not `recorded` leaves what was observed in the database, where only the verdict is wanted.
    """
    shows = [DrillVerdict.PASSED, DrillVerdict.FAILED]
    found = Drill.objects.using(using).filter(kind=kind, verdict__in=shows).order_by("-id")
    return (found if recorded else found.defer("record")).first()
