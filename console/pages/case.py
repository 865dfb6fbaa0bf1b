"""One case: the evidence on the left, the ruling on the right. What is shown is what a ruling signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console import casefile, environment, forms, inbox, kindred, outages, wording
from console.pages.base import Page
from console.payload import Payload
from jobs.models import AuditEntry, Case, EffectSlot, Job
from jobs.models.case import VERDICTS, CaseKind, Proposal, Verdict
from jobs.operations import cases, casework, guards
from jobs.operations.actor import APPROVE, RULE
from jobs.operations.cases import Offer, View
from jobs.outcomes import Refused
from jobs.status import EffectStatus


@dataclass(frozen=True)
class Choice:
    """One verdict of the closed list as this person finds it."""

    offer: Offer
    chosen: bool
    by_word: bool
    """Closed as things are, but open to who vouches that the sender is dead."""

    @property
    def locked(self) -> bool:
        """Whether nothing that this person could say opens it now."""
        return not self.offer.allowed and not self.by_word


class CasePage(Page):
    """All that is known of one case, and what can be ruled."""

    template_name = "console/case/page.html"
    folder = "console/case"
    regions: ClassVar[tuple[str, ...]] = ("state", "evidence", "choices")

    @cached_property
    def view(self) -> View:
        """The case that the address names, with everything that bears on it."""
        try:
            return cases.look(self.kwargs["case_id"], now=self.around.now)
        except Refused as refused:
            raise Http404(str(refused)) from None

    @property
    def case(self) -> Case:
        """The case itself."""
        return self.view.case

    @property
    def slot(self) -> EffectSlot:
        """The effect that it is about."""
        return self.view.effect

    @property
    def subject(self) -> Job:
        """The job that the effect belongs to."""
        return self.view.job

    def _shared(self) -> dict[str, Any]:
        return super()._shared() | {
            "case": self.case,
            "slot": self.slot,
            "subject": self.subject,
            "sender": self.view.sender,
            "in_flight_until": self.view.in_flight_until,
            "settle_by": self.view.settle_by,
            "provider": self.view.kind.provider if self.view.kind else "",
            "place": environment.word(),
        }

    def page(self) -> dict[str, Any]:
        """Return the title, and what can be done here."""
        return {
            "title": self.case.label or self.case.effect_kind,
            "live_url": f"{reverse('admin:case', args=[self.case.id])}?seen={self.case.version}",
            "evidence_seconds": 2 if self.slot.inquire_asked_at else 5,
            **self.decide({}),
        }

    def refusing(self, refusal: dict[str, Any], bound: dict[str, Any], status: int) -> HttpResponse:
        """Answer a form that was refused: the page as it is now, what stands against it, the words kept."""
        return self.whole({"refusal": refusal, **self.decide(bound)}, status)

    def facts(self) -> dict[str, Any]:
        """Return the times that decide, for the page that asks once more."""
        return {**self._shared(), "number": self.attempt[0]}

    def state(self) -> dict[str, Any]:
        """Return where it stands: the times that decide, and whether it moved since the form was shown."""
        now = self.around.now
        seen = self.request.GET.get("seen", "")
        return {
            "outage": outages.around(self.case),
            "owned": inbox.owned(self.case, now),
            "parked": inbox.parked(self.case, now),
            "me": self.request.user.get_username(),
            "number": self.attempt[0],
            "known_to": sum(self.subject.kind in worker.kinds for worker in self.around.live),
            "moved": seen.isascii() and seen.isdigit() and seen != str(self.case.version),
        }

    @cached_property
    def attempt(self) -> tuple[int, int]:
        """Which attempt the sender's was, and how many of its writes were refused."""
        return casefile.attempt_facts(self.view)

    def choices(self) -> dict[str, Any]:
        """Return the closed list as it is open now: a choice that waits for its time opens by itself."""
        return {"choices": self._choices("")}

    def evidence(self) -> dict[str, Any]:
        """Return everything that a ruling rests on."""
        view, case, slot = self.view, self.case, self.slot
        paths, secrets = casefile.paths_of(view), view.secrets
        conflict = casefile.is_conflict(case, slot)
        differing, equal = (
            casefile.differences(slot.payload, slot.conflict_payload or "null", paths, secrets)
            if conflict
            else ([], 0)
        )
        number, refused = self.attempt
        return {
            "number": number,
            "refused": refused,
            "kind": casefile.About.of(view),
            "kind_known": view.kind_known,
            "heard": casefile.heard(view, paths, secrets),
            "evidence_shown": casefile.EVIDENCE,
            "steps": casefile.steps(view, number),
            "payload": Payload.of(slot.payload, paths, secrets),
            "response": Payload.of(slot.response, paths, secrets) if slot.response is not None else None,
            "conflict": conflict,
            "brought": Payload.of(slot.conflict_payload or "null", paths, secrets) if conflict else None,
            "differing": differing,
            "equal": equal,
            "history": casefile.history(view, self._proposals(), casefile.acts(case)),
            "known_to": sum(self.subject.kind in worker.kinds for worker in self.around.live),
            "like": kindred.like(case),
            "family": kindred.of_job(view),
        }

    def _proposals(self) -> list[Proposal]:
        return list(Proposal.objects.filter(case=self.case).order_by("-at", "-id")[: casefile.WORDS])

    def decide(self, bound: dict[str, Any]) -> dict[str, Any]:
        """Return the forms; `bound` are those that come back with what was typed into them."""
        user, case, view = self.request.user, self.case, self.view
        seen = {"version": case.version, "snapshot": view.snapshot}
        first = next(iter(forms.PARKING))

        def form(name: str, kind: Any, *arguments: Any) -> Any:
            return bound.get(name) or kind(
                *arguments, initial=seen | {"minutes": first}, auto_id=f"{name}-%s"
            )

        ruling = form("rule", forms.RulingForm, case.kind)
        typed = ruling.data.get("verdict", "") if ruling.is_bound else ""
        return {
            "open": case.closed_at is None,
            "may_rule": user.has_perm(guards.needed(case.kind)),
            "may_act": user.has_perm(RULE) or user.has_perm(APPROVE),
            "choices": self._choices(typed),
            "rule": ruling,
            "seen": seen,
            "proposal": self._proposal(form),
            "approval": view.approval,
            "comment": form("comment", forms.CommentForm),
            "park": form("park", forms.ParkForm),
            "inquiry": self._inquiry(),
        }

    def _choices(self, typed: str) -> list[Choice]:
        user = self.request.user
        plain = cases.offers(self.view, user)
        vouched = {o.verdict: o for o in cases.offers(self.view, user, attested=True)}
        return [
            Choice(o, o.verdict.value == typed, by_word=not o.allowed and vouched[o.verdict].allowed)
            for o in plain
        ]

    def _proposal(self, form: Any) -> dict[str, Any] | None:
        """Return what waits for a second person, with the forms of whoever may answer it."""
        proposal, user = self.view.proposal, self.request.user
        if proposal is None or proposal.verdict == Verdict.SEND:
            return None  # a sending is answered by a ruling of the case
        own = proposal.by == user.get_username()
        return {
            "row": proposal,
            "asked": casefile.asked(proposal),
            "own": own,
            "may_approve": user.has_perm(APPROVE) and not own,
            "may_reject": user.has_perm(APPROVE) or (own and user.has_perm(RULE)),
            "approve": form("approve", forms.AnswerForm),
            "reject": form("reject", forms.AnswerForm),
            "will": cases.offer(self.view, Verdict(proposal.verdict), user).consequence_text
            if Verdict(proposal.verdict) in VERDICTS[CaseKind(self.case.kind)]
            else "",
        }

    def _inquiry(self) -> dict[str, Any]:
        """Return whether the provider can be asked by a person, and from when on."""
        slot = self.slot
        again: datetime | None = None
        if slot.inquired_at is not None:
            again = slot.inquired_at + timedelta(seconds=casework.COOL_DOWN)
        possible = slot.inquirable and slot.status == EffectStatus.UNKNOWN
        return {
            "shown": possible and self.request.user.has_perm(RULE) and self.case.closed_at is None,
            "asked": slot.inquire_asked_at is not None,
            "again": again if again is not None and again > self.around.now else None,
        }


class CaseFile(CasePage):
    """The case as a file to print: all of it unfolded, with what the audit keeps."""

    template_name = "console/case/file.html"
    regions = ()

    def page(self) -> dict[str, Any]:
        """Return what the case's page shows, and the entries of the audit about it."""
        about = AuditEntry.objects.filter(object_type="case", object_id=str(self.case.id)).order_by("-seq")
        return {
            "title": _("Case file"),
            "snapshot": self.view.snapshot,
            "audited": about.defer("before", "after")[: casefile.WORDS],
            **self.state(),
            **self.evidence(),
        }


def said(refused: Refused) -> dict[str, Any]:
    """Return a refusal as the page shows it: what moved is told apart from what is not allowed."""
    return {
        "moved": refused.code == "MOVED",
        "text": wording.refusal(refused.code, refused.params),
        "what": _sentence(refused),
        "problems": [],
    }


def unread(problems: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a form's problems as the page shows them."""
    return {"moved": False, "text": _("What you typed cannot be taken as it is."), "problems": problems}


def _sentence(refused: Refused) -> str:
    """Return what changed as a sentence of its own; a person's name begins it as it is written."""
    code = refused.params.get("what_code", "")
    # What evidence said is not among the parameters, so that sentence stays as it was made.
    whole = code and code != "MOVED_EVIDENCE"
    what = wording.refusal(code, refused.params) if whole else str(refused.params.get("what", ""))
    return what[:1].upper() + what[1:] if code in ("MOVED_SLOT", "MOVED_MOOT") else what
