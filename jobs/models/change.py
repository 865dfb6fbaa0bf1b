"""The feed of changes: one row per statement, never one per transition (a batch of 500 is one row)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Change(Protected):
    """What one ledger statement did.

    `writer` is the writing transaction's id: a reader stops at the oldest transaction that is still
    open, because ids are handed out before commit and a lower one may become visible later.
    `actor` and `reason` are set for a person's verbs.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    writer = models.BigIntegerField(default=0)
    verb = models.CharField(max_length=20)
    jobs = models.JSONField(default=list)
    """[[job id, new status], …]"""
    actor = models.CharField(max_length=150, default="", blank=True)
    reason = models.CharField(max_length=1000, default="", blank=True)

    objects: ClassVar[models.Manager[Change]] = ProtectedQuerySet["Change"].as_manager()

    class Meta:
        indexes = (
            models.Index("at", name="change_at"),
            # The order in which the feed is told (jobs/ledger/feed.py).
            models.Index("writer", "id", name="change_feed"),
        )

    def __str__(self) -> str:
        return f"{self.verb} of {len(self.jobs)}"
