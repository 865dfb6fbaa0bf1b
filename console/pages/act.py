"""What every operation of the console has in common: one form, one view, one function of jobs.operations.

A form that is refused comes back on its page as things are now, with what stands against it and the words.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views import View

from console import actforms, stepup, wording
from console.pages.base import Page
from jobs import audit
from jobs.models.audit import Source
from jobs.operations import proof
from jobs.outcomes import InvalidJob, Refused

CODES = {
    "NOT_PERMITTED": 403,
    "USER_INACTIVE": 403,
    "USER_UNKNOWN": 403,
    "SELF_APPROVAL": 403,
    "CASE_NOT_FOUND": 404,
    "NOT_FOUND": 404,
    "WORKER_UNKNOWN": 404,
}
"""Refusals that have an answer of their own; every other one is a conflict with what is."""
MOVED = ("VERSION", "EPOCH_MOVED", "QUEUE_MOVED", "CLAIMS_MOVED")
"""Refusals that say: the world is not what the form was filled in for."""


class Sent(View):
    """What is done with a form that a person sent: judged, done through the console's door, or refused."""

    request: HttpRequest

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Do it; or say what stands against it, or ask once more who this is."""
        if stepup.answers(request):
            wrong = stepup.refused(request)
            return stepup.ask(request, wrong=wrong) if wrong else self.again()
        form = self.form()
        if not form.is_valid():
            return self.unread(form)
        try:
            with through(request, snapshot=form.cleaned_data.get("snapshot", "")):
                answer = self.act(form.cleaned_data)
        except Refused as refused:
            if refused.code == "LOGIN_NOT_RECENT":
                return stepup.ask(request)
            return self.refuse(refused, form)
        except InvalidJob as error:
            name = error.field.partition(".")[0].partition("[")[0]
            where = name if name in form.fields else None
            form.add_error(where, error.problem if where == error.field else str(error))
            return self.unread(form)
        return answer or self.back()

    def form(self) -> Any:
        """Return the form, filled with what was sent."""
        raise NotImplementedError

    def act(self, data: dict[str, Any]) -> HttpResponseBase | None:
        """Do it; raise Refused where it may not be."""
        raise NotImplementedError

    def again(self) -> HttpResponseBase:
        """Return the form with what was typed, after the person has said who he is."""
        raise NotImplementedError

    def unread(self, form: Any) -> HttpResponseBase:
        """Return the page with what is wrong with the form."""
        raise NotImplementedError

    def refuse(self, refused: Refused, form: Any) -> HttpResponseBase:
        """Return the page as it is now, with the refusal."""
        raise NotImplementedError

    def back(self) -> HttpResponseBase:
        """Lead to where it shows what was done."""
        raise NotImplementedError

    def tell(self, text: str, level: int = messages.SUCCESS) -> None:
        """Say on the next page what was done."""
        messages.add_message(self.request, level, text)


@dataclass(frozen=True)
class Effect:
    """One thing that an operation brings about, in a sentence; `colour` is that of its icon."""

    icon: str
    text: str
    colour: str = ""


class Act(Sent, Page):
    """A page that says what an operation will do, asks why, and does it."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "console/act/page.html"
    form_class: ClassVar[Any] = actforms.ReasonForm
    verb: ClassVar[Any]
    """What the button says."""
    icon: ClassVar[str] = "info"
    dear: ClassVar[bool] = False
    """It cannot be taken back."""
    recent: ClassVar[bool] = False
    """It asks a recent log-in."""

    def page(self) -> dict[str, Any]:
        """Return what it will do and the form; without a form where it cannot be done."""
        closed = self.closed()
        return {
            "title": self.title(),
            "verb": self.verb,
            "act_icon": self.icon,
            "dear": self.dear,
            "recent": self.recent,
            "proved_at": stepup.recent(self.request, self.around.now) if self.recent else None,
            "closed": closed,
            "effects": [] if closed else self.effects(),
            "form": None if closed else self.fresh(),
            "back_url": self.back_url(),
        }

    def title(self) -> str:
        """Return what is done to what, as the page's heading."""
        raise NotImplementedError

    def effects(self) -> list[Effect]:
        """Return what it will bring about, in plain words."""
        raise NotImplementedError

    def closed(self) -> str:
        """Return why it cannot be done as things are; empty where it can."""
        return ""

    def back_url(self) -> str:
        """Return where to go when it is done, or left."""
        raise NotImplementedError

    def seen(self) -> dict[str, Any]:
        """Return what the form says that the person saw."""
        return {}

    def moved(self, refused: Refused) -> str:
        """Return what changed meanwhile, by whom and when, where that is known."""
        return ""

    def fresh(self) -> Any:
        """Return the form before anything is typed."""
        return self.form_class(initial=self.seen())

    def form(self) -> Any:
        """Return the form, filled with what was sent."""
        return self.form_class(self.request.POST)

    def again(self) -> HttpResponse:
        """Return the page with the words as they were, and the mark of a recent log-in."""
        return self.whole({"form": self.form()})

    def unread(self, form: Any) -> HttpResponse:
        """Return the page with what is wrong with the form."""
        if form.lost_sight():
            text = _("The form does not say what you saw; load the page again.")
            return self.whole({"refusal": {"text": text}}, 400)
        return self.whole({"form": form}, 400)

    def refuse(self, refused: Refused, form: Any) -> HttpResponse:
        """Return the page as things are now, the words kept; what is dear must be decided anew."""
        fresh = type(self)()
        fresh.setup(self.request, *self.args, **self.kwargs)
        self.request.surroundings = None  # type: ignore[attr-defined]  # read again: the world moved
        form.data = form.data.copy()
        for name, value in fresh.seen().items():
            form.data[name] = value
        moved = refused.code in MOVED
        if moved:
            form.data.pop("typed", None)
        text = wording.refusal(refused.code, refused.params)
        refusal = {"text": text, "moved": moved, "what": fresh.moved(refused) if moved else ""}
        shown: dict[str, Any] = {"refusal": refusal}
        if not fresh.closed():
            shown["form"] = form
        return fresh.whole(shown, CODES.get(refused.code, 409))

    def back(self) -> HttpResponseBase:
        """Lead to where it shows what was done."""
        return HttpResponseRedirect(self.back_url())


@contextmanager
def through(request: HttpRequest, *, snapshot: str = "") -> Iterator[None]:
    """Tell the operations used inside that they are asked for through the console, and by whom."""
    with audit.through(
        Source.CONSOLE,
        user=request.user.get_username(),
        request_id=_request_id(request),
        snapshot=snapshot,
        proved_at=proof.of(request.session),
    ):
        yield


def problems(form: Any) -> list[tuple[str, str]]:
    """Return (field, what is wrong with it); a form that says not what was seen must be loaded again."""
    if form.lost_sight():
        return [("", _("The form does not say what you saw; load the page again."))]
    labels = {name: str(field.label or name) for name, field in form.fields.items()}
    return [(labels.get(name, ""), str(error)) for name, errors in form.errors.items() for error in errors]


def _request_id(request: HttpRequest) -> str:
    """Return the id that a proxy gave the request, else one of our own."""
    given: str = request.headers.get("X-Request-ID", "")
    return given[:100] if given.isascii() and given.isprintable() and given else uuid.uuid4().hex
