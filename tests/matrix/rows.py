"""Rows beside the job: written by hand, asked for in place of ours, looked at for what a statement wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection

from jobs.ledger.session import Session
from jobs.models import Attempt, Case, Drill, EffectSlot, Job, Proposal, Queue, Scheduler, Worker
from tests import build
from tests.matrix.trial import NOTHING, Change, Trial

ROWS: dict[str, Any] = {
    "case": Case,
    "proposal": Proposal,
    "effect": EffectSlot,
    "attempt": Attempt,
    "drill": Drill,
    "queue": Queue,
    "scheduler": Scheduler,
    "worker": Worker,
}
"""The tables by the word under which a trial gives the key of its row."""


def writes(work: Callable[[Session, dict[str, Any]], Any]) -> Callable[[Trial], str]:
    """Run a statement on what is given; it has landed when a row that is ours has changed."""

    def run(trial: Trial) -> str:
        ours = trial.given.get("ours", trial.given)
        before = _seen(trial, ours)
        build.ledger(lambda session: work(session, trial.given), now=trial.now)
        return NOTHING if _seen(trial, ours) == before else ""

    return run


def _seen(trial: Trial, ours: dict[str, Any]) -> list[Any]:
    asked = (Job, trial.lease.job_id), *((model, ours[name]) for name, model in ROWS.items() if name in ours)
    return [list(model._base_manager.filter(pk=key).values()) for model, key in asked]


def another_row(**values: Any) -> Change:
    """Ask for another row than ours."""
    return lambda trial: trial.given.update({"ours": dict(trial.given)} | values)


def edit_row(name: str, **columns: Any) -> Change:
    """Write a row of one of ROWS by hand."""

    def change(trial: Trial) -> None:
        meta = ROWS[name]._meta
        values = [meta.get_field(n).get_db_prep_save(v, connection) for n, v in columns.items()]
        key = meta.pk.get_db_prep_save(trial.given[name], connection)
        places = ", ".join(f"{n} = %s" for n in columns)
        with build.unguarded(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {meta.db_table} SET {places} WHERE {meta.pk.column} = %s", [*values, key])

    return change
