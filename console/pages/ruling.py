"""What a person does to a case: each is one form, one view and one function of jobs.operations.

A form that is refused comes back on the case's page, with what changed and with what was typed.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from console import forms, wording
from console.pages.act import CODES, Sent, problems
from console.pages.case import CasePage, said, unread
from jobs.models.case import CaseKind, Verdict
from jobs.operations import cases, casework, rulings
from jobs.operations.actor import APPROVE, RULE
from jobs.outcomes import Refused

FIELDS = {
    "REASON_CODE": "reason_code",
    "REFERENCE_FORMAT": "reference",
    "REFERENCE_TOO_LONG": "reference",
    "RESPONSE_INVALID": "response",
    "ARGUMENTS_MISSING": "arguments",
    "ARGUMENTS_INVALID": "arguments",
    "PARK_PAST": "until",
    "PARK_FAR": "until",
}
"""Refusals of what stands in one field: they are also said beside it."""


class CaseAct(Sent):
    """One act on a case. Only sent, never fetched: who opens its address is led to the case."""

    http_method_names = ["get", "head", "post", "options"]
    regions: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = (RULE, APPROVE)
    """Any of these permissions."""
    name: ClassVar[str]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Lead to the case: an address that only takes forms shows nothing."""
        return self.back()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Do it, or answer with the page and what stands against it."""
        if not any(request.user.has_perm(permission) for permission in self.needs):
            raise PermissionDenied
        self.page = CasePage()
        self.page.setup(request, case_id=self.kwargs["case_id"])
        _there = self.page.case  # a case that is not there is a 404, whatever was sent
        return super().post(request, *args, **kwargs)

    def form(self) -> Any:
        """Return the form, filled with what was sent."""
        return self.form_class(self.request.POST, auto_id=f"{self.name}-%s")

    form_class: ClassVar[Any] = forms.SeenForm

    def again(self) -> HttpResponseBase:
        """Ask again for what was asked for, now that the person has said who he is."""
        return self.post(self.request)

    def unread(self, form: Any) -> HttpResponse:
        """Return the case's page with what is wrong with the form."""
        return self.page.refusing(unread(problems(form)), {self.name: form}, 400)

    def refuse(self, refused: Refused, form: Any) -> HttpResponse:
        """Return the page as it is now, with the refusal; the words stay, what was seen is seen anew."""
        fresh = CasePage()
        fresh.setup(self.request, case_id=self.kwargs["case_id"])
        self.request.surroundings = None  # type: ignore[attr-defined]  # read again: the world moved
        data = form.data.copy()
        data["version"], data["snapshot"] = fresh.case.version, fresh.view.snapshot
        if refused.code == "MOVED":
            # What was decided on other facts must be decided again; the words are still theirs.
            data.pop("verdict", None)
            data.pop("attested", None)
        form.data = data
        if (name := FIELDS.get(refused.code)) in form.fields:
            form.add_error(name, wording.refusal(refused.code, refused.params))
        return fresh.refusing(said(refused), {self.name: form}, CODES.get(refused.code, 409))

    def back(self) -> HttpResponseBase:
        """Lead to the list that the form was in, else to the case."""
        wanted = self.request.POST.get("return", "")
        if wanted == (path := reverse("admin:inbox")) or wanted.startswith(f"{path}?"):
            return HttpResponseRedirect(wanted)
        return HttpResponseRedirect(reverse("admin:case", args=[self.kwargs["case_id"]]))

    @property
    def case_id(self) -> uuid.UUID:
        """Which case."""
        case_id: uuid.UUID = self.kwargs["case_id"]
        return case_id


class Rule(CaseAct):
    """Rule on the case; what cannot be taken back is asked for twice."""

    name = "rule"

    def form(self) -> Any:
        return forms.RulingForm(self.page.case.kind, self.request.POST, auto_id="rule-%s")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Rule, ask once more, or go back to the form as it was."""
        if "back" in request.POST:
            self.page = CasePage()
            self.page.setup(request, case_id=self.case_id)
            form = self.form()
            form.is_bound = True
            return self.page.refusing({}, {"rule": form}, 200)
        return super().post(request, *args, **kwargs)

    def act(self, data: dict[str, Any]) -> HttpResponseBase | None:
        verdict = Verdict(data["verdict"])
        if verdict in forms.CONFIRMED and self.request.POST.get("confirmed") != verdict.value:
            return self._confirm(verdict, data)
        outcome = rulings.rule(
            self.case_id,
            verdict,
            actor=self.request.user,
            reason_code=data["reason_code"],
            reason=data["reason"],
            seen_version=data["version"],
            snapshot=data["snapshot"],
            reference=data.get("reference", ""),
            response=data.get("response"),
            compensate=data.get("compensate", False),
            attested=data.get("attested", False),
            arguments=data.get("arguments"),
            effects=data.get("effects", ""),
        )
        words = {"verdict": wording.verdicts()[outcome.verdict]}
        if isinstance(outcome, rulings.Proposed):
            self.tell(
                _("“%(verdict)s” waits for a second person; nothing has taken effect yet.") % words,
                messages.WARNING,
            )
        elif outcome.case_open:
            self.tell(_("Ruled: “%(verdict)s”. The case stays open until it is done.") % words)
        else:
            self.tell(_("Ruled: “%(verdict)s”. The case is closed.") % words)
        return None

    def _confirm(self, verdict: Verdict, data: dict[str, Any]) -> HttpResponseBase:
        """Return the page that says what it will do; refused at once where it would be refused afterwards."""
        view = self.page.view
        if (view.case.version, view.snapshot) != (data["version"], data["snapshot"]):
            raise cases.moved(view)
        offer = cases.offer(view, verdict, self.request.user, attested=data.get("attested", False))
        if offer.why is not None:
            code, params = offer.why
            raise Refused(code, **params)
        from console.site import site

        sent = [(name, value) for name in self.form().fields for value in self.request.POST.getlist(name)]
        context = site.each_context(self.request) | {
            **self.page.facts(),
            "title": wording.verdicts()[verdict],
            "offer": offer,
            "data": data,
            "reason_word": wording.reason_codes().get(data["reason_code"], data["reason_code"]),
            "sent": sent,
            "again": verdict is Verdict.DID_NOT_HAPPEN,
            "conflict": view.case.kind == CaseKind.CONFLICT,
        }
        return HttpResponse(render_to_string("console/case/confirm.html", context, self.request))


class Approve(CaseAct):
    """Confirm as a second person what another one asked for."""

    name, needs, form_class = "approve", (APPROVE,), forms.AnswerForm

    def act(self, data: dict[str, Any]) -> None:
        done = rulings.approve(
            self.kwargs["proposal_id"],
            actor=self.request.user,
            snapshot=data["snapshot"],
            reason=data["reason"],
        )
        self.tell(_("Approved: “%(verdict)s”.") % {"verdict": wording.verdicts()[done.verdict]})


class Reject(CaseAct):
    """Decline what another one asked for, or take one's own back."""

    name, form_class = "reject", forms.AnswerForm

    def act(self, data: dict[str, Any]) -> None:
        rulings.reject(
            self.kwargs["proposal_id"],
            actor=self.request.user,
            snapshot=data["snapshot"],
            reason=data["reason"],
        )
        self.tell(_("Rejected; the case stays open."))


class Take(CaseAct):
    """Make the case one's own for a while."""

    name, form_class = "take", forms.BesideForm

    def act(self, data: dict[str, Any]) -> None:
        casework.take(self.case_id, actor=self.request.user, seen_version=data["version"])
        self.tell(_("The case is yours."))


class GiveBack(CaseAct):
    """Let others take it."""

    name, form_class = "give-back", forms.BesideForm

    def act(self, data: dict[str, Any]) -> None:
        casework.give_back(self.case_id, actor=self.request.user, seen_version=data["version"])
        self.tell(_("The case is nobody's again."))


class Park(CaseAct):
    """Put the case aside for a while, or bring it back."""

    name, form_class = "park", forms.ParkForm
    read: forms.ParkForm

    def form(self) -> Any:
        self.read = super().form()
        return self.read

    def act(self, data: dict[str, Any]) -> None:
        until = self.read.end(self.page.around.now)
        casework.park(
            self.case_id, until, actor=self.request.user, why=data["why"], seen_version=data["version"]
        )
        self.tell(_("Parked; its SLA runs on.") if until else _("The case is back."))


class Comment(CaseAct):
    """Write something beside the case."""

    name, form_class = "comment", forms.CommentForm

    def act(self, data: dict[str, Any]) -> None:
        casework.comment(self.case_id, data["text"], actor=self.request.user, seen_version=data["version"])
        self.tell(_("Your comment is there."))


class Inquire(CaseAct):
    """Have a worker ask the provider now: the web server itself waits for nobody."""

    name, needs, form_class = "inquire", (RULE,), forms.BesideForm

    def act(self, _data: dict[str, Any]) -> None:
        casework.ask_to_inquire(self.case_id, actor=self.request.user)
        self.tell(_("A worker asks the provider in your name; the answer appears below."), messages.INFO)
