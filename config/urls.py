"""The addresses: health for machines, the API, and the console for people at the root."""

from django.urls import include, path

from console.site import site
from jobs.api import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", include("jobs.api.urls")),
    # The admin answers every address it does not know with its own 404, so what comes after is never asked.
    path("", site.urls),
]

handler400 = "console.errors.bad_request"
handler403 = "console.errors.forbidden"
handler404 = "console.errors.not_found"
handler500 = "console.errors.broken"
