"""The log-in: the password first, then the code of who has a second factor.

Between the two nobody is logged in: the session keeps for a few minutes whose password was right. A wrong
code counts like a wrong password, so that guessing locks the name out, and makes the device itself wait.
"""

from __future__ import annotations

import time
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import get_user_model, login
from django.contrib.auth.views import LoginView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from console import errors, stepup
from jobs.operations import factors, proof

HALF = "password_was_right"
PATIENCE = 300
"""Seconds from the password to the code."""


class LogIn(LoginView):
    """Both steps, at one address."""

    authentication_form = AdminAuthenticationForm
    template_name = "admin/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Judge the password, or the code where one was sent."""
        if stepup.CODE in request.POST:
            return self._code(request.POST[stepup.CODE])
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in, or ask the code."""
        user = form.get_user()
        with transaction.atomic():
            # Who enrols a device at this moment ends the sessions that there are, this one among them.
            factors.lock(user)
            if not factors.has(user):
                return self._log_in(user)
        self.request.session[HALF] = {
            "user": str(user.pk),
            "backend": user.backend,
            "hash": user.get_session_auth_hash(),
            "at": int(time.time()),
        }
        return self._ask()

    def _code(self, code: str) -> HttpResponse:
        user = self._half()
        if user is None:
            return self.render_to_response(self.get_context_data(form=self._blank(), late=True))
        name = user.get_username()
        if not AxesProxyHandler.is_allowed(self.request, {"username": name}):
            return errors.locked_out(self.request, credentials={"username": name})
        if wrong := stepup.code_refused(self.request, user, code):
            return self._ask(wrong)
        answer = self._log_in(user)
        factors.note(self.request.session)
        return answer

    def _half(self) -> Any:
        """Return whose password was right a moment ago, if nothing has changed about it since."""
        half = self.request.session.get(HALF) or {}
        if time.time() - half.get("at", 0) > PATIENCE:
            return None
        user: Any = get_user_model()._default_manager.filter(pk=half["user"]).first()  # noqa: SLF001
        if user is None or not (user.is_active and user.is_staff and factors.has(user)):
            return None
        if not constant_time_compare(user.get_session_auth_hash(), half["hash"]):
            return None
        user.backend = half["backend"]
        return user

    def get_default_redirect_url(self) -> str:
        """Return where a log-in leads that came from nowhere."""
        return reverse("admin:index")

    def _log_in(self, user: Any) -> HttpResponse:
        self.request.session.pop(HALF, None)
        login(self.request, user)
        proof.note(self.request.session)
        self.request.session.save()
        return HttpResponseRedirect(self.get_success_url())

    def _ask(self, wrong: str = "") -> HttpResponse:
        context = self.get_context_data(form=self._blank(), wrong=wrong, title=_("Your code"))
        return self.response_class(self.request, ["admin/code.html"], context, using=self.template_engine)

    def _blank(self) -> AdminAuthenticationForm:
        return AdminAuthenticationForm(self.request)
