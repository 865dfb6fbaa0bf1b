"""The addresses of the API, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path, re_path

from jobs.api.jobs import CancelView, JobsView, JobView, NothingHere

urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs", JobsView.as_view(), name="api-jobs"),
    path("jobs/<str:job_id>", JobView.as_view(), name="api-job"),
    path("jobs/<str:job_id>/cancel", CancelView.as_view(), name="api-job-cancel"),
    # Whoever speaks JSON gets his 404 in JSON too.
    re_path(r"", NothingHere.as_view()),
]
