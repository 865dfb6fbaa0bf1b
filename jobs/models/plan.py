"""Mass actions as plans: what is to be done to which jobs, frozen before anybody says yes.

A plan names its jobs and the version of each that was seen; what has changed by then is left alone.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7


class PlanAction(StrEnum):
    """What a plan does to each of its jobs."""

    RETRY = "retry"
    CANCEL = "cancel"
    HOLD = "hold"
    UNHOLD = "unhold"


class PlanState(StrEnum):
    """Where a plan is. A planned one whose time is over is told as expired; nothing writes that down."""

    PLANNED = "planned"
    """Frozen; nothing is done yet. Executed or aborted by a person."""
    RUNNING = "running"
    """Its job goes through the rows; a crash leaves it here, and the job's next attempt goes on."""
    DONE = "done"
    """Each row is done or skipped."""
    ABORTED = "aborted"
    """Ended before its last row, by a person or because who executed it may not any more."""
    EXPIRED = "expired"
    """Never executed."""


STORED = [state for state in PlanState if state != PlanState.EXPIRED]


class RowOutcome(StrEnum):
    """What became of one row."""

    PENDING = "pending"
    DONE = "done"
    SKIPPED = "skipped"


class Plan(models.Model):
    """One mass action. Moved by guarded updates in jobs/operations only."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    action = models.CharField(max_length=6)
    reason = models.CharField(max_length=1000)
    state = models.CharField(max_length=8, default=PlanState.PLANNED)
    filters = models.JSONField(default=list)
    """[[name, value], …] as they were given; empty where the rows were picked one by one."""
    queues = models.JSONField(default=list)
    """Of its rows: who is limited to queues sees a plan within them only."""
    total = models.PositiveIntegerField()
    left_out = models.PositiveIntegerField(default=0)
    """Rows that were picked but are in no state for the action."""
    summary = models.JSONField(default=dict)
    """`statuses`, `kinds`, `queues` and `holds` with how many rows of each, `oldest` and `newest` as
    instants, `amounts` by currency, and the `largest` rows with theirs."""
    done = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    expires_at = models.DateTimeField()

    started_at = models.DateTimeField(null=True, blank=True)
    executor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    executed_by = models.CharField(max_length=150, default="", blank=True)
    token = models.ForeignKey("jobs.ApiToken", models.PROTECT, null=True, blank=True, related_name="+")
    """The API token it was executed with: when that is revoked, the plan stops."""
    source = models.CharField(max_length=9, default="", blank=True)
    job_id = models.UUIDField(null=True, blank=True)
    """The job that goes through the rows."""

    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, default="", blank=True)
    """Empty where it came to its own end."""
    ended_why = models.CharField(max_length=40, default="", blank=True)
    """The code of what stopped it, where no person did."""

    class Meta:
        default_permissions = ()
        indexes = (
            models.Index("job_id", condition=Q(job_id__isnull=False), name="plan_job"),
            models.Index("state", name="plan_state"),
        )
        constraints = (
            models.CheckConstraint(name="plan_action_known", condition=Q(action__in=list(PlanAction))),
            models.CheckConstraint(name="plan_state_known", condition=Q(state__in=STORED)),
            models.CheckConstraint(name="plan_has_rows", condition=Q(total__gte=1)),
            models.CheckConstraint(
                name="plan_counts_within_total", condition=Q(total__gte=F("done") + F("skipped"))
            ),
            models.CheckConstraint(
                name="plan_started_has_executor",
                condition=Q(started_at__isnull=True, executor__isnull=True, done=0, skipped=0)
                | Q(started_at__isnull=False, executor__isnull=False),
            ),
            models.CheckConstraint(
                name="plan_running_was_started",
                condition=~Q(state__in=[PlanState.RUNNING, PlanState.DONE]) | Q(started_at__isnull=False),
            ),
            models.CheckConstraint(
                name="plan_ended_says_when",
                condition=Q(state__in=[PlanState.DONE, PlanState.ABORTED], ended_at__isnull=False)
                | Q(state__in=[PlanState.PLANNED, PlanState.RUNNING], ended_at__isnull=True),
            ),
            models.CheckConstraint(
                name="plan_done_has_none_left",
                condition=~Q(state=PlanState.DONE) | Q(total=F("done") + F("skipped")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.action} of {self.total}: {self.state}"

    def standing(self, now: datetime) -> PlanState:
        """Return where it is at `now`, expired included."""
        if self.state == PlanState.PLANNED and self.expires_at <= now:
            return PlanState.EXPIRED
        return PlanState(self.state)

    @property
    def left(self) -> int:
        """Rows that nothing was done about."""
        return self.total - self.done - self.skipped


class PlanRow(models.Model):
    """One job of a plan, at the version that was seen. Rows are gone through in the order of their ids."""

    id = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(Plan, models.CASCADE, related_name="rows", db_index=False)
    job_id = models.UUIDField()
    seen_version = models.BigIntegerField()
    outcome = models.CharField(max_length=7, default=RowOutcome.PENDING)
    code = models.CharField(max_length=40, default="", blank=True)
    """Why it was skipped."""
    params = models.JSONField(default=dict)
    """What fills the sentence of `code`."""
    requested = models.BooleanField(default=False)
    """A cancel was asked for, which whoever runs the job has yet to acknowledge."""
    at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        indexes = (models.Index("plan", "outcome", "id", name="planrow_outcome"),)
        constraints = (
            models.UniqueConstraint("plan", "job_id", name="planrow_once"),
            models.CheckConstraint(
                name="planrow_outcome_says_when",
                condition=Q(outcome=RowOutcome.PENDING, at__isnull=True, code="")
                | Q(outcome=RowOutcome.DONE, at__isnull=False, code="")
                | (Q(outcome=RowOutcome.SKIPPED, at__isnull=False) & ~Q(code="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.job_id} at {self.seen_version}: {self.outcome}"
