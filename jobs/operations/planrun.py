"""What a plan does to its rows: one transaction each, in the name of who executed it.

A row's outcome is written in the transaction that acts on its job, so that a run that was killed goes on
where it was, and two runs at once (a worker that lost its lease and does not know) act on no job twice.
"""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import F

from jobs import audit
from jobs.context import Cancelled, Context, Skip
from jobs.ledger.clock import clock
from jobs.models import Plan, PlanRow
from jobs.models.audit import Source
from jobs.models.plan import PlanAction, PlanState, RowOutcome
from jobs.operations import jobwork, tokens
from jobs.outcomes import Refused
from jobs.status import JobStatus

PAGE = 100
ACTS = {
    PlanAction.RETRY: jobwork.retry,
    PlanAction.CANCEL: jobwork.cancel,
    PlanAction.HOLD: jobwork.hold,
    PlanAction.UNHOLD: jobwork.unhold,
}
NOT_ALLOWED = {"NOT_PERMITTED", "USER_INACTIVE", "USER_UNKNOWN"}
"""Refusals that are about the person: they end the plan, where others skip a row."""


class _Over(Exception):
    """The plan is not running any more."""


class _Taken(Exception):
    """Another run of the same plan has dealt with the row."""


def run(ctx: Context, plan_id: str, *, using: str = DEFAULT_DB_ALIAS) -> dict[str, int]:
    """Go through the rows that are left, until the last one or until the plan is ended.

    Returns how many are done and skipped in all. Raises Skip for a job that the plan was not begun with.
    """
    begun = Plan.objects.using(using).select_related("executor", "token")
    plan = begun.filter(job_id=ctx.job.id).first()
    if plan is None or str(plan.id) != plan_id:
        raise Skip("PLAN_NOT_ITS_JOB", "no plan was begun with this job")
    try:
        with audit.through(Source(plan.source), **_door(plan)):
            _go_through(ctx, plan, using)
    except Cancelled:
        _end(plan, PlanState.ABORTED, using, ended_why="JOB_CANCELLED")
        raise
    except _Over:
        pass
    else:
        _end(plan, PlanState.DONE, using)
    plan.refresh_from_db(fields=["done", "skipped"])
    return {"done": plan.done, "skipped": plan.skipped}


def _door(plan: Plan) -> dict[str, Any]:
    """Return what the audit entries of the rows say of the door; the plan is their request."""
    assert plan.executor is not None  # noqa: S101  (a constraint: whatever was started has one)
    token = plan.token.name if plan.token else ""
    return {"user": plan.executor.get_username(), "token": token, "request_id": str(plan.id)}


def _go_through(ctx: Context, plan: Plan, using: str) -> None:
    left = PlanRow.objects.using(using).filter(plan=plan, outcome=RowOutcome.PENDING).order_by("id")
    gone = plan.total - left.count()
    while page := list(left[:PAGE]):
        for row in page:
            ctx.checkpoint()
            _need_token(plan, using)
            _act(plan, row, using)
            gone += 1
            ctx.progress(gone, plan.total)


def _need_token(plan: Plan, using: str) -> None:
    """End the plan where its token is good no more, as the account is asked at each row; raises _Over."""
    if plan.token is None:
        return
    plan.token.refresh_from_db(fields=["revoked_at", "expires_at"])
    if tokens.state(plan.token) != "live":
        _end(plan, PlanState.ABORTED, using, ended_why="TOKEN_UNKNOWN")
        raise _Over


def _act(plan: Plan, row: PlanRow, using: str) -> None:
    """Do the action to one row's job, or skip it; raises _Over."""
    act: Any = ACTS[PlanAction(plan.action)]
    try:
        with transaction.atomic(using):
            _mark(plan, row, RowOutcome.DONE, using)
            status = act(
                row.job_id,
                actor=plan.executor,
                reason=plan.reason,
                seen_version=row.seen_version,
                using=using,
            )
            if plan.action == PlanAction.CANCEL and status != JobStatus.CANCELLED:
                PlanRow.objects.using(using).filter(pk=row.pk).update(requested=True)
    except _Taken:
        return
    except Refused as refused:
        if refused.code in NOT_ALLOWED:
            _end(plan, PlanState.ABORTED, using, ended_why=refused.code)
            raise _Over from refused
        _skip(plan, row, refused, using)


def _skip(plan: Plan, row: PlanRow, refused: Refused, using: str) -> None:
    params = {name: value if isinstance(value, int) else str(value) for name, value in refused.params.items()}
    try:
        with transaction.atomic(using):
            _mark(plan, row, RowOutcome.SKIPPED, using, code=refused.code, params=params)
    except _Taken:
        return


def _mark(plan: Plan, row: PlanRow, outcome: RowOutcome, using: str, **why: Any) -> None:
    """Count and write a row's outcome, once; the plan's row stays locked, so that an abort waits for it."""
    running = Plan.objects.using(using).filter(pk=plan.pk, state=PlanState.RUNNING)
    if not running.update(**{outcome.value: F(outcome.value) + 1}):
        raise _Over
    pending = PlanRow.objects.using(using).filter(pk=row.pk, outcome=RowOutcome.PENDING)
    if not pending.update(outcome=outcome, at=clock(using), **why):
        raise _Taken


def _end(plan: Plan, state: PlanState, using: str, **why: str) -> None:
    """Write how a running plan ended; one that somebody else ended meanwhile stays as it is."""
    running = Plan.objects.using(using).filter(pk=plan.pk, state=PlanState.RUNNING)
    running.update(state=state, ended_at=clock(using), **why)
