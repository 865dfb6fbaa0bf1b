"""The console's site: Django's admin site at the root of the server, with pages of its own.

Another application adds a page of its own from its `AppConfig.ready`:

    from console.site import register_page

    register_page("work", _("Conversions"), "admin:conversions", "jobs.view_job",
                  path="conversions/", view=views.conversions, icon="n-jobs")

The view's template extends `console/base.html`.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.translation import gettext_lazy as _

from console import environment, menu, zones
from console.menu import SECTIONS, MenuPage, View
from jobs.operations import factors

NOT_SERVED = {"index", "autocomplete", "view_on_site", "app_list", "jsi18n"}
"""Addresses of a stock admin site that we replace or that would lead nowhere."""
WITHOUT_FACTOR = {"admin:second-factor", "admin:logout"}
"""What staff may do before they have a second factor, where one is asked."""


class ConsoleSite(AdminSite):
    """The admin site at the root. Every page names its permission; without it nobody sees the page."""

    site_title = site_header = _("Interlock")
    index_title = _("Overview")
    enable_nav_sidebar = False
    site_url = None

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.registered: list[MenuPage] = []

    @property
    def pages(self) -> list[MenuPage]:
        """Our own pages and those that other applications registered."""
        from console import pages

        return [*pages.MENU, *self.registered]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what every page shows around its content."""
        context = super().each_context(request)
        context["environment"] = environment.word()
        context["database"] = environment.database()
        if context["has_permission"]:
            around = environment.surroundings(request)
            context["zone"] = zones.chosen(request)
            context |= {"around": around, "menu": menu.entries(self.pages, request, around)}
        return context

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Log in, in one step or in two, and keep in the session when that was."""
        from console.pages.login import LogIn

        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        request.current_app = self.name
        context = {**self.each_context(request), "title": _("Log in"), "app_path": request.get_full_path()}
        if REDIRECT_FIELD_NAME not in request.GET and REDIRECT_FIELD_NAME not in request.POST:
            context[REDIRECT_FIELD_NAME] = reverse("admin:index")
        return LogIn.as_view(extra_context={**context, **(extra_context or {})})(request)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The menu lists the pages; a list of tables beside it would be built for nobody."""
        return []

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Wrap a view: only staff, never kept by a cache, no U+0000 that a database would choke on."""
        inner = super().admin_view(view, cacheable=False)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            match = request.resolver_match
            permitted = self.has_permission(request)
            led = permitted and factors.missing(request.user, getattr(request, "session", None))
            led = led and not (match and match.view_name in WITHOUT_FACTOR)
            if request.headers.get("HX-Request") == "true" and (led or not permitted):
                # Logged out meanwhile: the page that refreshes itself must not show a log-in form inside.
                return HttpResponse(status=403, headers={"HX-Refresh": "true", "Cache-Control": "no-store"})
            refuse_nul(request)
            if led:
                return HttpResponseRedirect(reverse("admin:second-factor"))
            return inner(request, *args, **kwargs)

        return update_wrapper(guarded, view)

    def page_view(self, view: View, permission: str) -> Any:
        """Wrap a page of ours: as `admin_view`, and only for who has `permission`; empty is for all staff."""

        def permitted(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if permission and not request.user.has_perm(permission):
                raise PermissionDenied
            request.current_app = self.name
            return view(request, *args, **kwargs)

        return self.admin_view(update_wrapper(permitted, view))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return our pages, then those of the stock site that we serve."""
        # Imported with the addresses, which a worker process never reads.
        from console import windows
        from console.pages import DETAILS

        windows.open_all()
        own = [
            path(
                page.path,
                self.page_view(page.view, page.permission),
                name=page.url_name.removeprefix("admin:"),
            )
            for page in [*DETAILS, *self.pages]
            if page.view is not None
        ]
        stock = [url for url in super().get_urls() if getattr(url, "name", "") not in NOT_SERVED]
        return [*own, *stock]


def refuse_nul(request: HttpRequest) -> None:
    """Raise BadRequest where the address holds U+0000: one database refuses it, the other does not."""
    values = [value for key in request.GET for value in (key, *request.GET.getlist(key))]
    if any("\0" in text for text in [request.path_info, *values]):
        raise BadRequest("U+0000")


def register_page(
    section: str,
    label: Any,
    url_name: str,
    permission: str,
    *,
    path: str = "",
    view: View | None = None,
    icon: str = "n-jobs",
    order: int = 100,
) -> None:
    """Add a page to the menu under one of `SECTIONS`, for whoever has `permission` ("app.codename").

    With `view` the site also serves it at `path` under `url_name` ("admin:…"), behind log-in and permission;
    without, `url_name` is an address of your own. An empty `section` is a page that the menu does not show.
    Registering a name again replaces the entry.
    """
    if section and section not in SECTIONS:
        raise ValueError(f"section {section!r}: one of {', '.join(SECTIONS)}, or empty")
    if view is not None and not (url_name.startswith("admin:") and path):
        raise ValueError(f"page {url_name!r}: what the site serves is named admin:… and has a path")
    page = MenuPage(section, label, url_name, permission, icon, path, view, order)
    site.registered = [*(p for p in site.registered if p.url_name != url_name), page]


# Named as the admin's own site is, so that templates and reverse("admin:…") find it.
site = ConsoleSite(name="admin")
