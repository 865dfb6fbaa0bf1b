"""What a person sets for himself: the time zone that is said beside UTC."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import zones
from console.pages.base import Page
from jobs.operations import preferences
from jobs.outcomes import Refused


class PreferencesPage(Page):
    """One form; it holds for the account, in this browser at once."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "console/preferences.html"

    def page(self) -> dict[str, Any]:
        """Return the zones to choose from."""
        return {"title": gettext_lazy("Time zone"), "zones": preferences.zones()}

    def post(self, request: HttpRequest) -> HttpResponse:
        """Keep the zone; a name that this machine does not know is refused."""
        wanted = request.POST.get("zone", "")
        try:
            preferences.keep_zone(wanted, actor=request.user)
        except Refused as refused:
            messages.error(request, str(refused))
        else:
            request.session[zones.KEY] = wanted
            messages.success(request, _("Times are shown in UTC and in %(zone)s.") % {"zone": wanted})
        return HttpResponseRedirect(reverse("admin:preferences"))
