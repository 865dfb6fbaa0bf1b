"""A raise of the epoch that one person asked for and another has to confirm (two-person rule)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7

from jobs.models.protected import Protected, ProtectedQuerySet


class RaiseProposal(Protected):
    """One raise that was asked for: of which epoch, why, at what price. One is open at a time."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    epoch = models.BigIntegerField()
    """The epoch that was seen: raised by anybody else, this is void."""
    floor = models.BigIntegerField(default=0)
    close_claims = models.BooleanField(default=False)
    reason = models.CharField(max_length=1000)
    price = models.TextField(default="{}")
    """What it would have cost then, canonical JSON: the second person sees what has changed since."""
    by = models.CharField(max_length=150)
    account = models.CharField(max_length=64)
    """The key of his account: a person who has another name by now is the same one."""
    at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, default="", blank=True)
    decision = models.CharField(max_length=10, default="", blank=True)
    """approved | rejected | void"""
    note = models.CharField(max_length=1000, default="", blank=True)

    objects: ClassVar[models.Manager[RaiseProposal]] = ProtectedQuerySet["RaiseProposal"].as_manager()

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("decision",), condition=Q(decision=""), name="raiseproposal_open_once"
            ),
            models.CheckConstraint(
                name="raiseproposal_never_self", condition=~Q(decision="approved") | ~Q(decided_by=F("by"))
            ),
            models.CheckConstraint(
                name="raiseproposal_decided_says_who",
                condition=Q(decision="", decided_at__isnull=True)
                | Q(decision__in=["approved", "rejected", "void"], decided_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"raise of {self.epoch} asked by {self.by}"
