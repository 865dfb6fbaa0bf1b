"""Attempts: one physical execution each, and where a result lives."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from jobs.models.protected import Protected, ProtectedQuerySet
from jobs.status import AttemptStatus


class Attempt(Protected):
    """What one worker did with one claim. Its status leaves `running` once and never changes again."""

    id = models.UUIDField(primary_key=True)
    # (job, generation) is unique, which is the index that a look-up by job uses.
    job = models.ForeignKey("jobs.Job", models.PROTECT, related_name="attempts", db_index=False)
    generation = models.BigIntegerField()
    revision = models.PositiveIntegerField(default=1)
    worker_id = models.CharField(max_length=200)
    scheduler_epoch = models.BigIntegerField()
    status = models.CharField(
        max_length=12, default=AttemptStatus.RUNNING, choices=[(s.value, s.value) for s in AttemptStatus]
    )
    started_at = models.DateTimeField()
    staged_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    result = models.TextField(null=True, blank=True)
    result_digest = models.CharField(max_length=64, null=True, blank=True)
    error_code = models.CharField(max_length=80, default="", blank=True)
    error_message = models.TextField(default="", blank=True)
    traceback = models.TextField(default="", blank=True)
    beats = models.PositiveIntegerField(default=0)
    progress_done = models.BigIntegerField(null=True, blank=True)
    progress_total = models.BigIntegerField(null=True, blank=True)
    progress_note = models.CharField(max_length=200, default="", blank=True)
    log = models.TextField(default="", blank=True)
    traceparent = models.CharField(max_length=55, default="", blank=True)
    """Of the request that claimed it, else of its job."""

    objects: ClassVar[models.Manager[Attempt]] = ProtectedQuerySet["Attempt"].as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(fields=("job", "generation"), name="attempt_generation_once"),
            models.CheckConstraint(
                name="attempt_status_known", condition=Q(status__in=[s.value for s in AttemptStatus])
            ),
            models.CheckConstraint(
                name="attempt_ended_has_finished_at",
                condition=Q(status=AttemptStatus.RUNNING, finished_at__isnull=True)
                | (~Q(status=AttemptStatus.RUNNING) & Q(finished_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="attempt_committed_has_digest",
                condition=~Q(status=AttemptStatus.COMMITTED)
                | Q(result_digest__isnull=False, result__isnull=False),
            ),
            models.CheckConstraint(
                name="attempt_staged_has_digest",
                condition=Q(staged_at__isnull=True) | Q(result_digest__isnull=False, result__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"attempt {self.id} of generation {self.generation}"

    @property
    def value(self) -> Any:
        """The staged or committed result as Python values."""
        return None if self.result is None else json.loads(self.result)
