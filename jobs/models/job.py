"""Jobs: the row that every guard reads (contract §1, §3).

A guard may only read columns of the row it updates, which is why counters such as `open_effects`
live here. No index, partial or not, names a lease or heartbeat column: renewals then stay HOT.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from jobs.manager import JobManager
from jobs.models.protected import Protected
from jobs.status import CLAIMABLE, IDLE, TERMINAL, HoldReason, JobStatus, WaitReason

if TYPE_CHECKING:
    from jobs.models.attempt import Attempt
    from jobs.models.effect import EffectSlot

TERMINAL_WORDS = sorted(TERMINAL)
CLAIMABLE_WORDS = sorted(CLAIMABLE)
IDLE_WORDS = sorted(IDLE)


class Job(Protected):  # type: ignore[django-manager-missing]  # protected managers are made at run time
    """A durable unit of work. Written by the verbs of `Job.objects` only."""

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=120)
    queue = models.CharField(max_length=100)
    label = models.CharField(max_length=200, default="", blank=True)
    tags = models.TextField(default="", blank=True)
    """Those of the kind and of the enqueue, with blanks between; found through SearchAttribute."""
    status = models.CharField(max_length=12, choices=[(s.value, s.value) for s in JobStatus])
    wait_reason = models.CharField(max_length=12, default="", blank=True)
    hold_reason = models.CharField(max_length=16, default="", blank=True)
    priority = models.SmallIntegerField(default=0)
    state_version = models.BigIntegerField(default=1)

    input = models.TextField(default="{}")
    """Canonical JSON: the very text that `input_digest` was taken of, the same bytes on both databases."""
    input_digest = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    unique_key = models.CharField(max_length=200, null=True, blank=True)
    unique_scope = models.CharField(max_length=10, default="unfinished")
    concurrency_key = models.CharField(max_length=200, null=True, blank=True)
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, db_index=False, related_name="children"
    )
    unmet_edges = models.PositiveIntegerField(default=0)
    enqueued_by = models.CharField(max_length=150, default="", blank=True)
    traceparent = models.CharField(max_length=55, default="", blank=True)
    """Of the request that enqueued it (W3C Trace Context)."""

    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    """The claim key: set only while the job could be claimed now, so that the claim index stays small."""
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    wait_ends_at = models.DateTimeField(null=True, blank=True)
    """Set by the first wait: the kind's bound on all waiting of this job."""
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    worker_id = models.CharField(max_length=200, null=True, blank=True)
    attempt_id = models.UUIDField(null=True, blank=True)
    claim_generation = models.BigIntegerField(default=0)
    scheduler_epoch = models.BigIntegerField(default=0)
    lease_seconds = models.PositiveIntegerField(default=60)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)

    attempt_count = models.PositiveIntegerField(default=0)
    attempts_excused = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=20)
    open_effects = models.PositiveSmallIntegerField(default=0)

    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_generation = models.BigIntegerField(default=0)
    cancel_requested_by = models.CharField(max_length=150, default="", blank=True)
    cancel_reason = models.CharField(max_length=1000, default="", blank=True)

    error_code = models.CharField(max_length=80, default="", blank=True)
    error_message = models.TextField(default="", blank=True)
    result_commit_id = models.UUIDField(null=True, blank=True)
    """The committed attempt; written once in the database's eyes (INV-9)."""

    objects: ClassVar[JobManager] = JobManager()

    attempts: models.Manager[Attempt]
    effects: models.Manager[EffectSlot]

    class Meta:
        ordering = ()
        default_permissions = ("view",)
        permissions = (
            ("view_payload", _("Can reveal redacted payloads")),
            ("enqueue_job", _("Can enqueue jobs")),
            ("retry_job", _("Can retry ended jobs")),
            ("cancel_job", _("Can cancel jobs")),
            ("force_cancel_job", _("Can force-cancel jobs")),
            ("hold_job", _("Can hold and release jobs")),
            ("revise_job", _("Can revise a job's input")),
            ("pause_queue", _("Can pause and resume queues")),
            ("raise_epoch", _("Can raise the epoch and close claims")),
            ("fence_worker", _("Can fence a worker")),
            ("run_worker", _("Can claim jobs over HTTP")),
        )
        indexes = (
            models.Index(
                "queue",
                "kind",
                F("priority").desc(),
                "ready_at",
                "id",
                condition=Q(ready_at__isnull=False),
                name="job_ready",
            ),
            models.Index(
                "next_attempt_at",
                condition=Q(ready_at__isnull=True, status__in=CLAIMABLE_WORDS, hold_reason=""),
                name="job_due",
            ),
            models.Index("id", condition=Q(status=JobStatus.RUNNING), name="job_running"),
            models.Index(
                "deadline_at",
                condition=Q(deadline_at__isnull=False, status__in=IDLE_WORDS),
                name="job_deadline",
            ),
            models.Index("parent", condition=Q(parent__isnull=False), name="job_parent"),
            models.Index(
                "status",
                F("id").desc(),
                # Looked through for these without a look at the rows.
                "error_code",
                "kind",
                "queue",
                condition=Q(status__in=["blocked", "cancelled", "failed", "skipped", "uncertain"]),
                name="job_abnormal",
            ),
            models.Index(F("id").desc(), condition=~Q(hold_reason=""), name="job_held"),
        )
        constraints = (
            models.UniqueConstraint(
                "unique_key",
                condition=Q(unique_key__isnull=False)
                & (Q(unique_scope="ever") | Q(finished_at__isnull=True)),
                name="job_unique_key",
            ),
            models.CheckConstraint(
                name="job_status_known", condition=Q(status__in=[s.value for s in JobStatus])
            ),
            # INV-14, three parts
            models.CheckConstraint(
                name="job_terminal_has_finished_at",
                condition=Q(status__in=TERMINAL_WORDS, finished_at__isnull=False)
                | (~Q(status__in=TERMINAL_WORDS) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="job_running_has_lease",
                condition=Q(
                    status=JobStatus.RUNNING,
                    lease_expires_at__isnull=False,
                    worker_id__isnull=False,
                    attempt_id__isnull=False,
                )
                | (~Q(status=JobStatus.RUNNING) & Q(lease_expires_at__isnull=True, worker_id__isnull=True)),
            ),
            # INV-9: the pointer and the status say the same
            models.CheckConstraint(
                name="job_succeeded_has_result",
                condition=Q(status=JobStatus.SUCCEEDED, result_commit_id__isnull=False)
                | (~Q(status=JobStatus.SUCCEEDED) & Q(result_commit_id__isnull=True)),
            ),
            # INV-6
            models.CheckConstraint(
                name="job_cancel_requested_not_idle",
                condition=Q(cancel_requested_at__isnull=True) | ~Q(status__in=IDLE_WORDS),
            ),
            models.CheckConstraint(
                name="job_cancel_has_generation",
                condition=Q(cancel_requested_at__isnull=True) | Q(cancel_generation__gte=1),
            ),
            models.CheckConstraint(
                name="job_ready_is_claimable",
                condition=Q(ready_at__isnull=True) | Q(status__in=CLAIMABLE_WORDS, hold_reason=""),
            ),
            models.CheckConstraint(
                name="job_claimable_has_attempts_left",
                condition=~Q(status__in=CLAIMABLE_WORDS)
                | Q(attempt_count__lt=F("attempts_excused") + F("max_attempts")),
            ),
            models.CheckConstraint(
                name="job_excused_within_count", condition=Q(attempts_excused__lte=F("attempt_count"))
            ),
            models.CheckConstraint(
                name="job_waiting_has_reason",
                condition=Q(status=JobStatus.WAITING, wait_reason__in=[r.value for r in WaitReason])
                | (~Q(status=JobStatus.WAITING) & Q(wait_reason="")),
            ),
            models.CheckConstraint(
                name="job_due_unless_approval",
                condition=~Q(status__in=CLAIMABLE_WORDS)
                | Q(next_attempt_at__isnull=False)
                | Q(wait_reason=WaitReason.APPROVAL),
            ),
            models.CheckConstraint(
                name="job_hold_known", condition=Q(hold_reason__in=["", *(r.value for r in HoldReason)])
            ),
            models.CheckConstraint(
                name="job_blocked_has_edges",
                condition=Q(status=JobStatus.BLOCKED, unmet_edges__gt=0)
                | (~Q(status=JobStatus.BLOCKED) & ~Q(status=JobStatus.PENDING))
                | Q(status=JobStatus.PENDING, unmet_edges=0),
            ),
            # INV-13
            models.CheckConstraint(
                name="job_terminal_has_no_open_effect",
                condition=~Q(status__in=TERMINAL_WORDS) | Q(open_effects=0),
            ),
            models.CheckConstraint(name="job_priority_range", condition=Q(priority__range=(-100, 100))),
            models.CheckConstraint(name="job_max_attempts_positive", condition=Q(max_attempts__gte=1)),
            models.CheckConstraint(name="job_lease_positive", condition=Q(lease_seconds__gte=1)),
            models.CheckConstraint(
                name="job_scope_known", condition=Q(unique_scope__in=["unfinished", "ever"])
            ),
        )

    def __str__(self) -> str:
        return f"{self.label or self.kind} {self.id}"

    @property
    def arguments(self) -> Any:
        """The input as Python values, parsed anew at each call."""
        return json.loads(self.input)

    @property
    def tag_list(self) -> list[str]:
        """The tags one by one."""
        return self.tags.split()

    @property
    def attempts_used(self) -> int:
        """Attempts that count against `max_attempts` (contract §3, Budget)."""
        return self.attempt_count - self.attempts_excused
