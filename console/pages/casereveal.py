"""What is hidden of a case, shown once to who may see it: the one page of a case that masks nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import actforms, casefile, environment
from console.pages.act import Act, Effect
from console.payload import Payload
from jobs import effect_kinds
from jobs.models import Case
from jobs.operations import reveal
from jobs.operations.actor import VIEW_PAYLOAD


@dataclass(frozen=True)
class Told:
    """One answer as it was written down: a document, or words. `name` is its own on the page."""

    row: reveal.Answer
    name: str
    body: Payload | None
    text: str

    @classmethod
    def of(cls, row: reveal.Answer, name: str) -> Told:
        """Return it as it is shown."""
        if row.body[:1] in ("{", "["):
            return cls(row, name, Payload.revealed(row.body), "")
        return cls(row, name, None, row.body[: casefile.BODY])


class RevealCase(Act):
    """Show payloads, the answer on record and the evidence of a case, on this one page."""

    name, permission, icon = "reveal", VIEW_PAYLOAD, "search"
    template_name = "console/case/reveal.html"
    form_class: ClassVar[Any] = actforms.ReasonForm
    verb = gettext_lazy("Reveal")

    @cached_property
    def case(self) -> Case:
        """The case that the address names."""
        found: Case | None = Case.objects.select_related("effect").filter(pk=self.kwargs["case_id"]).first()
        if found is None:
            raise Http404(_("There is no case %(case_id)s.") % {"case_id": self.kwargs["case_id"]})
        return found

    def page(self) -> dict[str, Any]:
        """Return the case, beside what the act says of itself."""
        kind = effect_kinds.find(self.case.effect_kind)
        return super().page() | {
            "case": self.case,
            "slot": self.case.effect,
            "provider": kind.provider if kind else "",
            "place": environment.word(),
        }

    def title(self) -> str:
        return f"{self.verb}: {self.case.label or self.case.effect_kind}"

    def back_url(self) -> str:
        return reverse("admin:case", args=[self.case.id])

    def effects(self) -> list[Effect]:
        return [
            Effect(
                "n-record",
                _(
                    "Payloads, the recorded answer and the evidence are shown on one page, nothing masked, "
                    "to you alone."
                ),
            ),
            Effect("chain", _("The audit keeps that you saw them, when, and why.")),
        ]

    def act(self, data: dict[str, Any]) -> HttpResponse:
        found = reveal.reveal_case(self.case.id, actor=self.request.user, reason=data["reason"])
        shown: dict[str, Any] = {
            "revealed": True,
            "form": None,
            "payload": Payload.revealed(found.payload),
            "response": None if found.response is None else Payload.revealed(found.response),
            "told": [Told.of(row, f"told-{n}") for n, row in enumerate(found.evidence)],
            "conflict": found.brought is not None,
        }
        if found.brought is not None:
            differing, equal = casefile.revealed_differences(found.payload, found.brought)
            brought = Payload.revealed(found.brought)
            shown |= {"differing": differing, "equal": equal, "brought": brought}
        return self.whole(shown)
