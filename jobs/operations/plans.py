"""Mass actions: prepare a plan, look at it, execute it once, abort it (docs/operations.md).

`actor` is a Django user; each operation asks the permission of the plan's action and leaves one entry in the
audit chain. What the plan does to each job is jobs/operations/planrun.py's matter.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from jobs import audit
from jobs.handlers import PLAN, PLANS, Options
from jobs.ledger.clock import clock
from jobs.models import ApiToken, Job, Plan, PlanRow
from jobs.models.plan import PlanAction, PlanState, RowOutcome
from jobs.operations import planparts, planworth
from jobs.operations.actor import CANCEL, HOLD, RETRY, admit
from jobs.operations.planparts import Filters
from jobs.outcomes import Refused
from jobs.verbs import audited
from jobs.verbs.base import need_reason

PERMISSIONS = {
    PlanAction.RETRY: RETRY,
    PlanAction.CANCEL: CANCEL,
    PlanAction.HOLD: HOLD,
    PlanAction.UNHOLD: HOLD,
}
GOOD_FOR = timedelta(minutes=10)
"""How long a plan may be executed: what was seen is soon no more what is."""
UNTYPED = 20
"""Up to so many jobs it takes no typed confirmation."""


class Found(NamedTuple):
    """What a plan keeps, or counts, of one job."""

    id: uuid.UUID
    version: int
    status: str
    kind: str
    queue: str
    hold: str
    created_at: datetime
    label: str


FIELDS = ("id", "state_version", "status", "kind", "queue", "hold_reason", "created_at", "label")


def prepare(
    action: PlanAction,
    jobs: QuerySet[Job],
    *,
    actor: Any,
    reason: str,
    filters: Filters = (),
    ids: Sequence[uuid.UUID] = (),
    using: str = DEFAULT_DB_ALIAS,
    now: datetime | None = None,
) -> Plan:
    """Freeze which jobs an action is for, at the versions they are at; nothing happens to them yet.

    `jobs` are those that the caller sees, narrowed by `filters`, which say how in words; `ids` picks some of
    them. Of these the ones in a state for the action are taken. Raises Refused NOT_PERMITTED, REASON_MISSING,
    PLAN_FILTER_EMPTY, PLAN_EMPTY, PLAN_TOO_LARGE, PLAN_SEARCH_LONG.
    """
    need_reason(reason)
    by = admit(actor, PERMISSIONS[action]).signature
    if not filters and not ids:
        raise Refused("PLAN_FILTER_EMPTY")
    found = _candidates(action, jobs.filter(id__in=ids) if ids else jobs, filters, using)
    if not found:
        raise Refused("PLAN_EMPTY")
    # Children before their parents where a parent's end would end them, after them where they need it.
    found.sort(key=lambda one: one.id, reverse=action == PlanAction.CANCEL)
    with transaction.atomic(using):
        now = now or clock(using)
        plan = Plan.objects.using(using).create(
            action=PlanAction(action).value,
            reason=reason,
            filters=[list(pair) for pair in filters],
            queues=sorted({one.queue for one in found}),
            total=len(found),
            left_out=len(set(ids)) - len(found) if ids else 0,
            summary=_summary(found) | planworth.worth(found, using),
            created_at=now,
            created_by=by,
            expires_at=now + GOOD_FOR,
        )
        rows = [PlanRow(plan=plan, job_id=one.id, seen_version=one.version) for one in found]
        PlanRow.objects.using(using).bulk_create(rows, batch_size=1000)
        _audit("plan", plan, by, {"rows": plan.total, "filters": plan.filters, **plan.summary}, using)
    return plan


def begin(
    plan_id: uuid.UUID,
    *,
    actor: Any,
    typed: int | None = None,
    token: ApiToken | None = None,
    using: str = DEFAULT_DB_ALIAS,
    now: datetime | None = None,
) -> Plan:
    """Begin a plan, once: a job of this runtime goes through its rows in the name of `actor`.

    Above UNTYPED rows `typed` must be their number. Of two who execute it at once the second is refused.
    Raises Refused PLAN_NOT_FOUND, NOT_PERMITTED, PLAN_NOT_TYPED, PLAN_STARTED, PLAN_EXPIRED, PLAN_ENDED.
    """
    with transaction.atomic(using):
        plan = look(plan_id, using=using)
        by = admit(actor, PERMISSIONS[PlanAction(plan.action)])
        if needs_typing(plan) and typed != plan.total:
            raise Refused("PLAN_NOT_TYPED", rows=plan.total)
        now = now or clock(using)
        begun = (
            _rows(plan, using)
            .filter(state=PlanState.PLANNED, expires_at__gt=now)
            .update(
                state=PlanState.RUNNING,
                started_at=now,
                executor=by.user,
                executed_by=by.signature,
                token=token,
                source=audit.origin().source,
            )
        )
        if not begun:
            raise _over(look(plan_id, using=using), now)
        options = Options(queue=PLANS, label=f"{plan.action} of {plan.total}", enqueued_by=by.signature)
        queued = Job.objects.db_manager(using).enqueue(PLAN, {"plan": str(plan.id)}, options=options)
        _rows(plan, using).update(job_id=queued.job_id)
        _audit("execute_plan", plan, by.signature, {"rows": plan.total, "job": str(queued.job_id)}, using)
    return look(plan_id, using=using)


def abort(
    plan_id: uuid.UUID, *, actor: Any, using: str = DEFAULT_DB_ALIAS, now: datetime | None = None
) -> Plan:
    """End a plan that has not ended; what it did stays done, and no further row is touched after this.

    Raises Refused PLAN_NOT_FOUND, NOT_PERMITTED, PLAN_EXPIRED, PLAN_ENDED.
    """
    with transaction.atomic(using):
        plan = look(plan_id, using=using)
        by = admit(actor, PERMISSIONS[PlanAction(plan.action)]).signature
        now = now or clock(using)
        open_now = Q(state=PlanState.RUNNING) | Q(state=PlanState.PLANNED, expires_at__gt=now)
        ended = _rows(plan, using).filter(open_now).update(state=PlanState.ABORTED, ended_at=now, ended_by=by)
        plan = look(plan_id, using=using)
        if not ended:
            raise _over(plan, now)
        _audit("abort_plan", plan, by, {"done": plan.done, "skipped": plan.skipped, "left": plan.left}, using)
    return plan


def look(plan_id: uuid.UUID, *, using: str = DEFAULT_DB_ALIAS) -> Plan:
    """Return a plan; raises Refused PLAN_NOT_FOUND."""
    plan = Plan.objects.using(using).select_related("executor", "token").filter(pk=plan_id).first()
    if plan is None:
        raise Refused("PLAN_NOT_FOUND", plan_id=str(plan_id))
    return plan


class Changed(NamedTuple):
    """A row of a plan whose job is not as it was seen; `version` and `status` are None where it is gone."""

    job_id: uuid.UUID
    seen_version: int
    version: int | None
    status: str | None


def changed(plan: Plan, *, using: str = DEFAULT_DB_ALIAS) -> list[Changed]:
    """Return the rows that would be skipped as it stands: their jobs have changed since they were seen.

    One statement, which looks up by its id the job of each row that is left: at most PLAN_ROWS of them.
    """
    # Values of a row's own, not a join: a planner may take a join for a reason to read all jobs.
    job = Job.objects.filter(pk=OuterRef("job_id"))
    rows = (
        PlanRow.objects.using(using)
        .filter(plan=plan, outcome=RowOutcome.PENDING)
        .annotate(version=Subquery(job.values("state_version")), status=Subquery(job.values("status")))
        .filter(Q(version=None) | ~Q(version=F("seen_version")))
        .order_by("id")
    )
    return [Changed(*row) for row in rows.values_list("job_id", "seen_version", "version", "status")]


def needs_typing(plan: Plan) -> bool:
    """Return whether executing it asks for the number of its rows."""
    return plan.total > UNTYPED


def _candidates(action: PlanAction, jobs: QuerySet[Job], filters: Filters, using: str) -> list[Found]:
    """Return those of `jobs` that the action is possible for, read along the indexes that hold them.

    Raises Refused PLAN_TOO_LARGE, and PLAN_SEARCH_LONG where the filter finds few among very many.
    """
    most = settings.INTERLOCK["PLAN_ROWS"]
    found: list[Found] = []
    with planparts.searching(using):
        for source in planparts.sources(PlanAction(action), jobs.using(using), filters):
            found += [Found(*row) for row in source.values_list(*FIELDS)[: most + 1]]
            if len(found) > most:
                raise Refused("PLAN_TOO_LARGE", most=most)
    return found


def _summary(found: Sequence[Found]) -> dict[str, Any]:
    def counted(field: str) -> dict[str, int]:
        return dict(Counter(getattr(one, field) for one in found).most_common())

    instants = [one.created_at for one in found]
    return {
        "statuses": counted("status"),
        "kinds": counted("kind"),
        "queues": counted("queue"),
        "holds": {reason: n for reason, n in counted("hold").items() if reason},
        "oldest": min(instants).isoformat(),
        "newest": max(instants).isoformat(),
    }


def _rows(plan: Plan, using: str) -> QuerySet[Plan]:
    return Plan.objects.using(using).filter(pk=plan.pk)


def _over(plan: Plan, now: datetime) -> Refused:
    """Return why a plan can be neither executed nor aborted."""
    standing = plan.standing(now)
    if standing == PlanState.EXPIRED:
        return Refused("PLAN_EXPIRED", at=plan.expires_at)
    if standing == PlanState.RUNNING:
        return Refused("PLAN_STARTED", by=plan.executed_by)
    return Refused("PLAN_ENDED", state=standing.value)


def _audit(action: str, plan: Plan, actor: str, after: dict[str, Any], using: str) -> None:
    told = {"action": plan.action, **after}
    audited.append(using, action, "plan", plan.id, actor=actor, reason=plan.reason, before=None, after=told)
