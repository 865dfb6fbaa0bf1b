"""The addresses: health for machines, the API, and the console for people at the root."""

from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.i18n import set_language

from console.site import site
from jobs.api import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", include("jobs.api.urls")),
    # Django's own: POST only, with its CSRF token, and back to an address of this host.
    path("language", never_cache(set_language), name="language"),
    # The admin answers every address it does not know with its own 404, so what comes after is never asked.
    path("", site.urls),
]

handler400 = "console.errors.bad_request"
handler403 = "console.errors.forbidden"
handler404 = "console.errors.not_found"
handler500 = "console.errors.broken"
