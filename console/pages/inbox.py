"""The inbox: what only a person can settle, the most pressing first."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views import View

from console import (
    bounded,
    closed,
    environment,
    forms,
    inbox,
    kindred,
    providers,
    questions,
    ranking,
    saved,
    wording,
)
from console.casefilters import CaseFilter
from console.menu import FOR_ME
from console.pages.base import Page
from jobs.operations.actor import APPROVE, RULE
from jobs.operations.approvals import ME

VIEWS: list[tuple[str, Any, dict[str, str]]] = [
    ("", _("All open"), {}),
    ("", _("Mine"), {"owner": "me"}),
    ("", _("Nobody's"), {"owner": "nobody", "parked": "no"}),
    (APPROVE, _("For my approval"), {"waiting": ME}),
    ("", _("Parked"), {"parked": "yes"}),
    ("", _("Closed"), {"state": "closed"}),
]
"""The tabs, each for who has its permission: filters that are asked for all the time."""

DIALOGS: dict[str, tuple[type[Form], tuple[str, ...], Any]] = {
    "park": (
        forms.ParkForm,
        ("minutes", "until", "why"),
        _("Hidden from nobody, and no clock stops; it is marked until then."),
    ),
    "comment": (forms.CommentForm, ("text",), _("Whoever rules next has to have seen it.")),
}


class InboxPage(Page):
    """Open cases, the most pressing first."""

    template_name = "console/inbox/page.html"
    folder = "console/inbox"
    regions = ("table",)

    @cached_property
    def filters(self) -> CaseFilter:
        """The filters that the address names."""
        wanted = closed.cases() if self.request.GET.get("state") == "closed" else inbox.open_cases()
        return CaseFilter(self.request.GET, wanted, request=self.request)

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then nothing is listed."""
        return self.filters.problems()

    def page(self) -> dict[str, Any]:
        """Return the tabs and the filter bar."""
        given = {name: values[0] for name, values in self.filters.active()}
        tabs = [
            (label, "?" + urlencode(wanted), given == wanted, self._waiting(wanted))
            for needed, label, wanted in VIEWS
            if not needed or self.request.user.has_perm(needed)
        ]
        return {
            "title": _("Inbox"),
            "closed": self.filters.closed,
            "filters": self.filters,
            "hidden": self._hidden(),
            "problems": self.problems,
            "active": [] if self.problems else self._active(),
            "tabs": tabs,
            "for_me": FOR_ME if given.get("waiting") == ME else "",
            "export_url": "" if self.problems else f"{reverse('admin:inbox-export')}?{urlencode(self._kept)}",
            "views": saved.tabs(self.request, "inbox", "" if self.problems else urlencode(self._kept)),
            "park_field": _dialog_field("park"),
            "comment_field": _dialog_field("comment"),
        }

    def _hidden(self) -> list[str]:
        """Return the filters that the bar does not offer: places in the list, tabs, what would be refused."""
        closed_only = self.filters.base_filters if self.filters.closed else ()
        return ["after", "like", "shown", "state", *(n for n in closed_only if n not in CaseFilter.OF_CLOSED)]

    def _waiting(self, wanted: dict[str, str]) -> bounded.Count | None:
        """Return how many cases a tab has, where that was read for the menu already."""
        if not wanted:
            return inbox.waiting_here(self.request).count
        return questions.count(questions.mine(self.request)) if "waiting" in wanted else None

    def _active(self) -> list[tuple[Any, str, str]]:
        """Return (label, value, address without it) of each filter in use, but for what is said elsewhere."""
        fields = self.filters.form.fields
        return [
            (
                fields[name].label,
                dict(getattr(fields[name], "choices", ())).get(value, value),
                "?" + urlencode([pair for pair in self._kept if pair[0] != name]),
            )
            for name, value in self._kept
            if name not in ("like", "state")
        ]

    @property
    def _kept(self) -> list[tuple[str, str]]:
        return [(name, value) for name, values in self.filters.active() for value in values]

    def table(self) -> dict[str, Any]:
        """Return one page of the list."""
        if self.problems:
            return {"problems": self.problems, "http_status": 400}
        if self.filters.closed:
            return self._closed()
        clean, kept = self.filters.form.cleaned_data, self._kept
        now = self.around.now
        stretch = inbox.read(
            self.filters.qs,
            now=now,
            after=clean["after"],
            like=clean["like"],
            each=bool(clean["waiting"]),
            pins=clean["shown"],
        )
        user = self.request.user
        plain = [pair for pair in kept if pair[0] != "like"]
        return {
            "stretch": stretch,
            "anew_url": "?" + urlencode([*kept, *([("after", clean["after"])] if clean["after"] else [])]),
            "for_me": FOR_ME if clean["waiting"] == ME else "",
            "filtered": bool(kept) or clean["after"] is not None,
            "like": clean["like"],
            "like_url": "?" + urlencode([*plain, ("like", "")]),
            "all_url": "?" + urlencode(plain),
            "next_url": "?" + urlencode([*kept, ("after", str(stretch.next))]) if stretch.next else "",
            "back_url": "?" + urlencode([*kept, ("after", str(stretch.back))]) if stretch.back else "",
            "first_url": "?" + urlencode(kept) if clean["after"] else "",
            "ranked": ranking.READ,
            "ends": kindred.closed_words(),
            "me": user.get_username(),
            "may_act": user.has_perm(RULE) or user.has_perm(APPROVE),
            "providers": providers.named(line.case.effect_kind for line in stretch.lines),
            "here": self.request.get_full_path(),
        }

    def _closed(self) -> dict[str, Any]:
        """Return one page of the closed cases."""
        after, kept = self.filters.form.cleaned_data["after"], self._kept
        stretch = closed.read(self.filters.qs, after=after)
        return {
            "ended": stretch,
            "window": closed.WINDOW,
            "filtered": len(kept) > 1 or after is not None,
            "next_url": "?" + urlencode([*kept, ("after", str(stretch.next))]) if stretch.next else "",
            "first_url": "?" + urlencode(kept) if after else "",
            "closed_url": "?" + urlencode({"state": "closed"}),
            "me": self.request.user.get_username(),
        }


@wording.remembered
def _dialog_field(name: str) -> SafeString:
    """Return what is asked for when a row is parked or commented on: the same each time, in one language."""
    kind, fields, help_text = DIALOGS[name]
    form = kind(auto_id=f"{name}-%s")
    rows = [{"field": form[field], "help": help_text if field == fields[0] else ""} for field in fields]
    return format_html_join("", "{}", ((render_to_string("console/case/field.html", row),) for row in rows))


class NextCase(View):
    """Leads to the most pressing case that this person may take up; to the inbox where there is none."""

    http_method_names = ["get", "head", "options"]

    def get(self, request: HttpRequest) -> HttpResponse:
        """Pass over the case that one comes from."""
        now = environment.surroundings(request).now
        than = forms.case_id(request.GET.get("after", ""))
        mine = [question.case_id for question in questions.mine(request)]
        only = request.GET.get("waiting") == ME
        found = inbox.following(
            request.user.get_username(),
            now,
            than=than,
            answers=mine,
            asked=[question.case_id for question in questions.every(request)],
            only=only,
            first=not request.user.has_perm(RULE),
        )
        back = reverse("admin:inbox") + (f"?{FOR_ME}" if only else "")
        return HttpResponseRedirect(reverse("admin:case", args=[found]) if found else back)
