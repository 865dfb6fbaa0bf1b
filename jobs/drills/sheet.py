"""The recovery sheet: the exercise as a page to work by, its expected values taken from the scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from django.utils.translation import gettext as _

from jobs.drills.scenarios import LEASE_SECONDS, SCENARIOS
from jobs.drills.step import KEPT, Scenario
from jobs.drills.table import shown

NAMES = ("exercise-001-run", "exercise-001-uncertain")


def sheet() -> str:
    """Return the sheet as text."""
    return "\n".join([*_inputs(), *_commands(), *_expected(), *_stops(), *_limits()])


def _inputs() -> list[str]:
    return [
        _("Recovery sheet"),
        "",
        _("Inputs, all synthetic:"),
        _point(_("one job in a database that is made for this run and removed after it;")),
        _point(
            _("two workers that exist by name only, A and B, and a lease of %(lease)s seconds;")
            % {"lease": LEASE_SECONDS}
        ),
        _point(_("times in seconds from the start: given, so no clock is read and nothing waited for;")),
        _point(_("an outside ledger in a file, which records an action and may fail to answer.")),
        "",
    ]


def _commands() -> list[str]:
    commands = (f"manage.py drills --database sqlite --scenario {name}" for name in NAMES)
    return [_("Commands, offline:"), *(f"  {command}" for command in commands), ""]


def _expected() -> Iterator[str]:
    yield _("Expected values:")
    for scenario in SCENARIOS:
        if scenario.name in NAMES:
            yield f"  {scenario.name}: {_(scenario.title)}"
            yield from _steps(scenario)
    yield ""


def _steps(scenario: Scenario) -> Iterator[str]:
    for step in scenario.steps:
        row = f"{step.status}, generation {step.generation}"
        if step.lease_until not in (KEPT, None):
            row += f", lease_until {step.lease_until}"
        if step.outside_actions is not KEPT:
            row += f", outside {step.outside_actions}"
        yield f"    t={step.t:<3g} {step.text:<31} -> {shown(step.returned):<8} {row}"


def _stops() -> list[str]:
    return [
        _("Stop, change nothing, and hand over what you saw, when"),
        _point(_("a command exits with 1: it names scenario, step, field, expected and observed value;")),
        _point(_("a command exits with 2: the drill could not run, so nothing was shown;")),
        _point(_("the result of an old generation is accepted, or a done or uncertain job is claimed;")),
        _point(_("the outside count of the second run is not 1;")),
        _point(_("anything is left behind: a file, a database, a schema.")),
        _("Never change an expected value, lengthen the lease or call an unknown outcome retryable."),
        _("A time-out is no proof that nothing happened."),
        "",
    ]


def _limits() -> list[str]:
    gap = _(
        "that leases suffice: a worker that dies between acting and recording is taken over, and the action "
        "may repeat (crash-before-uncertain-recorded). Only an effect slot closes that gap."
    )
    return [
        _("Not shown by this:"),
        _point(_("delivery, load, failover or a real provider; it is no rehearsal of your own recovery;")),
        _point(gap),
    ]


def _point(text: str) -> str:
    return fill(text, width=100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
