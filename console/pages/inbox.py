"""The inbox: what only a person can settle, the most pressing first."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy as _

from console import inbox
from console.filters import CaseFilter
from console.pages.base import Page

VIEWS: list[tuple[Any, dict[str, str]]] = [
    (_("All open"), {}),
    (_("Mine"), {"owner": "me"}),
    (_("Nobody's"), {"owner": "nobody", "parked": "no"}),
    (_("Parked"), {"parked": "yes"}),
]
"""The tabs: filters that are asked for all the time."""


class InboxPage(Page):
    """Open cases, the most pressing first."""

    template_name = "console/inbox/page.html"
    folder = "console/inbox"
    regions = ("table",)

    @cached_property
    def filters(self) -> CaseFilter:
        """The filters that the address names."""
        user = self.request.user.get_username()
        return CaseFilter(self.request.GET, inbox.open_cases(), user=user, now=self.around.now)

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then nothing is listed."""
        return self.filters.problems()

    def page(self) -> dict[str, Any]:
        """Return the tabs and the filter bar."""
        given = {name: values[0] for name, values in self.filters.active()}
        tabs = [(label, "?" + urlencode(wanted), given == wanted) for label, wanted in VIEWS]
        return {"title": _("Inbox"), "filters": self.filters, "problems": self.problems, "tabs": tabs}

    def table(self) -> dict[str, Any]:
        """Return one page of the list."""
        if self.problems:
            return {"problems": self.problems, "http_status": 400}
        page = self.filters.form.cleaned_data["page"] or 1
        kept = [(n, value) for n, values in self.filters.active() for value in values]
        stretch = inbox.read(self.filters.qs, page=page, now=self.around.now)
        return {
            "stretch": stretch,
            "filtered": bool(kept),
            "next_url": "?" + urlencode([*kept, ("page", page + 1)]) if stretch.more else "",
            "back_url": "?" + urlencode([*kept, ("page", page - 1)]) if page > 1 else "",
            "ranked": inbox.READ,
            "me": self.request.user.get_username(),
        }
