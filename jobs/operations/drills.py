"""Replaying the golden scenarios for people to step through, on a throw-away database; the record is kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError

from jobs.drills import kept
from jobs.drills.database import CannotDrill
from jobs.drills.record import Record
from jobs.drills.run import replay
from jobs.drills.scenarios import SCENARIOS
from jobs.ledger.clock import clock
from jobs.models import Drill
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.operations.actor import RUN_DRILL, admit
from jobs.outcomes import Refused

BETWEEN = timedelta(seconds=20)
"""How long one has the database's server to itself: a replay makes and drops some thirty tables there."""


def replay_golden(*, actor: Any, using: str = DEFAULT_DB_ALIAS) -> Drill:
    """Run every golden scenario by the real code and keep what was observed; returns the row.

    PASSED or FAILED by the observed values; STOPPED where no throw-away database can be made. Raises Refused
    NOT_PERMITTED, and DRILL_JUST_BEGUN while another one may be under way.
    """
    by = admit(actor, RUN_DRILL).signature
    last = kept.last(DrillKind.GOLDEN, using=using)
    left = last.started_at + BETWEEN - clock(using) if last else timedelta()
    if left > timedelta():
        raise Refused("DRILL_JUST_BEGUN", seconds=int(left.total_seconds()) + 1)
    number = kept.begin(DrillKind.GOLDEN, by=by, using=using)
    try:
        records, place = replay(SCENARIOS)
    except (CannotDrill, OperationalError) as problem:
        note = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        found: dict[str, Any] = {"note": note, "scenarios": []}
        return kept.finish(number, DrillVerdict.STOPPED, tried=0, passed=0, record=found, using=using)
    good = sum(record.ok for record in records)
    return kept.finish(
        number,
        DrillVerdict.PASSED if good == len(records) else DrillVerdict.FAILED,
        tried=len(records),
        passed=good,
        record={"note": "", "place": place, "scenarios": [_told(record) for record in records]},
        using=using,
    )


def _told(record: Record) -> dict[str, Any]:
    """Return a record with all that a person needs at each step; texts as they are translated when shown."""
    scenario = record.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "note": scenario.note,
        "replay": scenario.replay,
        "ok": record.ok,
        "steps": list(_steps(record)),
    }


def _steps(record: Record) -> Iterator[dict[str, Any]]:
    deviations = record.deviations()
    seen = zip(record.scenario.steps, record.returned, record.rows, strict=False)
    for number, (step, returned, row) in enumerate(seen, 1):
        yield {
            "t": step.t,
            "action": step.action.value,
            "actor": step.actor,
            "returned": returned,
            "why": step.why,
            **row._asdict(),
            "deviations": [
                {"field": d.field, "expected": d.expected, "observed": d.observed}
                for d in deviations
                if d.step == number
            ],
        }
