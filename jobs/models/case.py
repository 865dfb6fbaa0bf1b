"""Cases: what a person must look at, and what is said and ruled there (contract §6, Rulings)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from jobs.models.protected import Protected, ProtectedQuerySet


class CaseKind(StrEnum):
    """Why a person is asked."""

    UNKNOWN = "unknown"
    CONFLICT = "conflict"
    APPROVAL = "approval"
    CONTRADICTION = "contradiction"


class Verdict(StrEnum):
    """What a person may decide; which are offered depends on the case's kind."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    ABANDON = "abandon"
    USE_RECORDED = "use_recorded"
    REBIND = "rebind"
    REVISE = "revise"
    SEND = "send"
    ACKNOWLEDGE = "acknowledge"


VERDICTS: dict[CaseKind, tuple[Verdict, ...]] = {
    CaseKind.UNKNOWN: (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.ABANDON),
    CaseKind.CONFLICT: (Verdict.USE_RECORDED, Verdict.REBIND, Verdict.REVISE, Verdict.ABANDON),
    CaseKind.APPROVAL: (Verdict.SEND, Verdict.ABANDON),
    CaseKind.CONTRADICTION: (Verdict.ACKNOWLEDGE,),
}


class ClosedAs(StrEnum):
    """How a case came to its end: by a person, by evidence, or because nothing depends on it any more."""

    RULED = "ruled"
    RESOLVED = "resolved"
    MOOT = "moot"


class Case(Protected):  # type: ignore[django-manager-missing]  # made at run time
    """One open matter of one effect. At most one of a kind is open for an effect at a time."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    kind = models.CharField(max_length=16, choices=[(k.value, k.value) for k in CaseKind])
    job = models.ForeignKey("jobs.Job", models.PROTECT, related_name="cases")
    effect = models.ForeignKey("jobs.EffectSlot", models.PROTECT, related_name="cases", db_index=False)
    effect_kind = models.CharField(max_length=120)
    label = models.CharField(max_length=200, default="", blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True, blank=True)
    currency = models.CharField(max_length=8, default="", blank=True)
    cause = models.CharField(max_length=80, default="", blank=True)
    """The name of the error that the sender met; cases alike in it and near in time are one outage."""
    opened_at = models.DateTimeField()
    sla_due_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_as = models.CharField(
        max_length=10, default="", blank=True, choices=[(c.value, c.value) for c in ClosedAs]
    )
    owner = models.CharField(max_length=150, default="", blank=True)
    owned_until = models.DateTimeField(null=True, blank=True)
    parked_until = models.DateTimeField(null=True, blank=True)
    parked_why = models.CharField(max_length=200, default="", blank=True)
    version = models.BigIntegerField(default=1)
    """Grows with everything a person would want to have seen before ruling."""

    objects: ClassVar[models.Manager[Case]] = ProtectedQuerySet["Case"].as_manager()

    class Meta:
        default_permissions = ("view",)
        permissions = (
            ("rule_effect", _("Can rule on an effect")),
            ("approve_ruling", _("Can approve a ruling or a sending")),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("effect", "kind"), condition=Q(closed_at__isnull=True), name="case_open_once"
            ),
            models.CheckConstraint(name="case_kind_known", condition=Q(kind__in=[k.value for k in CaseKind])),
            models.CheckConstraint(
                name="case_closed_says_how",
                condition=Q(closed_at__isnull=True, closed_as="")
                | Q(closed_at__isnull=False, closed_as__in=[c.value for c in ClosedAs]),
            ),
        )
        indexes = (
            models.Index("opened_at", condition=Q(closed_at__isnull=True), name="case_open"),
            models.Index(
                F("closed_at").desc(),
                F("id").desc(),
                condition=Q(closed_at__isnull=False),
                name="case_closed",
            ),
            models.Index(F("id").desc(), "effect_kind", name="case_newest"),
            models.Index("effect_kind", F("id").desc(), name="case_alike"),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.label or self.effect_kind}"

    def owner_at(self, now: datetime) -> str:
        """Return who has it at this moment, or had it when it was closed; empty where a take has run out."""
        over = self.closed_at is None and self.owned_until is not None and self.owned_until <= now
        return "" if over else self.owner


class Evidence(Protected):
    """One thing that was learnt about an effect, from whomever; never changed, never removed."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    effect = models.ForeignKey("jobs.EffectSlot", models.PROTECT, related_name="evidence", db_index=False)
    source = models.CharField(max_length=12)
    """inquiry | report | person | proof"""
    outcome = models.CharField(max_length=20)
    decisive = models.BooleanField(default=False)
    """Whether it settled the effect; what only came in beside is kept all the same."""
    reference = models.CharField(max_length=200, default="", blank=True)
    body = models.TextField(default="", blank=True)
    attempt_id = models.UUIDField(null=True, blank=True)
    actor = models.CharField(max_length=200, default="", blank=True)

    objects: ClassVar[models.Manager[Evidence]] = ProtectedQuerySet["Evidence"].as_manager()

    class Meta:
        default_permissions = ("view",)
        indexes = (models.Index("effect", F("id").desc(), name="evidence_effect"),)

    def __str__(self) -> str:
        return f"{self.source}: {self.outcome}"


class Ruling(Protected):
    """A person's decision that took effect. Immutable; a correction is a new one."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    case = models.ForeignKey(Case, models.PROTECT, related_name="rulings")
    effect = models.ForeignKey("jobs.EffectSlot", models.PROTECT, related_name="rulings")
    verdict = models.CharField(max_length=16, choices=[(v.value, v.value) for v in Verdict])
    by = models.CharField(max_length=150)
    approved_by = models.CharField(max_length=150, default="", blank=True)
    reason_code = models.CharField(max_length=40)
    reason = models.CharField(max_length=1000)
    reference = models.CharField(max_length=200, default="", blank=True)
    response = models.TextField(null=True, blank=True)
    compensate = models.BooleanField(default=False)
    attested = models.BooleanField(default=False)
    """The person vouches that the sender is dead, where the machine could not prove it."""
    snapshot = models.CharField(max_length=64)
    slot_version = models.BigIntegerField()

    objects: ClassVar[models.Manager[Ruling]] = ProtectedQuerySet["Ruling"].as_manager()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.verdict} by {self.by}"


class Proposal(Protected):
    """A decision that needs a second person, as the first one signed it (two-person rule)."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    case = models.ForeignKey(Case, models.PROTECT, related_name="proposals")
    effect = models.ForeignKey("jobs.EffectSlot", models.PROTECT, related_name="proposals")
    verdict = models.CharField(max_length=16, choices=[(v.value, v.value) for v in Verdict])
    asked = models.TextField(default="{}")
    """What the ruling will say, canonical JSON."""
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    """Null while a sending waits for its approval, which has no due time."""
    snapshot = models.CharField(max_length=64)
    slot_version = models.BigIntegerField()
    payload_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, default="", blank=True)
    decision = models.CharField(max_length=10, default="", blank=True)
    """approved | rejected | void"""
    note = models.CharField(max_length=1000, default="", blank=True)
    grant_id = models.UUIDField(null=True, blank=True)
    """The one sending that used an approval up."""

    objects: ClassVar[models.Manager[Proposal]] = ProtectedQuerySet["Proposal"].as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(fields=("case",), condition=Q(decision=""), name="proposal_open_once"),
            models.CheckConstraint(
                name="proposal_never_self", condition=~Q(decision="approved") | ~Q(decided_by=F("by"))
            ),
            models.CheckConstraint(
                name="proposal_decided_says_who",
                condition=Q(decision="", decided_at__isnull=True)
                | Q(decision__in=["approved", "rejected", "void"], decided_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.verdict} asked by {self.by}"


class Comment(Protected):
    """What somebody wrote beside a case."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    case = models.ForeignKey(Case, models.PROTECT, related_name="comments")
    by = models.CharField(max_length=150)
    text = models.CharField(max_length=2000)

    objects: ClassVar[models.Manager[Comment]] = ProtectedQuerySet["Comment"].as_manager()

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.by}: {self.text[:40]}"
