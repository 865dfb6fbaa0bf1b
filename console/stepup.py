"""Saying once more who one is, in the middle of a form that asks a recent log-in.

The question is answered at the form's own address and carries the form's words along: there is no other
address to be led to, and nothing that was typed is lost. A wrong password or code counts like one at the
log-in.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from jobs.operations import factors, proof
from jobs.outcomes import Refused

PASSWORD = "password"  # noqa: S105  # the name that the log-in's throttle and error reports leave out
CODE = "code_of_device"
ASKED = "who"
"""Marks a form that answers the question, so that no field of the form itself can be taken for the answer."""
CONFIRMED = "confirmed"
"""Not carried along: what is asked for twice is asked for again by somebody who has just been interrupted."""
OWN = (PASSWORD, CODE, ASKED, CONFIRMED, "csrfmiddlewaretoken")


def answers(request: HttpRequest) -> bool:
    """Return whether what was sent is an answer to the question."""
    return ASKED in request.POST


def refused(request: HttpRequest) -> str:
    """Judge the password, and the code of who has a second factor; return what is wrong with them.

    Empty is right, and noted. What is left of the request is the form alone.
    """
    sent = request.POST
    password, code = sent.get(PASSWORD, ""), sent.get(CODE, "")
    name = request.user.get_username()
    # Whoever counts failures keeps what was sent with them: let that be nothing.
    request.POST = QueryDict()
    found = authenticate(request, username=name, password=password)
    wrong = "" if found is not None and found.pk == request.user.pk else _("This is not your password.")
    if not wrong and factors.has(request.user):
        wrong = code_refused(request, request.user, code)
        if not wrong:
            factors.note(request.session)
    request.POST = _form(sent)  # type: ignore[assignment]
    return wrong or _noted(request)


def _noted(request: HttpRequest) -> str:
    """Keep that the person has said who he is, under a new key; return what is wrong where it is too late."""
    session = request.session
    with transaction.atomic():
        # Who ends the person's sessions at this moment did not find the one that a new key would begin.
        factors.lock(request.user)
        if not session.exists(session.session_key or ""):
            session.flush()
            return _("This session has ended: log in again.")
        proof.note(session)
        session.cycle_key()
    return ""


def code_refused(request: HttpRequest, user: Any, code: str) -> str:
    """Judge a code and return what is wrong with it; empty is right. A wrong one counts like a password."""
    judged = factors.judge(user, code)
    if judged.right:
        return ""
    if judged.wait:
        return _("Too many wrong codes: the next one is looked at in %(n)s s.") % {"n": judged.wait}
    user_login_failed.send(__name__, credentials={"username": user.get_username()}, request=request)
    return str(Refused("SECOND_FACTOR_WRONG"))


def ask(request: HttpRequest, *, wrong: str = "") -> HttpResponse:
    """Return the page that asks who this is, with what was sent behind it."""
    from console.site import site

    form = _form(request.POST)
    context = site.each_context(request) | {
        "title": _("Say once more who you are"),
        "wrong": wrong,
        "factor": factors.has(request.user),
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
