"""The pages that a browser looks at."""

from __future__ import annotations

from django.urls import reverse

from jobs.models import Attempt, Case
from tests.browser.data import Built


def pages(world: Built) -> dict[str, str]:
    """Return the address of each page by a name for it."""
    attempt = Attempt.objects.order_by("-generation", "-started_at").first()
    assert attempt is not None
    plain = (
        "index",
        "jobs",
        "queues",
        "workers",
        "refusals",
        "scheduler",
        "drain",
        "audit",
        "drills",
        "password_change",
        "conversions",
        "inbox",
        "handover",
        "search",
        "preferences",
        "second-factor",
        "practice",
    )
    found = {name: reverse(f"admin:{name}") for name in plain}
    found |= {f"job {name}": reverse("admin:job", args=[job_id]) for name, job_id in world.jobs.items()}
    return found | {
        "case": reverse("admin:case", args=[Case.objects.order_by("pk")[0].pk]),
        "case file": reverse("admin:casefile", args=[Case.objects.order_by("pk")[0].pk]),
        "closed cases": reverse("admin:inbox") + "?state=closed",
        "found": reverse("admin:search") + "?q=INV",
        "no match": reverse("admin:jobs") + "?kind=nothing",
        "bad filter": reverse("admin:jobs") + "?statee=failed",
        "attempts": reverse("admin:jobs_attempt_changelist"),
        "attempt": reverse("admin:jobs_attempt_change", args=[attempt.pk]),
        "changes": reverse("admin:jobs_change_changelist"),
        "practice case": reverse("admin:practice") + "?case=two-payloads&verdict=rebind",
        "not found": "/nowhere/",
    }
