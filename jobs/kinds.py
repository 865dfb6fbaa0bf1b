"""The product's own kinds of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.handlers import PLAN, PLANS, job

if TYPE_CHECKING:
    from jobs.context import Context


@job(PLAN, queue=PLANS, owner="interlock")
def carry_out(ctx: Context, plan: str) -> dict[str, int]:
    """Go through the rows of a mass action."""
    from jobs.operations import planrun

    return planrun.run(ctx, plan)
