"""Saying once more who one is, in the middle of a form that asks a recent log-in.

The question is answered at the form's own address and carries the form's words along: there is no other
address to be led to, and nothing that was typed is lost. A wrong password counts like one at the log-in.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from jobs.operations import proof

PASSWORD = "password"  # noqa: S105  # the name that the log-in's throttle and error reports leave out
ASKED = "who"
"""Marks a form that answers the question, so that no field of the form itself can be taken for the answer."""
CONFIRMED = "confirmed"
"""Not carried along: what is asked for twice is asked for again by somebody who has just been interrupted."""
OWN = (PASSWORD, ASKED, CONFIRMED, "csrfmiddlewaretoken")


def answers(request: HttpRequest) -> bool:
    """Return whether what was sent is an answer to the question."""
    return ASKED in request.POST


def proved(request: HttpRequest) -> bool:
    """Judge the password and note when it was right; what is left of the request is the form alone."""
    sent = request.POST
    password = sent.get(PASSWORD, "")
    # Whoever counts failures keeps what was sent with them: let that be nothing.
    request.POST = QueryDict()
    found = authenticate(request, username=request.user.get_username(), password=password)
    request.POST = _form(sent)  # type: ignore[assignment]
    if found is None or found.pk != request.user.pk:
        return False
    proof.note(request.session)
    request.session.cycle_key()
    return True


def ask(request: HttpRequest, *, wrong: bool = False) -> HttpResponse:
    """Return the page that asks for the password, with what was sent behind it."""
    from console.site import site

    form = _form(request.POST)
    context = site.each_context(request) | {
        "title": _("Say once more who you are"),
        "wrong": wrong,
        "minutes": settings.INTERLOCK["RECENT_LOGIN_SECONDS"] // 60,
        "sent": [(name, value) for name, values in form.lists() for value in values],
    }
    return HttpResponse(render_to_string("console/act/who.html", context, request))


def recent(request: HttpRequest, now: datetime) -> datetime | None:
    """Return when the person last said who he is, if that is recent enough to be asked no more."""
    at = proof.of(request.session)
    seconds = settings.INTERLOCK["RECENT_LOGIN_SECONDS"]
    return at if at is not None and now - at <= timedelta(seconds=seconds) else None


def _form(sent: Any) -> QueryDict:
    form: QueryDict = sent.copy()
    for name in OWN:
        form.pop(name, None)
    return form
