"""The tokens of the API: who holds which, issue one, end one. A secret is shown once, and nowhere else."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console import stepup
from console.pages.base import Page
from jobs import audit
from jobs.models import ApiToken
from jobs.models.audit import Source
from jobs.operations import proof, tokens
from jobs.operations.tokens import LONGEST_DAYS, LONGEST_NAME
from jobs.outcomes import Refused

SHOWN = 200


def _scopes() -> dict[str, str]:
    return {
        "jobs:read": _("list and look"),
        "jobs:enqueue": _("enqueue"),
        "jobs:cancel": _("cancel"),
        "worker": _("claim and run jobs"),
        "cases:act": _("read and act on cases, for yourself only"),
        "ops": _("operate jobs, queues, workers, the epoch"),
    }


class IssueForm(forms.Form):
    """What a token is to be; the rules are those of jobs.operations.tokens."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=LONGEST_NAME)
    owner = forms.CharField(label=pgettext_lazy("token", "Owner"), max_length=150)
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=lambda: [(scope, f"{scope} ({said})") for scope, said in _scopes().items()],
        widget=forms.CheckboxSelectMultiple,
    )
    queues = forms.CharField(
        label=gettext_lazy("Queues"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Separated by commas; empty for every queue."),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Good for how many days"), min_value=1, max_value=LONGEST_DAYS, initial=90
    )
    reason = forms.CharField(label=gettext_lazy("Reason"), max_length=1000)

    def clean_owner(self) -> Any:
        model = get_user_model()
        found = model.objects.filter(**{model.USERNAME_FIELD: self.cleaned_data["owner"]}).first()
        if found is None:
            raise forms.ValidationError(_("There is no such user."))
        return found

    def clean_queues(self) -> list[str]:
        names = [name.strip() for name in self.cleaned_data["queues"].split(",")]
        return list(dict.fromkeys(name for name in names if name))


class TokensPage(Page):
    """All tokens, newest first, and the form for another one."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "console/tokens/page.html"
    folder = "console/tokens"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        """Return the title and the form."""
        return {"title": gettext_lazy("API tokens"), "form": IssueForm(initial=self._mine())}

    def _mine(self) -> dict[str, str]:
        return {"owner": self.request.user.get_username()}

    def table(self) -> dict[str, Any]:
        """Return the tokens, never a secret."""
        rows = list(ApiToken.objects.select_related("user").order_by("-id")[: SHOWN + 1])
        listed = [(token, tokens.state(token)) for token in rows[:SHOWN]]
        return {"tokens": listed, "more": len(rows) > SHOWN, "limit": SHOWN}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Issue a token, and show its secret on this one page; or ask once more who this is."""
        if stepup.answers(request):
            wrong = stepup.refused(request)
            form = IssueForm(request.POST)
            return stepup.ask(request, wrong=wrong) if wrong else self.whole({"form": form})
        form = IssueForm(request.POST)
        if not form.is_valid():
            return self.whole({"form": form}, 400)
        given = form.cleaned_data
        try:
            with _door(request):
                token, secret = tokens.issue(given.pop("name"), actor=request.user, **given)
        except Refused as refused:
            if refused.code == "LOGIN_NOT_RECENT":
                return stepup.ask(request)
            return self.whole({"form": form, "refusal": str(refused)}, 409)
        return self.whole({"issued": token, "secret": secret})


class RevokeToken(Page):
    """End one token. Only sent, never fetched: who opens its address is led to the list."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Lead to the list."""
        return _back()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """End it, or answer with the list and why not."""
        try:
            with _door(request):
                ended = tokens.revoke(
                    self.kwargs["token_id"], actor=request.user, reason=request.POST.get("reason", "")
                )
        except Refused as refused:
            page = TokensPage()
            page.setup(request)
            return page.whole({"refusal": str(refused)}, 409)
        messages.success(request, _("The token “%(name)s” is revoked.") % {"name": ended.name})
        return _back()


def _back() -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:tokens"))


def _door(request: HttpRequest) -> Any:
    return audit.through(
        Source.CONSOLE,
        user=request.user.get_username(),
        request_id=uuid.uuid4().hex,
        proved_at=proof.of(request.session),
    )
