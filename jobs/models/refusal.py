"""Writes that the fence refused, for people to read (contract §4)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class FenceRefusal(Protected):
    """One refused write: which verb, why, what the writer presented and what the row said."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    job_id = models.UUIDField()
    point = models.CharField(max_length=20)
    reason = models.CharField(max_length=20)
    worker_id = models.CharField(max_length=200, default="", blank=True)
    attempt_id = models.UUIDField(null=True, blank=True)
    presented = models.JSONField(default=dict)
    found = models.JSONField(default=dict)

    objects: ClassVar[models.Manager[FenceRefusal]] = ProtectedQuerySet["FenceRefusal"].as_manager()

    class Meta:
        indexes = (
            models.Index("job_id", models.F("id").desc(), name="refusal_job"),
            models.Index(models.F("at").desc(), name="refusal_at"),
        )

    def __str__(self) -> str:
        return f"{self.point} refused: {self.reason}"
