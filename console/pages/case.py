"""One case: the evidence on the left, the ruling on the right. What is shown is what a ruling signs."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _

from console import casefile, inbox
from console.pages.base import Page
from console.payload import Payload
from jobs.models import Case, EffectSlot, Job
from jobs.models.case import Comment, Proposal, Ruling
from jobs.status import EffectStatus


class CasePage(Page):
    """All that is known of one case, and what can be ruled."""

    template_name = "console/case/page.html"
    folder = "console/case"
    regions = ("state", "evidence")

    @cached_property
    def case(self) -> Case:
        """The case that the address names."""
        case_id: uuid.UUID = self.kwargs["case_id"]
        found: Case | None = (
            Case.objects.select_related("effect", "job").defer("job__input").filter(pk=case_id).first()
        )
        if found is None:
            raise Http404(_("There is no case %(case_id)s.") % {"case_id": case_id})
        return found

    @property
    def slot(self) -> EffectSlot:
        """The effect that it is about."""
        slot: EffectSlot = self.case.effect
        return slot

    @property
    def subject(self) -> Job:
        """The job that the effect belongs to."""
        job: Job = self.case.job
        return job

    @cached_property
    def actor(self) -> casefile.Actor | None:
        """Whoever was last permitted to send."""
        return casefile.actor(self.slot, self.subject, self.around)

    @cached_property
    def proposals(self) -> list[Proposal]:
        """What was asked of a second person, newest first."""
        return list(Proposal.objects.filter(case=self.case).order_by("-at", "-id")[: casefile.WORDS])

    def page(self) -> dict[str, Any]:
        """Return the title and the way back."""
        return {"title": self.case.label or self.case.effect_kind, "live_url": self._live_url()}

    def _shared(self) -> dict[str, Any]:
        return super()._shared() | {"case": self.case, "slot": self.slot, "subject": self.subject}

    def state(self) -> dict[str, Any]:
        """Return where it stands: the times that decide, and whether it moved since the form was shown."""
        now = self.around.now
        seen = self.request.GET.get("seen", "")
        return {
            "actor": self.actor,
            "owned": inbox.owned(self.case, now),
            "parked": inbox.parked(self.case, now),
            "me": self.request.user.get_username(),
            "moved": seen.isascii() and seen.isdigit() and seen != str(self.case.version),
            "unknown": self.slot.status == EffectStatus.UNKNOWN,
        }

    def evidence(self) -> dict[str, Any]:
        """Return everything that a ruling rests on."""
        case, slot = self.case, self.slot
        paths = casefile.paths_of(slot)
        kind = casefile.kind_of(slot)
        comments = list(Comment.objects.filter(case=case).order_by("-id")[: casefile.WORDS])
        rulings = list(Ruling.objects.filter(effect=slot).order_by("-id")[: casefile.WORDS])
        conflict = casefile.is_conflict(case, slot)
        differing, equal = (
            casefile.differences(slot.payload, slot.conflict_payload or "null", paths)
            if conflict
            else ([], 0)
        )
        return {
            "actor": self.actor,
            "kind": casefile.About.of(kind),
            "heard": casefile.evidence(slot),
            "evidence_shown": casefile.EVIDENCE,
            "steps": casefile.steps(slot, self.actor),
            "payload": Payload.of(slot.payload, paths),
            "response": Payload.of(slot.response, paths) if slot.response is not None else None,
            "conflict": conflict,
            "brought": Payload.of(slot.conflict_payload or "null", paths) if conflict else None,
            "differing": differing,
            "equal": equal,
            "history": casefile.history(case, comments, rulings, self.proposals),
        }

    def _live_url(self) -> str:
        """Return the address that the regions refresh from: it carries the version that the form signs."""
        return f"{reverse('admin:case', args=[self.case.id])}?seen={self.case.version}"
