"""Saved views of a list: the tabs that a person has, and the two forms that make and forget them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views import View

from jobs.operations import views
from jobs.outcomes import Refused


@dataclass(frozen=True)
class Tab:
    """One saved view as a person finds it."""

    id: int
    name: str
    url: str
    here: bool
    whose: str
    """Who shares it; empty for one's own."""
    may_forget: bool


def tabs(request: HttpRequest, page: str, query: str) -> dict[str, Any]:
    """Return the views of a list that this person sees; `query` is what the list is filtered by now."""
    user = request.user
    shares = user.has_perm(views.SHARE)
    found = []
    for view in views.seen_by(user, page):
        own = view.owner_id == user.pk
        found.append(
            Tab(
                view.pk,
                view.name,
                f"?{view.query}",
                view.query == query,
                "" if own else view.owner.get_username(),
                own or shares,
            )
        )
    return {"tabs": found, "query": query, "page": page, "may_share": shares, "most": views.LONGEST_NAME}


class Keep(View):
    """Keeps the filters of a list under a name."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, page: str) -> HttpResponse:
        """Lead to the list: an address that only takes forms shows nothing."""
        return _back(page, "")

    def post(self, request: HttpRequest, page: str) -> HttpResponse:
        """Keep it, and lead back to the list as it was."""
        if page not in views.SEES:
            raise Http404
        query = QueryDict(request.POST.get("query", "")[: views.LONGEST_QUERY + 1]).urlencode()
        name = request.POST.get("name", "")
        try:
            views.keep(page, name, query, actor=request.user, shared=request.POST.get("shared") == "on")
        except Refused as refused:
            messages.error(request, str(refused))
        else:
            messages.success(request, _("The view is kept under “%(name)s”.") % {"name": name})
        return _back(page, query)


class Forget(View):
    """Forgets a saved view."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, page: str, view_id: int) -> HttpResponse:
        """Lead to the list."""
        return _back(page, "")

    def post(self, request: HttpRequest, page: str, view_id: int) -> HttpResponse:
        """Forget it, and lead to the list."""
        try:
            views.forget(view_id, actor=request.user)
        except Refused as refused:
            messages.error(request, str(refused))
        else:
            messages.success(request, _("The view is forgotten."))
        return _back(page, "")


def _back(page: str, query: str) -> HttpResponse:
    if page not in views.SEES:
        raise Http404
    return HttpResponseRedirect(reverse(f"admin:{page}") + (f"?{query}" if query else ""))
