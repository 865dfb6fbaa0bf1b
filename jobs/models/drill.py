"""Drills that were run on this installation: what was tried, what came of it, and when (contract §13)."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobs.models.protected import Protected, ProtectedQuerySet


class DrillKind(StrEnum):
    """What was drilled."""

    ZOMBIE = "zombie"
    """A superseded worker tries every acceptance point, on the installation's own database."""
    GOLDEN = "golden"
    """The golden scenarios, on a throw-away database."""


class DrillVerdict(StrEnum):
    """How a drill ended."""

    PASSED = "passed"
    FAILED = "failed"
    """Something was accepted that must be refused, or a value was not as expected: an alarm."""
    STOPPED = "stopped"
    """It could not be carried out, so it shows nothing."""


class Drill(Protected):
    """One drill. Its row is written when it begins, and completed once; a killed one stays unfinished."""

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8)
    by = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    verdict = models.CharField(max_length=8, default="", blank=True)
    tried = models.PositiveIntegerField(default=0)
    """Points that a zombie tried, or scenarios that were replayed."""
    passed = models.PositiveIntegerField(default=0)
    """How many of them were refused, or as expected."""
    record = models.TextField(default="null")
    """What was observed, as JSON."""

    objects: ClassVar[models.Manager[Drill]] = ProtectedQuerySet["Drill"].as_manager()

    class Meta:
        default_permissions = ("view",)
        permissions = (("run_drill", _("Can run drills")),)
        constraints = (
            models.CheckConstraint(name="drill_kind_known", condition=Q(kind__in=list(DrillKind))),
            models.CheckConstraint(
                name="drill_finished_has_verdict",
                condition=Q(finished_at__isnull=True, verdict="")
                | Q(finished_at__isnull=False, verdict__in=list(DrillVerdict)),
            ),
        )
        indexes = (models.Index("kind", models.F("id").desc(), name="drill_kind"),)

    def __str__(self) -> str:
        return f"{self.kind} drill {self.id}: {self.verdict or 'not finished'}"

    @property
    def observed(self) -> Any:
        """What was observed, as Python values."""
        return json.loads(self.record)

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return (self.finished_at - self.started_at).total_seconds() if self.finished_at else None
