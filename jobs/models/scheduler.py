"""The scheduler row: the one place where the whole cluster is fenced (contract §5, §12)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Scheduler(Protected):
    """One row, id 1, laid by a migration. Raising `epoch` refuses every older claim at once."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    epoch = models.BigIntegerField(default=1)
    claims_open = models.BooleanField(default=True)
    timeline = models.CharField(max_length=80, default="", blank=True)
    clock_high_water = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    changed_by = models.CharField(max_length=150, default="", blank=True)
    reason = models.CharField(max_length=1000, default="", blank=True)

    objects: ClassVar[models.Manager[Scheduler]] = ProtectedQuerySet["Scheduler"].as_manager()

    class Meta:
        verbose_name = "scheduler"
        verbose_name_plural = "scheduler"
        constraints = (
            models.CheckConstraint(name="scheduler_one_row", condition=models.Q(id=1)),
            models.CheckConstraint(name="scheduler_epoch_positive", condition=models.Q(epoch__gte=1)),
        )

    def __str__(self) -> str:
        return f"epoch {self.epoch}, claims {'open' if self.claims_open else 'closed'}"
