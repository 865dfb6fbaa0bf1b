"""The scenarios as data: what is done when, by whom, what must come of it, and why.

The expected values are those of the golden traces; a test compares them. An absent lease end or outside count
is as after the step before; a lease end is null unless the job is running.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from jobs.drills import why
from jobs.drills.step import Action as Do
from jobs.drills.step import Scenario, Step

LEASE_SECONDS = 30

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "complete-then-duplicate",
        _("A job is done, and then delivered once more"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(8, Do.FINISH_DONE, "A", True, "done", 1, why.DONE_FIRST, lease_until=None),
            Step(10, Do.CLAIM, "B", None, "done", 1, why.DUPLICATE),
        ),
    ),
    Scenario(
        "worker-exits-lease-expires",
        _("A worker exits, and its lease runs out"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(4, Do.EXIT, "A", None, "running", 1, why.REOPENED, lease_until=31),
            Step(30, Do.CLAIM, "B", None, "running", 1, why.STILL_LEASED),
            Step(31, Do.CLAIM, "B", 2, "running", 2, why.TAKEN_OVER, lease_until=61),
            Step(35, Do.FINISH_DONE, "B", True, "done", 2, why.DONE_SECOND, lease_until=None),
            Step(40, Do.CLAIM, "A", None, "done", 2, why.OVER),
        ),
    ),
    Scenario(
        "stale-worker-returns",
        _("A superseded worker comes back with a result"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(4, Do.EXIT, "A", None, "running", 1, why.REOPENED, lease_until=31),
            Step(30, Do.CLAIM, "B", None, "running", 1, why.STILL_LEASED),
            Step(31, Do.CLAIM, "B", 2, "running", 2, why.TAKEN_OVER, lease_until=61),
            Step(32, Do.FINISH_DONE, "A", False, "running", 2, why.SUPERSEDED),
            Step(35, Do.FINISH_DONE, "B", True, "done", 2, why.DONE_SECOND, lease_until=None),
            Step(40, Do.CLAIM, "A", None, "done", 2, why.OVER),
        ),
    ),
    Scenario(
        "response-lost-recorded-uncertain",
        _("An outside answer is lost, and the worker says so in time"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(3, Do.ACT_UNANSWERED, "A", "timeout", "running", 1, why.ACTED, outside_actions=1),
            Step(4, Do.FINISH_UNCERTAIN, "A", True, "uncertain", 1, why.SAID_UNKNOWN, lease_until=None),
            Step(5, Do.EXIT, "A", None, "uncertain", 1, why.UNKNOWN_KEPT),
            Step(31, Do.CLAIM, "B", None, "uncertain", 1, why.UNKNOWN_STAYS),
            Step(60, Do.CLAIM, "B", None, "uncertain", 1, why.UNKNOWN_WAITS, outside_actions=1),
        ),
    ),
    Scenario(
        "crash-before-uncertain-recorded",
        _("An outside answer is lost, and the worker dies before it can say so"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(3, Do.ACT_UNANSWERED, "A", "timeout", "running", 1, why.ACTED, outside_actions=1),
            Step(4, Do.EXIT, "A", None, "running", 1, why.DIED_SILENT),
            Step(30, Do.CLAIM, "B", None, "running", 1, why.NO_EVIDENCE),
            Step(31, Do.CLAIM, "B", 2, "running", 2, why.TAKEN_BLIND, lease_until=61),
            Step(32, Do.ACT_AGAIN, "B", 2, "running", 2, why.REPEATED, outside_actions=2),
            # The trace writes no lease end here: that it is null follows from the status.
            Step(35, Do.FINISH_DONE, "B", True, "done", 2, why.DONE_TWICE, outside_actions=2),
        ),
        note=_("Leases alone, without an effect slot, allow the second outside action; the drill shows it."),
    ),
    Scenario(
        "exercise-001-run",
        _("The exercise: exit at once, wait, take over, refuse the late result"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED, lease_until=None),
            Step(0, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED_AT_ONCE, lease_until=30),
            Step(0, Do.EXIT, "A", None, "running", 1, why.REOPENED, lease_until=30),
            Step(10, Do.CLAIM, "B", None, "running", 1, why.STILL_LEASED_20, lease_until=30),
            Step(30, Do.CLAIM, "B", 2, "running", 2, why.TAKEN_OVER_30, lease_until=60),
            Step(31, Do.FINISH_DONE, "A", False, "running", 2, why.LATE, lease_until=60, t_chosen=True),
            Step(32, Do.FINISH_DONE, "B", True, "done", 2, why.DONE_SECOND, lease_until=None, t_chosen=True),
            Step(33, Do.CLAIM, "A", None, "done", 2, why.OVER, lease_until=None, t_chosen=True),
        ),
    ),
    Scenario(
        "exercise-001-uncertain",
        _("The exercise: an unknown outcome waits for somebody to look"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED, lease_until=None),
            Step(0, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED_AT_ONCE, lease_until=30),
            Step(1, Do.ACT_UNANSWERED, "A", "timeout", "running", 1, why.ACTED, outside_actions=1),
            Step(2, Do.FINISH_UNCERTAIN, "A", True, "uncertain", 1, why.SAID_UNKNOWN, lease_until=None),
            Step(3, Do.EXIT, "A", None, "uncertain", 1, why.UNKNOWN_KEPT),
            Step(31, Do.CLAIM, "B", None, "uncertain", 1, why.UNKNOWN_STAYS),
            Step(32, Do.READ_OUTSIDE, "", 1, "uncertain", 1, why.LOOKED, outside_actions=1),
        ),
        times_chosen=True,
    ),
    Scenario(
        "crash-with-slot-queryable",
        _("The same crash with an effect slot, and a provider that can be asked"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(
                3,
                Do.ACT_GRANTED,
                "A",
                "timeout",
                "running",
                1,
                why.GRANTED,
                slot="executing",
                outside_actions=1,
            ),
            Step(4, Do.EXIT, "A", None, "running", 1, why.SLOT_KEPT, slot="executing"),
            Step(30, Do.CLAIM, "B", None, "running", 1, why.STILL_LEASED),
            Step(31, Do.CLAIM, "B", 2, "running", 2, why.TAKEN_UNKNOWN, lease_until=61, slot="unknown"),
            Step(32, Do.INQUIRE, "B", "found", "running", 2, why.FOUND, slot="committed", outside_actions=1),
            Step(
                35, Do.FINISH_DONE, "B", True, "done", 2, why.DONE_ONCE, lease_until=None, outside_actions=1
            ),
        ),
        replay="queryable",
    ),
    Scenario(
        "crash-with-slot-non-replayable",
        _("The same crash with an effect slot, and a provider that nobody can ask"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(
                2,
                Do.ASK_APPROVAL,
                "A",
                "waiting",
                "waiting",
                1,
                why.ASKED,
                lease_until=None,
                slot="prepared",
            ),
            Step(3, Do.APPROVE, "", True, "waiting", 1, why.APPROVED),
            Step(4, Do.CLAIM, "A", 2, "running", 2, why.CLAIMED_APPROVED, lease_until=34),
            Step(
                5,
                Do.ACT_GRANTED,
                "A",
                "timeout",
                "running",
                2,
                why.GRANTED_ONCE,
                slot="executing",
                outside_actions=1,
            ),
            Step(6, Do.EXIT, "A", None, "running", 2, why.SLOT_KEPT, lease_until=34),
            Step(33, Do.CLAIM, "B", None, "running", 2, why.STILL_LEASED_34, lease_until=34),
            Step(34, Do.CLAIM, "B", None, "uncertain", 3, why.NOBODY, lease_until=None, slot="unknown"),
            Step(60, Do.CLAIM, "B", None, "uncertain", 3, why.PERSON_NEEDED, outside_actions=1),
        ),
        replay="non_replayable",
    ),
    Scenario(
        "edges",
        _("The exact end of a lease"),
        (
            Step(0, Do.ENQUEUE, "", None, "pending", 0, why.REGISTERED),
            Step(1, Do.CLAIM, "A", 1, "running", 1, why.CLAIMED, lease_until=31),
            Step(30.999999, Do.RENEW, "A", True, "running", 1, why.RENEWED, lease_until=60.999999),
            Step(60.999999, Do.RENEW, "A", False, "running", 1, why.NOT_RENEWED, lease_until=60.999999),
            Step(60.999999, Do.FINISH_DONE, "A", False, "running", 1, why.NOT_DONE, lease_until=60.999999),
            Step(60.999999, Do.CLAIM, "B", 2, "running", 2, why.SAME_INSTANT, lease_until=90.999999),
        ),
    ),
)


def find(name: str) -> Scenario | None:
    """Return the scenario called `name`."""
    return next((scenario for scenario in SCENARIOS if scenario.name == name), None)
