"""What every page of ours has in common: a whole page for a person, a fragment for the page's own refresh."""

from __future__ import annotations

import hashlib
import re
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.views import View

from console import zones
from console.environment import surroundings
from jobs.explain import Surroundings

# An age moves on every second, and the browser moves it on by itself: it is no news.
_AGES = re.compile(r"(<time\b[^>]*>)[^<]*")


class Page(View):
    """A page made of regions, each of one template: used in the page, and alone when it refreshes itself.

    A region `name` has a template `<folder>/<name>.html` and a method `<name>()` that returns its context.
    """

    http_method_names = ["get", "head", "options"]
    template_name: ClassVar[str]
    folder: ClassVar[str]
    regions: ClassVar[tuple[str, ...]] = ()

    @property
    def around(self) -> Surroundings:
        """What was read of the cluster for this request."""
        return surroundings(self.request)

    def page(self) -> dict[str, Any]:
        """Return the context of what stands outside of all regions."""
        return {}

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the page, or with the one region that asks for itself."""
        wanted = request.headers.get("HX-Target", "")
        if request.headers.get("HX-Request") == "true" and wanted in self.regions:
            return self._fragment(wanted)
        return self.whole({})

    def whole(self, more: dict[str, Any], status: int = 200) -> HttpResponse:
        """Answer with the whole page; `more` goes over what the page says by itself."""
        context = self._shared() | self.page()
        for region in self.regions:
            context |= getattr(self, region)()
        context |= {"http_status": context.get("http_status", status)} | more
        status = context.pop("http_status")
        html = render_to_string(self.template_name, self._around_page() | context, self.request)
        return _varied(HttpResponse(html, status=status))

    def _fragment(self, region: str) -> HttpResponse:
        context = self._shared() | getattr(self, region)()
        status = context.pop("http_status", 200)
        html = render_to_string(self.alone(region), context, self.request)
        tag = f'"{hashlib.sha256(_AGES.sub(lambda m: m[1], html).encode()).hexdigest()[:32]}"'
        if self.request.headers.get("If-None-Match") == tag:
            return _varied(HttpResponseNotModified(headers={"ETag": tag}))
        return _varied(HttpResponse(html, status=status, headers={"ETag": tag}))

    def alone(self, region: str) -> str:
        """Return the template of a region that refreshes itself."""
        return f"{self.folder}/{region}.html"

    def _shared(self) -> dict[str, Any]:
        return {"now": self.around.now, "around": self.around, "zone": zones.chosen(self.request)}

    def _around_page(self) -> dict[str, Any]:
        from console.site import site

        return site.each_context(self.request)


def _varied(response: HttpResponse) -> HttpResponse:
    # One address gives a page or a fragment; the Back button must never show the fragment.
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    return response
