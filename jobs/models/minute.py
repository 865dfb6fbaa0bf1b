"""Counts by minute: what charts, metrics and fence coverage are made of."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Minute(Protected):
    """How often `measure` happened in one minute, and the sum of its values.

    A histogram is one row per bucket: `bucket` is the upper bound in milliseconds (0 for a plain
    counter), so adding up is one upsert on both databases.
    """

    id = models.BigAutoField(primary_key=True)
    minute = models.DateTimeField()
    queue = models.CharField(max_length=100, default="", blank=True)
    kind = models.CharField(max_length=120, default="", blank=True)
    measure = models.CharField(max_length=60)
    bucket = models.BigIntegerField(default=0)
    count = models.BigIntegerField(default=0)
    total = models.FloatField(default=0)

    objects: ClassVar[models.Manager[Minute]] = ProtectedQuerySet["Minute"].as_manager()

    class Meta:
        # The series of all queues together, without the rows of each queue and kind that it is the sum of.
        indexes = (models.Index("minute", "measure", condition=models.Q(queue=""), name="minute_whole"),)
        constraints = (
            models.UniqueConstraint(
                fields=("minute", "measure", "queue", "kind", "bucket"), name="minute_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.measure} {self.count}"
