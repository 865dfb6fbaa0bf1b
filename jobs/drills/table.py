"""The observation record as a table that a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.utils.translation import gettext as _

from jobs.drills.record import Record
from jobs.drills.step import Returned

_LINE = "  {:>9}  {:<38}  {:<8}  {:<9}  {:>10}  {:>11}  {:>7}  {:<9}"


def table(record: Record) -> Iterator[str]:
    """Yield the lines of one scenario: what was observed, and under each step the one sentence why."""
    scenario = record.scenario
    yield f"{scenario.name}: {_(scenario.title)}"
    outside = any(row.outside_actions for row in record.rows)
    heads = ["t", _("action"), _("returned"), _("status"), _("generation"), _("lease_until")]
    slots = bool(scenario.replay)
    yield _LINE.format(*heads, _("outside") if outside else "", _("slot") if slots else "").rstrip()
    deviating = {deviation.step for deviation in record.deviations()}
    for number, (step, returned, row) in enumerate(
        zip(scenario.steps, record.returned, record.rows, strict=False), 1
    ):
        yield _LINE.format(
            f"{step.t:.9g}",
            _(step.action.value).format(actor=step.actor),
            shown(returned),
            row.status,
            row.generation,
            "–" if row.lease_until is None else f"{row.lease_until:.9g}",
            row.outside_actions if outside else "",
            row.slot or "",
        ).rstrip()
        yield f"             {_(step.why)}"
        if number in deviating:
            yield "             " + _("NOT AS EXPECTED, see below.")
    if scenario.note:
        yield f"  {_(scenario.note)}"
    yield "  " + (_("as expected") if record.ok else _("DEVIATES"))


def shown(returned: Returned) -> str:
    """Return a returned value as JSON writes it, a text without its quotes."""
    return json.dumps(returned, ensure_ascii=False).strip('"')
