"""Effect slots: one durable row for one action on the outside world (contract §3, §6)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q

from jobs.models.protected import Protected, ProtectedQuerySet
from jobs.status import OPEN_EFFECT, EffectStatus


class EffectSlot(Protected):  # type: ignore[django-manager-missing]  # made at run time
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
    """Another payload was brought for this key: an open matter until a person rules."""
    conflict_payload = models.TextField(null=True, blank=True)
    conflict_digest = models.CharField(max_length=64, default="", blank=True)
    use_recorded = models.BooleanField(default=False)
    """Ruled: later runs of this revision get the recorded payload, whatever they bring."""
    ruled_abandon = models.BooleanField(default=False)

    label = models.CharField(max_length=200, default="", blank=True)
    target = models.CharField(max_length=200, default="", blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True, blank=True)
    currency = models.CharField(max_length=8, default="", blank=True)
    etag = models.CharField(max_length=200, default="", blank=True)

    payload = models.TextField(default="null")
    payload_digest = models.CharField(max_length=64)
    granted_attempt_id = models.UUIDField(null=True, blank=True)
    grant_id = models.UUIDField(null=True, blank=True)
    grants = models.PositiveIntegerField(default=0)
    """How often sending was permitted; 0 means certainly never sent."""
    granted_at = models.DateTimeField(null=True, blank=True)
    earlier_unresolved = models.BooleanField(default=False)
    """It was granted again while an earlier sending was unresolved, so a refusal of this one proves
    little."""
    key_seconds = models.PositiveIntegerField(null=True, blank=True)
    key_valid_until = models.DateTimeField(null=True, blank=True)
    settle_seconds = models.PositiveIntegerField(null=True, blank=True)
    """How long after the last moment of sending a provider may still come to know of it; null is for ever."""
    sender_ended_at = models.DateTimeField(null=True, blank=True)
    """When the sender was known to send no more: its own report, or the proof that its process is gone."""
    inquiring_until = models.DateTimeField(null=True, blank=True)
    inquiries = models.PositiveIntegerField(default=0)
    inquired_at = models.DateTimeField(null=True, blank=True)
    inquire_asked_at = models.DateTimeField(null=True, blank=True)
    """When a person asked for an inquiry that nobody has begun yet."""
    inquire_asked_by = models.CharField(max_length=150, null=True, blank=True)
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

    @property
    def settle_by(self) -> datetime | None:
        """From when on an inquiry that finds nothing proves that nothing happened; None is never, as things
        are."""
        if self.sender_ended_at is None or self.settle_seconds is None:
            return None
        return self.sender_ended_at + timedelta(seconds=self.settle_seconds)
