"""What is asked: every page of the console, as a person meets it at this size."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.db.models import Count, Max, QuerySet
from django.urls import reverse
from django.utils import timezone

from bench.console.matters import CHARGE, OUTAGE, REFUND
from bench.console.story import (
    COMMON_TAG,
    INVOICE,
    KIND,
    QUEUES,
    RARE_ERROR,
    RARE_KIND,
    RARE_QUEUE,
    RARE_TAG,
    TAG,
    worker,
)  # fmt: skip
from console import bounded, inbox
from jobs import searching
from jobs.models import (
    AuditEntry,
    Case,
    EffectSlot,
    Evidence,
    FenceRefusal,
    Job,
    Plan,
    PlanRow,
    RaiseProposal,
)
from jobs.models.case import CaseKind
from jobs.models.plan import PlanState
from jobs.status import JobStatus

ACTS = ("rule", "take", "give-back", "park", "comment", "inquire", "approve", "reject")
SENT = {
    "language",
    "admin:logout",
    "admin:view-keep",
    "admin:view-forget",
    "admin:token-revoke",
    "admin:plan-execute",
    "admin:plan-abort",
    *(f"admin:{name}-export" for name in ("jobs", "inbox", "audit", "plan")),
    *(f"admin:case-{act}" for act in ACTS),
}
"""Addresses that are no pages: what is only sent leads elsewhere where it is opened; an export is a file."""
WINDOWS = ("attempt", "effectslot", "change", "minute", "fencerefusal", "worker", "queue", "scheduler")


@dataclass(frozen=True)
class Page:
    """One address of a page. `region` is a part that the page refreshes by itself; `answer` the status."""

    name: str
    about: str
    url: str
    region: str = ""
    answer: int = 200
    logged_in: bool = True
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the table calls it."""
        about = ", ".join(
            part for part in (self.about, f"region {self.region}" if self.region else "") if part
        )
        return self.name.removeprefix("admin:") + (f": {about}" if about else "")


def pages() -> Iterator[Page]:
    """Yield what is asked of a filled ledger."""
    yield from _lists()
    yield from _jobs()
    yield from _job()
    yield from _cases()
    yield from _plans()
    yield from _control()
    yield from _windows()
    yield from _account()


def page(
    name: str, about: str = "", *arguments: Any, region: str = "", answer: int = 200, **query: Any
) -> Page:
    """Return a page of the console by the name of its address."""
    url = reverse(f"admin:{name}", args=arguments)
    return Page(f"admin:{name}", about, f"{url}?{urlencode(query, True)}" if query else url, region, answer)


def _lists() -> Iterator[Page]:
    yield page("index")
    yield page("index", "24 hours", range="24h")
    yield page("index", "7 days", range="7d")
    for region in ("needs", "proof", "flow"):
        yield page("index", region=region)
    yield page("queues")
    yield page("queues", region="table")
    yield page("workers")
    yield page("workers", region="table")
    refused = FenceRefusal.objects.order_by("id")
    yield page("refusals")
    yield page("refusals", region="table")
    yield page("refusals", "a common reason", reason="GENERATION")
    yield page("refusals", "a rare reason", reason="TIMELINE")
    yield page("refusals", "a worker's", worker=worker(3).rpartition(":")[0])
    yield page("refusals", "a worker that there never was", worker="nobody")
    yield page("refusals", "a job's", job=_first(refused).job_id)
    yield page("refusals", "the oldest", before=_nth(refused, 40).id)
    for words, about in (
        ("INV-2026-0", "half of the labels"), ("no such thing", "finds nothing"), ("0197", "digits"),
        (_newest("failed").id.hex[:11], "the beginning of an id"), ("order-300", "a key"),
        (EffectSlot.objects.order_by("pk")[0].pk[:8], "the beginning of an effect's key"),
    ):  # fmt: skip
        yield page("search", about, q=words)
    yield page("search")
    yield page("search", "a whole id", answer=302, q=str(_newest("failed").id))
    yield page("conversions")
    yield page("conversions", region="table")
    job = Job.objects.filter(kind=KIND, status=JobStatus.SUCCEEDED).order_by("-id")[:1]
    yield page("conversion-file", "gone", job[0].id if job else uuid.UUID(int=1), answer=404)


def _jobs() -> Iterator[Page]:
    yield page("jobs")
    yield page("jobs", region="table")
    yield page("jobs", region="counts")
    oldest = Job.objects.order_by("id")
    yield page("jobs", "the oldest", before=_nth(oldest, 40).id)
    yield page("jobs", "back from the oldest", after=_first(oldest).id)
    yield page("jobs", "what came since", top=_nth(Job.objects.order_by("-id"), 60).id)
    for status in JobStatus:
        yield page("jobs", status.value, status=status.value)
    yield page("jobs", "failed", region="table", status="failed")
    failed = Job.objects.filter(status="failed").order_by("id")
    yield page("jobs", "failed, the oldest", status="failed", before=_nth(failed, 20).id)
    yield page("jobs", "failed or cancelled", status=["failed", "cancelled"])
    yield page("jobs", "failed with a common error", status="failed", error_code="PROVIDER_UNREACHABLE")
    yield page("jobs", "failed with a rare error", status="failed", error_code=RARE_ERROR[0])
    yield page("jobs", "a rare error", error_code=RARE_ERROR[0])
    yield page("jobs", "an error that there never was", error_code="NO_SUCH_ERROR")
    yield page("jobs", "a common kind", kind="billing.settle")
    yield page("jobs", "a rare kind", kind=RARE_KIND)
    yield page("jobs", "a kind that there never was", kind="no.such")
    yield page("jobs", "a large queue", queue=QUEUES[0])
    yield page("jobs", "a rare queue", queue=RARE_QUEUE)
    yield page("jobs", "a common kind, pending", kind="billing.settle", status="pending")
    yield page("jobs", "a worker's", worker=worker(3))
    yield page("jobs", "a worker that there never was", worker="nobody")
    yield page("jobs", "a key", key="order-300")
    yield page("jobs", "a concurrency key", key="account-77")
    for about, tag in (("half of the jobs", COMMON_TAG), ("a tenth of them", TAG), ("a rare one", RARE_TAG)):
        yield page("jobs", f"tag, {about}", tag=tag)
    tagged = searching.rows(searching.tag(COMMON_TAG)).order_by("job_id")
    yield page("jobs", "tag, the oldest", tag=COMMON_TAG, before=_nth(tagged, 40).job_id)
    yield page("jobs", "tag, the way back", tag=COMMON_TAG, after=_nth(tagged, 40).job_id)
    yield page("jobs", "tag, region", tag=TAG, region="table")
    yield page("jobs", "a tag that there never was", tag="no-such-tag")
    for tag in (COMMON_TAG, RARE_TAG):
        yield page("jobs", f"tag {tag}, failed", tag=tag, status="failed")
        yield page("jobs", f"tag {tag}, pending", tag=tag, status="pending")
        yield page("jobs", f"tag {tag}, succeeded", tag=tag, status="succeeded")
        yield page("jobs", f"tag {tag}, a common kind", tag=tag, kind="billing.settle")
        yield page("jobs", f"tag {tag}, a rare kind", tag=tag, kind=RARE_KIND)
        yield page("jobs", f"tag {tag}, a rare error", tag=tag, error_code=RARE_ERROR[0])
        yield page("jobs", f"tag {tag}, a label that there never was", tag=tag, label="no such label")
    yield page("jobs", "tag, of the last hour", tag=TAG, age="<1h")
    yield page("jobs", "tag, older than a week", tag=TAG, age=">7d")
    yield page("jobs", "tag, on hold", tag=COMMON_TAG, hold="any")
    one = searching.rows((INVOICE, _first(Job.objects.order_by("id")).label))
    yield page("jobs", "argument", arg=f"{INVOICE}={_first(one).value}")
    yield page("jobs", "argument and tag", arg=f"{INVOICE}={_first(one).value}", tag=COMMON_TAG)
    yield page("jobs", "argument that there never was", arg=f"{INVOICE}=none")
    yield page("jobs", "argument that nothing declares", answer=400, arg="nothing=1")
    yield page("jobs", "the last hour", age="<1h")
    yield page("jobs", "older than a week", age=">7d")
    yield page("jobs", "label", label="INV-2026")
    yield page("jobs", "label, finds nothing", label="no such label")
    yield page("jobs", "on hold", hold="any")
    yield page("jobs", "on hold, rare reason", hold="quarantine")
    parent = Job.objects.filter(parent__isnull=False).order_by("id")[:1]
    yield page("jobs", "children", parent=parent[0].parent_id if parent else uuid.UUID(int=1))
    yield page("jobs", "the beginning of an id", id=_newest("failed").id.hex[:10])
    yield page("jobs", "search", q="INV-2026-0")
    yield page("jobs", "search, finds nothing", q="no such thing")
    yield page("jobs", "several filters", status="failed", queue=QUEUES[1], age="<24h", label="DOC")
    yield page("jobs", "a bad filter", answer=400, statee="failed")


def _job() -> Iterator[Page]:
    for status in JobStatus:
        yield page("job", status.value, _newest(status).id)
    rare = Job.objects.filter(kind=RARE_KIND).order_by("-id").first() or _newest("failed")
    yield page("job", "thirty attempts", rare.id)
    yield page("job", "running", _newest("running").id, region="job")
    children = Job.objects.filter(parent__isnull=False).order_by("id").first()
    yield page("job", "children", children.parent_id if children else rare.id)
    failed, running, held = _newest("failed").id, _newest("running").id, Job.objects.exclude(hold_reason="")
    for act, job_id in (
        ("cancel", running), ("force-cancel", running), ("retry", failed), ("revise", failed),
        ("hold", running),
        ("unhold", _first(held).id),
        ("reveal", running),
    ):  # fmt: skip
        yield page(f"job-{act}", "", job_id)


def _cases() -> Iterator[Page]:
    cases = Case.objects.filter(closed_at=None).order_by("-id")
    outage = _first(cases.filter(cause=OUTAGE))
    yield page("inbox")
    yield page("inbox", region="table")
    yield page("inbox", "mine", owner="me")
    yield page("inbox", "nobody's", owner="nobody", parked="no")
    yield page("inbox", "parked", parked="yes")
    yield page("inbox", "for my approval", waiting="me")
    yield page("inbox", "for anybody's approval", waiting="anybody")
    yield page("inbox", "past its SLA", sla="breached")
    yield page("inbox", "closed", state="closed")
    closed = Case.objects.exclude(closed_at=None).order_by("-closed_at", "-id")
    yield page("inbox", "closed, the last page", state="closed", after=_nth(closed, 4000).id)
    yield page("inbox", "closed, a rare effect", state="closed", effect_kind=REFUND)
    yield page("inbox", "closed, label, finds nothing", state="closed", label="no such label")
    yield page("inbox", "conflicts", kind="conflict")
    yield page("inbox", "a common effect", effect_kind=CHARGE)
    yield page("inbox", "a rare effect", effect_kind=REFUND)
    yield page("inbox", "amount", least="800")
    yield page("inbox", "label", label="INV-2026")
    yield page("inbox", "label, finds nothing", label="no such label")
    yield page("inbox", "an outage", like=outage.id)
    yield page(
        "inbox", "an outage, the second page", like=outage.id, after=_nth(cases.filter(cause=OUTAGE), 50).id
    )
    yield page("inbox", "the last page", after=_last_case())
    yield page("inbox", "the last page", region="table", after=_last_case())
    yield page("handover")
    yield page("handover", "24 hours", hours="24")
    yield page("next-case", "", answer=302)
    yield page("next-case", "after another", answer=302, after=outage.id)
    found = {kind.value: _first(cases.filter(kind=kind)) for kind in CaseKind}
    found |= {"of an outage": outage, "closed": _first(Case.objects.exclude(closed_at=None).order_by("-id"))}
    for about, case in found.items():
        yield page("case", about, case.id)
        yield page("casefile", about, case.id)
        yield page("case-reveal", about, case.id)
    for region in ("state", "evidence", "choices"):
        yield page("case", "of an outage", outage.id, region=region)
    talked = EffectSlot.objects.filter(evidence__source="inquiry", evidence__id__in=_much_evidence())
    slot = talked.first()
    if slot:
        yield page("case", "two hundred inquiries", Case.objects.filter(effect=slot)[0].id)


def _last_case() -> uuid.UUID:
    """Return the case after which the last page of the inbox begins."""
    found: uuid.UUID | None = None
    for _ in range(200):
        stretch = inbox.read(inbox.open_cases(), now=timezone.now(), after=found)
        if stretch.next is None:
            break
        found = stretch.next
    return found or _first(Case.objects.all()).id


def _much_evidence() -> list[int]:
    most = Evidence.objects.values("effect").annotate(n=Count("id"), last=Max("id")).order_by("-n")[:1]
    return [row["last"] for row in most]


def _plans() -> Iterator[Page]:
    yield page("plans")
    yield page("plans", region="table")
    yield page("plan", "planned", _first(Plan.objects.filter(state=PlanState.PLANNED)).id)
    done = _first(Plan.objects.filter(state=PlanState.DONE)).id
    yield page("plan", "done, the most rows", done)
    yield page("plan", "done, the most rows", done, region="state")
    rows = PlanRow.objects.filter(plan=done).order_by("id").values_list("id", flat=True)
    yield page("plan-rows", "the first", done)
    yield page("plan-rows", "skipped", done, outcome="skipped")
    yield page("plan-rows", "from the middle", done, after=rows[rows.count() // 2])
    yield page("plan-new", "no filter")
    filters: dict[str, dict[str, Any]] = {
        "failed": {"status": "failed"},
        "failed with a common error": {"status": "failed", "error_code": "PROVIDER_UNREACHABLE"},
        "failed with a rare error": {"status": "failed", "error_code": RARE_ERROR[0]},
        "a rare error": {"error_code": RARE_ERROR[0]},
        "an error that there never was": {"error_code": "NO_SUCH_ERROR"},
        "a rare kind": {"kind": RARE_KIND},
        "a kind that there never was": {"kind": "no.such"},
        "a large queue": {"queue": QUEUES[0]},
        "a rare queue": {"queue": RARE_QUEUE},
        "pending": {"status": "pending"},
        "pending of a rare kind": {"status": "pending", "kind": RARE_KIND},
        "succeeded": {"status": "succeeded"},
        "on hold": {"hold": "any"},
        "a worker's": {"worker": worker(3)},
        "a key": {"key": "order-300"},
        "a rare tag": {"tag": RARE_TAG},
        "a common tag": {"tag": COMMON_TAG},
        "a common tag, failed": {"tag": COMMON_TAG, "status": "failed"},
        "an argument": {"arg": f"{INVOICE}={_newest('failed').label}"},
        "label": {"label": "INV-2026"},
        "label, finds nothing": {"label": "no such label"},
        "search, finds nothing": {"q": "no such thing"},
        "older than a week": {"age": ">7d"},
        "the last hour": {"age": "<1h"},
    }
    for about, query in filters.items():
        yield page("plan-new", about, **query)


def _control() -> Iterator[Page]:
    yield page("scheduler")
    yield page("scheduler", region="state")
    yield page("drain")
    yield page("drain", region="checklist")
    for name in ("epoch-raise", "claims-close", "claims-open", "drills", "practice", "tokens", "audit"):
        yield page(name)
    asked = RaiseProposal.objects.latest("at")
    yield page("raise-confirm", "", asked.pk)
    yield page("raise-decline", "", asked.pk)
    yield page("audit", region="table")
    entry = _first(AuditEntry.objects.order_by("seq"))
    yield page("audit", "a person's", actor=entry.actor)
    yield page("audit", "an action", action=entry.action)
    yield page("audit", "an object's", object_type=entry.object_type, object_id=entry.object_id)
    yield page("audit", "the oldest", before=40)
    yield page("queue-pause", queue=QUEUES[0])
    yield page("queue-resume", queue=QUEUES[2])
    yield page("worker-fence", worker=worker(3))


def _windows() -> Iterator[Page]:
    for name in (*WINDOWS, "apitoken"):
        model = apps.get_model("jobs", name)
        rows = model._default_manager.order_by("-pk")
        last = (min(rows.count(), bounded.LIMIT) - 1) // 50 + 1
        yield page(f"jobs_{name}_changelist")
        yield page(f"jobs_{name}_changelist", "the last page", p=last)
        yield page(f"jobs_{name}_change", "", _first(rows).pk)


def _account() -> Iterator[Page]:
    for name in ("preferences", "second-factor", "password_change", "password_change_done"):
        yield page(name)
    yield Page("admin:login", "", reverse("admin:login"), logged_in=False)
    yield Page("admin:", "no such page", "/no/such/page/", answer=404)


def _first(rows: QuerySet[Any]) -> Any:
    return rows[:1].get()


def _nth(rows: QuerySet[Any], place: int) -> Any:
    """Return the row at that place, the last one where there are fewer."""
    return list(rows[: place + 1])[-1]


def _newest(status: str) -> Any:
    return _first(Job.objects.filter(status=status).order_by("-id"))
