"""Processes that claim. A pruned worker row never hides its jobs: leases decide, not this table."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Worker(Protected):
    """One start of one worker process; `id` is `hostname:pid:uuid`, never re-used (contract §1)."""

    id = models.CharField(max_length=200, primary_key=True)
    host = models.CharField(max_length=100, default="", blank=True)
    pid = models.BigIntegerField(default=0)
    boot_id = models.CharField(max_length=40, default="", blank=True)
    pid_namespace = models.CharField(max_length=40, default="", blank=True)
    pid_started = models.BigIntegerField(null=True, blank=True)
    """Ticks since boot: with the process table's name, what tells this process from a later one of its
    number."""
    version = models.CharField(max_length=40, default="", blank=True)
    queues = models.JSONField(default=list)
    kinds = models.JSONField(default=list)
    concurrency = models.PositiveIntegerField(default=1)
    scheduler_epoch = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField(db_index=True)
    stopping_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    fenced_at = models.DateTimeField(null=True, blank=True)
    fenced_by = models.CharField(max_length=150, default="", blank=True)
    running = models.PositiveIntegerField(default=0)
    passes = models.JSONField(default=dict)
    """Each loop's last successful pass, so that a loop that died inside a live process is seen."""

    objects: ClassVar[models.Manager[Worker]] = ProtectedQuerySet["Worker"].as_manager()

    class Meta:
        pass

    def __str__(self) -> str:
        return self.id
