"""The menu: what pages there are, in which section, and who may see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext

from console import inbox, questions
from console.addresses import address
from jobs.operations import raising

if TYPE_CHECKING:
    from jobs.explain import Surroundings

View = Callable[..., HttpResponseBase]

FOR_ME = "waiting=me"
"""The inbox, narrowed to what waits for one's own approval."""
SECTIONS: dict[str, Any] = {
    "decide": _("Decide"),
    "watch": _("Watch"),
    "work": _("Work"),
    "control": _("Control"),
    "records": _("Records"),
}


@dataclass(frozen=True)
class MenuPage:
    """One entry: `label` leads to `url_name` for who has `permission`; `path` and `view` if we serve it."""

    section: str
    label: Any
    url_name: str
    permission: str
    icon: str = "page"
    path: str = ""
    view: View | None = None
    order: int = 100
    query: str = ""
    """Filters of a list that is a page of its own elsewhere in the menu: `waiting=me`."""

    @property
    def url(self) -> str:
        """Where the entry leads."""
        return address(self.url_name) + (f"?{self.query}" if self.query else "")


@dataclass(frozen=True)
class Entry:
    """A menu entry as one person sees it."""

    label: Any
    url: str
    icon: str
    current: bool
    note: str = ""
    hot: bool = False


def entries(
    pages: list[MenuPage], request: HttpRequest, around: Surroundings
) -> list[tuple[str, Any, list[Entry]]]:
    """Return the sections that hold something for this person: key, name, entries."""
    here = _here(pages, request)
    shown = []
    for key, name in SECTIONS.items():
        inside = []
        for page in sorted((p for p in pages if p.section == key), key=lambda p: p.order):
            if not request.user.has_perm(page.permission):
                continue
            note, hot = _note(page, request, around)
            inside.append(Entry(page.label, page.url, page.icon, page is here, note, hot))
        if inside:
            shown.append((key, name, inside))
    return shown


def _here(pages: list[MenuPage], request: HttpRequest) -> MenuPage | None:
    """Return the entry that leads nearest to this address: a job's page belongs to the list of jobs."""
    start, path, asked = address("admin:index"), request.path, request.GET.urlencode()
    found = [(address(page.url_name), page) for page in pages if page.section]
    for url, page in found:
        if page.query and (path, asked) == (url, page.query):
            return page
    near = [
        (url, page)
        for url, page in found
        if not page.query and (path == url or (url != start and path.startswith(url)))
    ]
    return max(near, key=lambda pair: len(pair[0]), default=("", None))[1]


def _note(page: MenuPage, request: HttpRequest, around: Surroundings) -> tuple[str, bool]:
    """Return the few words behind an entry, and whether they are urgent."""
    if page.query == FOR_ME:
        mine = questions.count(questions.mine(request))
        return str(mine) if mine else "", False
    if page.url_name == "admin:inbox":
        cases = inbox.waiting_here(request)
        return (str(cases.count), cases.urgent) if cases.count else ("", False)
    if page.url_name == "admin:queues" and (count := len(around.paused)):
        return ngettext("%(n)s paused", "%(n)s paused", count) % {"n": count}, False
    if page.url_name == "admin:workers" and (count := len(around.silent)):
        return ngettext("%(n)s silent", "%(n)s silent", count) % {"n": count}, False
    if page.url_name == "admin:plans" and (count := around.scheduler.plans_running):  # type: ignore[attr-defined]
        return ngettext("%(n)s running", "%(n)s running", count) % {"n": count}, False
    if page.url_name == "admin:scheduler" and not around.scheduler.claims_open:
        return str(_("closed")), True
    if page.url_name == "admin:scheduler" and raising.open_now(around.now, around.scheduler.epoch):
        return pgettext("a raise", "asked"), True
    return "", False
