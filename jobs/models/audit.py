"""What people did, sealed: each entry carries a seal over itself and the seal of the one before."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.db import models

from jobs.models.protected import Protected, ProtectedQuerySet


class Source(StrEnum):
    """The door that an operation came in through."""

    CONSOLE = "console"
    API = "api"
    COMMAND = "command"
    AUTOMATIC = "automatic"
    """Nobody: a worker's own duty, or code that called a verb."""


WIDTHS = {
    "actor": 150,
    "user": 150,
    "action": 40,
    "object_type": 40,
    "object_id": 200,
    "reason": 1000,
    "request_id": 100,
    "snapshot": 64,
    "approver": 150,
}
"""The texts that a caller gives, and the most characters kept of each."""
SEALED = ("seq", "at", *WIDTHS, "before", "after", "source", "key_id", "prev_hash")
"""What the seal covers: every column but the seal."""


class AuditEntry(Protected):
    """One operation of a person, as it was written in the operation's own transaction.

    `seq` has no gaps: it is counted under the lock of the head's row, never drawn from a sequence, which
    would lose a number with every rollback. `before` and `after` are canonical JSON, secrets masked.
    """

    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    actor = models.CharField(max_length=WIDTHS["actor"])
    user = models.CharField(max_length=WIDTHS["user"], default="", blank=True)
    action = models.CharField(max_length=WIDTHS["action"])
    object_type = models.CharField(max_length=WIDTHS["object_type"])
    object_id = models.CharField(max_length=WIDTHS["object_id"])
    reason = models.CharField(max_length=WIDTHS["reason"], default="", blank=True)
    before = models.TextField(default="null")
    after = models.TextField(default="null")
    request_id = models.CharField(max_length=WIDTHS["request_id"], default="", blank=True)
    snapshot = models.CharField(max_length=WIDTHS["snapshot"], default="", blank=True)
    approver = models.CharField(max_length=WIDTHS["approver"], default="", blank=True)
    source = models.CharField(max_length=9)
    key_id = models.CharField(max_length=8)
    prev_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)

    objects: ClassVar[models.Manager[AuditEntry]] = ProtectedQuerySet["AuditEntry"].as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        constraints = (
            models.CheckConstraint(name="audit_source_known", condition=models.Q(source__in=list(Source))),
            models.CheckConstraint(
                name="audit_first_has_no_previous",
                condition=models.Q(seq=1, prev_hash="") | models.Q(~models.Q(prev_hash=""), seq__gt=1),
            ),
        )
        indexes = (
            models.Index("object_type", "object_id", models.F("seq").desc(), name="audit_object"),
            models.Index("actor", models.F("seq").desc(), name="audit_actor"),
        )

    def __str__(self) -> str:
        return f"{self.seq}: {self.action} of {self.object_type} {self.object_id}"


class AuditHead(Protected):
    """Where the chain ends: one row, id 1, locked last of all locks (contract §12).

    `checked_*` is what the last `manage.py audit verify` found, for /metrics, which cannot walk the chain.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="", blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    checked_seq = models.BigIntegerField(null=True, blank=True)
    checked_ok = models.BooleanField(null=True, blank=True)

    objects: ClassVar[models.Manager[AuditHead]] = ProtectedQuerySet["AuditHead"].as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(name="audit_head_one_row", condition=models.Q(id=1)),
            models.CheckConstraint(name="audit_head_not_negative", condition=models.Q(seq__gte=0)),
        )

    def __str__(self) -> str:
        return f"{self.seq} entries"
