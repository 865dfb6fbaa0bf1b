"""Queues that somebody has said something about; a queue without a row is open and without limits."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Queue(Protected):
    """Paused by whom, since when, why and until when (contract §9). A null `paused_until` has no end."""

    name = models.CharField(max_length=100, primary_key=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_until = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=150, default="", blank=True)
    pause_reason = models.CharField(max_length=1000, default="", blank=True)

    objects: ClassVar[models.Manager[Queue]] = ProtectedQuerySet["Queue"].as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="queue_pause_has_start",
                condition=models.Q(paused_at__isnull=False) | models.Q(paused_until__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return self.name
