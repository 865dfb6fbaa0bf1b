"""Effect slots: one durable row for one action on the outside world (contract §3, §6)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from jobs.models.protected import Protected, ProtectedQuerySet
from jobs.status import OPEN_EFFECT, EffectStatus


class EffectSlot(Protected):
    """What is known of one effect. `id` is the effect id, which is also the provider's idempotency key."""

    REPLAY = ("idempotent", "queryable", "non_replayable")

    id = models.CharField(max_length=64, primary_key=True)
    job = models.ForeignKey("jobs.Job", models.PROTECT, related_name="effects", db_index=False)
    revision = models.PositiveIntegerField()
    node_id = models.CharField(max_length=120, default="", blank=True)
    slot = models.CharField(max_length=120)
    kind = models.CharField(max_length=120)
    replay = models.CharField(max_length=16, choices=[(r, r) for r in REPLAY])
    inquirable = models.BooleanField(default=False)
    status = models.CharField(max_length=12, choices=[(s.value, s.value) for s in EffectStatus])
    version = models.BigIntegerField(default=1)
    in_conflict = models.BooleanField(default=False)

    payload = models.TextField(default="null")
    payload_digest = models.CharField(max_length=64)
    granted_attempt_id = models.UUIDField(null=True, blank=True)
    grant_id = models.UUIDField(null=True, blank=True)
    grants = models.PositiveIntegerField(default=0)
    """How often sending was permitted; 0 means certainly never sent."""
    granted_at = models.DateTimeField(null=True, blank=True)
    key_valid_until = models.DateTimeField(null=True, blank=True)
    settle_by = models.DateTimeField(null=True, blank=True)
    reference = models.CharField(max_length=200, default="", blank=True)
    response = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    objects: ClassVar[models.Manager[EffectSlot]] = ProtectedQuerySet["EffectSlot"].as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(fields=("job", "revision", "node_id", "slot"), name="effect_slot_once"),
            models.CheckConstraint(
                name="effect_status_known", condition=Q(status__in=[s.value for s in EffectStatus])
            ),
            models.CheckConstraint(
                name="effect_replay_known",
                condition=Q(replay__in=["idempotent", "queryable", "non_replayable"]),
            ),
            models.CheckConstraint(
                name="effect_executing_is_granted",
                condition=~Q(status=EffectStatus.EXECUTING)
                | Q(
                    granted_attempt_id__isnull=False,
                    grant_id__isnull=False,
                    granted_at__isnull=False,
                    grants__gte=1,
                ),
            ),
            models.CheckConstraint(
                name="effect_committed_has_response",
                condition=~Q(status=EffectStatus.COMMITTED) | Q(response__isnull=False),
            ),
        )
        indexes = (
            models.Index("changed_at", condition=Q(status__in=sorted(OPEN_EFFECT)), name="effect_open"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.slot} of {self.job_id}: {self.status}"
