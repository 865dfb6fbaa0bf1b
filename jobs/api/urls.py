"""The addresses of the API, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path, re_path

from jobs.api.claims import ClaimsView
from jobs.api.jobs import CancelView, JobsView, JobView, NothingHere
from jobs.api.leases import ENDINGS, CommitsView, CommitView, EndingView, RenewView, StageView
from jobs.api.remote_effects import GrantView, InquiredView, PrepareView, ReportView

urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs", JobsView.as_view(), name="api-jobs"),
    path("jobs/<str:job_id>", JobView.as_view(), name="api-job"),
    path("jobs/<str:job_id>/cancel", CancelView.as_view(), name="api-job-cancel"),
    # claim.v1, for remote workers (docs/remote.md)
    path("claims", ClaimsView.as_view(), name="api-claims"),
    path("leases/renew", RenewView.as_view(), name="api-renew"),
    path("leases/commit", CommitsView.as_view(), name="api-commits"),
    path("leases/<str:attempt_id>/stage", StageView.as_view(), name="api-stage"),
    path("leases/<str:attempt_id>/commit", CommitView.as_view(), name="api-commit"),
    *[
        path(f"leases/<str:attempt_id>/{verb}", EndingView.as_view(verb=verb), name=f"api-{verb}")
        for verb in ENDINGS
    ],
    path("leases/<str:attempt_id>/effects", PrepareView.as_view(), name="api-prepare"),
    path("effects/<str:effect_id>/grant", GrantView.as_view(), name="api-grant"),
    path("effects/<str:effect_id>/report", ReportView.as_view(), name="api-report"),
    path("effects/<str:effect_id>/inquired", InquiredView.as_view(), name="api-inquired"),
    # Whoever speaks JSON gets his 404 in JSON too.
    re_path(r"", NothingHere.as_view()),
]
