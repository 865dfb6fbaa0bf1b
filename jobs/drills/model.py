"""The job-state table of the exercise: four columns, and no code of its own.

Its app label is no installed application, so migrations never hear of it.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class JobState(models.Model):
    """One job of a drill. The runtime moves it; the drill only inserts and reads it."""

    id = models.TextField(primary_key=True)
    status = models.CharField(max_length=12, default="pending")
    generation = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[JobState]] = models.Manager()

    class Meta:
        app_label = "drills"
        managed = False
        db_table = "job_state"

    def __str__(self) -> str:
        return f"{self.id}: {self.status}, generation {self.generation}"
