"""The console's own pages, a file each, and the menu that leads to them."""

from django.utils.translation import gettext_lazy as _

from console import saved
from console.menu import FOR_ME, MenuPage
from console.pages import clusteract, jobact, raising, ruling
from console.pages.audit import AuditPage
from console.pages.case import CaseFile, CasePage
from console.pages.casereveal import RevealCase
from console.pages.drain import DrainPage
from console.pages.drills import DrillsPage
from console.pages.export import AuditExport, InboxExport, JobsExport
from console.pages.handover import HandoverPage
from console.pages.inbox import InboxPage, NextCase
from console.pages.job import JobPage
from console.pages.jobs import JobsPage
from console.pages.overview import OverviewPage
from console.pages.planrows import PlanRowsExport, PlanRowsPage
from console.pages.plans import AbortPlan, ExecutePlan, PlanPage, PlansPage, PreparePlan
from console.pages.practice import PracticePage
from console.pages.preferences import PreferencesPage
from console.pages.queues import QueuesPage
from console.pages.refusals import RefusalsPage
from console.pages.scheduler import SchedulerPage
from console.pages.search import SearchPage
from console.pages.secondfactor import SecondFactorPage
from console.pages.tokens import RevokeToken, TokensPage
from console.pages.workers import WorkersPage
from jobs.operations.actor import APPROVE, TOKENS

VIEW = "jobs.view_job"

MENU = [
    MenuPage("decide", _("Overview"), "admin:index", VIEW, "n-over", "", OverviewPage.as_view(), 10),
    MenuPage(
        "decide", _("Inbox"), "admin:inbox", "jobs.view_case", "n-inbox", "cases/", InboxPage.as_view(), 20
    ),
    MenuPage("decide", _("Approvals"), "admin:inbox", APPROVE, "approval", order=30, query=FOR_ME),
    MenuPage("watch", _("Jobs"), "admin:jobs", VIEW, "n-jobs", "jobs/", JobsPage.as_view(), 10),
    MenuPage(
        "watch",
        _("Queues"),
        "admin:queues",
        "jobs.view_queue",
        "n-queues",
        "queues/",
        QueuesPage.as_view(),
        20,
    ),
    MenuPage(
        "watch",
        _("Workers"),
        "admin:workers",
        "jobs.view_worker",
        "n-workers",
        "workers/",
        WorkersPage.as_view(),
        30,
    ),
    MenuPage(
        "watch",
        _("Refused writes"),
        "admin:refusals",
        "jobs.view_fencerefusal",
        "fence",
        "refusals/",
        RefusalsPage.as_view(),
        40,
    ),
    MenuPage("control", _("Mass actions"), "admin:plans", VIEW, "n-plan", "plans/", PlansPage.as_view(), 30),
    MenuPage(
        "control",
        _("Epoch and claims"),
        "admin:scheduler",
        "jobs.view_scheduler",
        "n-epoch",
        "scheduler/",
        SchedulerPage.as_view(),
        10,
    ),
    MenuPage(
        "control",
        _("Drain"),
        "admin:drain",
        "jobs.view_scheduler",
        "n-drain",
        "scheduler/drain/",
        DrainPage.as_view(),
        15,
    ),
    MenuPage(
        "control",
        _("Audit"),
        "admin:audit",
        "jobs.view_auditentry",
        "chain",
        "audit/",
        AuditPage.as_view(),
        40,
    ),
    MenuPage("control", _("Drills"), "admin:drills", VIEW, "n-drill", "drills/", DrillsPage.as_view(), 20),
    MenuPage("records", _("Attempts"), "admin:jobs_attempt_changelist", "jobs.view_attempt", "n-record"),
    MenuPage("records", _("Effects"), "admin:jobs_effectslot_changelist", "jobs.view_effectslot", "n-record"),
    MenuPage("records", _("Changes"), "admin:jobs_change_changelist", "jobs.view_change", "n-record"),
    MenuPage("records", _("Minutes"), "admin:jobs_minute_changelist", "jobs.view_minute", "n-record"),
    MenuPage(
        "control", _("API tokens"), "admin:tokens", TOKENS, "n-token", "tokens/", TokensPage.as_view(), 20
    ),
]
SEE, CASE = "jobs.view_case", "cases/<uuid:case_id>/"
DETAILS = [
    *(
        MenuPage(section, _("Export"), f"admin:{name}-export", permission, "page", where, view)
        for section, name, permission, where, view in [
            ("watch", "jobs", VIEW, "jobs/export/", JobsExport.as_view()),
            ("decide", "inbox", SEE, "cases/export/", InboxExport.as_view()),
            ("control", "audit", "jobs.view_auditentry", "audit/export/", AuditExport.as_view()),
        ]
    ),
    MenuPage("watch", _("Job"), "admin:job", VIEW, "n-jobs", "jobs/<uuid:job_id>/", JobPage.as_view()),
    MenuPage(
        "control",
        _("Practice inbox"),
        "admin:practice",
        VIEW,
        "n-inbox",
        "drills/practice/",
        PracticePage.as_view(),
    ),
    MenuPage(
        "control",
        _("API tokens"),
        "admin:token-revoke",
        TOKENS,
        "n-token",
        "tokens/<int:token_id>/revoke/",
        RevokeToken.as_view(),
    ),
    *(
        MenuPage("control", _("Mass actions"), f"admin:{name}", VIEW, "n-plan", where, view)
        for name, where, view in [
            ("plan-new", "plans/new/", PreparePlan.as_view()),
            ("plan", "plans/<uuid:plan_id>/", PlanPage.as_view()),
            ("plan-rows", "plans/<uuid:plan_id>/rows/", PlanRowsPage.as_view()),
            ("plan-export", "plans/<uuid:plan_id>/export/", PlanRowsExport.as_view()),
            ("plan-execute", "plans/<uuid:plan_id>/execute/", ExecutePlan.as_view()),
            ("plan-abort", "plans/<uuid:plan_id>/abort/", AbortPlan.as_view()),
        ]
    ),
    MenuPage("decide", _("Case"), "admin:case", SEE, "n-inbox", CASE, CasePage.as_view()),
    MenuPage("decide", _("Next case"), "admin:next-case", SEE, "n-inbox", "cases/next/", NextCase.as_view()),
    MenuPage("decide", _("Case file"), "admin:casefile", SEE, "n-inbox", CASE + "file/", CaseFile.as_view()),
    MenuPage(
        "decide", _("Hand-over"), "admin:handover", SEE, "n-inbox", "cases/handover/", HandoverPage.as_view()
    ),
    MenuPage(
        "watch", _("Second factor"), "admin:second-factor", "", "lock", "account/", SecondFactorPage.as_view()
    ),
    MenuPage("watch", _("Search"), "admin:search", VIEW, "search", "search/", SearchPage.as_view()),
    MenuPage(
        "watch", _("Time zone"), "admin:preferences", VIEW, "clock", "preferences/", PreferencesPage.as_view()
    ),
    MenuPage(
        "decide", _("View"), "admin:view-keep", VIEW, "", "views/<str:page>/keep/", saved.Keep.as_view()
    ),
    MenuPage(
        "decide",
        _("View"),
        "admin:view-forget",
        VIEW,
        "",
        "views/<str:page>/<int:view_id>/forget/",
        saved.Forget.as_view(),
    ),
    *(
        MenuPage(
            "watch",
            _("Job"),
            f"admin:job-{slug}",
            act.permission,
            "n-jobs",
            f"jobs/<uuid:job_id>/{slug}/",
            act.as_view(),
        )
        for act in jobact.ACTS.values()
        for slug in [act.name.replace("_", "-")]
    ),
    *(
        MenuPage(section, act.verb, f"admin:{name}", permission, act.icon, where, act.as_view())
        for act, section, name, permission, where in [
            (clusteract.PauseQueue, "watch", "queue-pause", "jobs.pause_queue", "queues/pause/"),
            (clusteract.ResumeQueue, "watch", "queue-resume", "jobs.pause_queue", "queues/resume/"),
            (clusteract.FenceWorker, "watch", "worker-fence", "jobs.fence_worker", "workers/fence/"),
            (raising.RaiseEpoch, "control", "epoch-raise", "jobs.raise_epoch", "scheduler/raise/"),
            (clusteract.CloseClaims, "control", "claims-close", "jobs.raise_epoch", "scheduler/close/"),
            (clusteract.OpenClaims, "control", "claims-open", "jobs.raise_epoch", "scheduler/open/"),
        ]
    ),
    *(
        MenuPage(
            "control",
            _("Raise the epoch"),
            f"admin:raise-{name}",
            "jobs.view_scheduler",
            "n-epoch",
            f"scheduler/raise/<uuid:proposal_id>/{name}/",
            act.as_view(),
        )
        for name, act in (("confirm", raising.ConfirmRaise), ("decline", raising.DeclineRaise))
    ),
    MenuPage(
        "decide",
        RevealCase.verb,
        "admin:case-reveal",
        RevealCase.permission,
        RevealCase.icon,
        CASE + "reveal/",
        RevealCase.as_view(),
    ),
    *(
        MenuPage("decide", _("Case"), f"admin:case-{act.name}", SEE, "n-inbox", CASE + end, act.as_view())
        for act, end in [
            (ruling.Rule, "rule/"),
            (ruling.Take, "take/"),
            (ruling.GiveBack, "give-back/"),
            (ruling.Park, "park/"),
            (ruling.Comment, "comment/"),
            (ruling.Inquire, "inquire/"),
            (ruling.Approve, "proposals/<uuid:proposal_id>/approve/"),
            (ruling.Reject, "proposals/<uuid:proposal_id>/reject/"),
        ]
    ),
]
"""Pages that no menu entry leads to."""
