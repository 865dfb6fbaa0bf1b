"""The addresses of the API, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path, re_path

from jobs.api import acts, cases, cluster, history, page, plans
from jobs.api.artefacts import ArtefactsView
from jobs.api.batch import BatchView
from jobs.api.claims import ClaimsView
from jobs.api.events import FeedView
from jobs.api.jobs import CancelView, JobsView, JobView, NothingHere
from jobs.api.leases import ENDINGS, CommitsView, CommitView, RenewView, StageView
from jobs.api.remote_effects import GrantView, InquiredView, PrepareView, ReportView

urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs", JobsView.as_view(), name="api-jobs"),
    path("jobs/batch", BatchView.as_view(), name="api-jobs-batch"),
    path("jobs/<str:job_id>", JobView.as_view(), name="api-job"),
    path("jobs/<str:job_id>/attempts", history.AttemptsView.as_view(), name="api-job-attempts"),
    path("jobs/<str:job_id>/effects", history.EffectsView.as_view(), name="api-job-effects"),
    path("jobs/<str:job_id>/events", history.EventsView.as_view(), name="api-job-events"),
    path("jobs/<str:job_id>/lineage", history.LineageView.as_view(), name="api-job-lineage"),
    path("jobs/<str:job_id>/explain", history.ExplainView.as_view(), name="api-job-explain"),
    path("jobs/<str:job_id>/cancel", CancelView.as_view(), name="api-job-cancel"),
    path("jobs/<str:job_id>/force-cancel", acts.ForceCancelView.as_view(), name="api-job-force-cancel"),
    path("jobs/<str:job_id>/retry", acts.RetryView.as_view(), name="api-job-retry"),
    path("jobs/<str:job_id>/revise", acts.ReviseView.as_view(), name="api-job-revise"),
    path("jobs/<str:job_id>/hold", acts.HoldView.as_view(), name="api-job-hold"),
    path("jobs/<str:job_id>/unhold", acts.UnholdView.as_view(), name="api-job-unhold"),
    path("events", FeedView.as_view(), name="api-events"),
    path("cases", cases.CasesView.as_view(), name="api-cases"),
    path("cases/<str:case_id>", cases.CaseView.as_view(), name="api-case"),
    path("cases/<str:case_id>/take", cases.TakeView.as_view(), name="api-case-take"),
    path("cases/<str:case_id>/park", cases.ParkView.as_view(), name="api-case-park"),
    path("cases/<str:case_id>/comment", cases.CommentView.as_view(), name="api-case-comment"),
    path("cases/<str:case_id>/inquire", cases.InquireView.as_view(), name="api-case-inquire"),
    path("cases/<str:case_id>/rulings", cases.RulingsView.as_view(), name="api-case-rulings"),
    path("cases/<str:case_id>/approvals", cases.ApprovalsView.as_view(), name="api-case-approvals"),
    path("bulk-plans", plans.PlansView.as_view(), name="api-bulk-plans"),
    path("bulk-plans/<str:plan_id>", plans.PlanView.as_view(), name="api-bulk-plan"),
    path("bulk-plans/<str:plan_id>/items", plans.RowsView.as_view(), name="api-bulk-plan-items"),
    path("bulk-plans/<str:plan_id>/execute", plans.ExecuteView.as_view(), name="api-bulk-plan-execute"),
    path("bulk-plans/<str:plan_id>/abort", plans.AbortView.as_view(), name="api-bulk-plan-abort"),
    path("queues", cluster.QueuesView.as_view(), name="api-queues"),
    path("queues/<str:name>", cluster.QueueView.as_view(), name="api-queue"),
    path("workers", cluster.WorkersView.as_view(), name="api-workers"),
    path("workers/<str:worker_id>/fence", cluster.FenceView.as_view(), name="api-worker-fence"),
    path("epochs", cluster.EpochsView.as_view(), name="api-epochs"),
    path("epochs/approvals", cluster.RaiseApprovalsView.as_view(), name="api-raise-approvals"),
    path("drain", cluster.DrainView.as_view(), name="api-drain"),
    path("docs", page.docs, name="api-docs"),
    # claim.v1, for remote workers (docs/remote.md)
    path("claims", ClaimsView.as_view(), name="api-claims"),
    path("leases/renew", RenewView.as_view(), name="api-renew"),
    path("leases/commit", CommitsView.as_view(), name="api-commits"),
    path("leases/<str:attempt_id>/stage", StageView.as_view(), name="api-stage"),
    path("leases/<str:attempt_id>/commit", CommitView.as_view(), name="api-commit"),
    *[
        path(f"leases/<str:attempt_id>/{verb}", view.as_view(), name=f"api-{verb}")
        for verb, view in ENDINGS.items()
    ],
    path("leases/<str:attempt_id>/effects", PrepareView.as_view(), name="api-prepare"),
    path("leases/<str:attempt_id>/artefacts", ArtefactsView.as_view(), name="api-artefacts"),
    path("effects/<str:effect_id>/grant", GrantView.as_view(), name="api-grant"),
    path("effects/<str:effect_id>/report", ReportView.as_view(), name="api-report"),
    path("effects/<str:effect_id>/inquired", InquiredView.as_view(), name="api-inquired"),
    # Whoever speaks JSON gets his 404 in JSON too.
    re_path(r"", NothingHere.as_view()),
]
