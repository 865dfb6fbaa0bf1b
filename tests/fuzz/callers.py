"""Whoever asks in the fuzz, and something to ask about."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from jobs import handlers
from jobs.models import ApiToken, Attempt, Case, EffectSlot, Job
from jobs.models.plan import Plan, PlanAction
from jobs.operations import plans
from tests import build
from tests.build import KIND
from tests.console.people import log_in
from tests.operations import scene

FEW = ["jobs:read", "jobs:enqueue", "worker"]


def declare() -> None:
    """Make known a kind of job and one of effects that take anything; nothing is run or sent."""

    @handlers.job(KIND, queue="default", redact=["hidden"])
    def anything(**_arguments: Any) -> None:
        """Do nothing."""

    scene.kind()


def make() -> dict[str, list[str]]:
    """Write them; returns the headers of each sort of caller."""
    declare()
    root = get_user_model().objects.create_superuser("root", last_login=timezone.now())
    client = Client()
    log_in(client, root)
    for queue in ("default", "mail"):
        options = handlers.Options(queue=queue)
        Job.objects.enqueue_many([(KIND, {"n": n, "hidden": "x"}, options) for n in range(50)])
    build.register("w:1:a")
    some = list(Job.objects.order_by("-pk").values_list("pk", flat=True)[:5])
    for _n in range(3):
        plans.prepare(PlanAction.HOLD, Job.objects.all(), actor=root, reason="r", ids=some)
    for _n in range(5):
        for matter in (scene.unknown, scene.conflict, scene.approval):
            matter()
    every = ApiToken.objects.issue("every", user=root, scopes=list(ApiToken.SCOPES), queues=[])[1]
    few = ApiToken.objects.issue("few", user=root, scopes=FEW, queues=["mail"])[1]
    return {
        "every scope": [f"Authorization: Bearer {every}"],
        "few scopes": [f"Authorization: Bearer {few}"],
        "session": [
            f"Cookie: sessionid={client.session.session_key}; csrftoken={'c' * 32}",
            f"X-CSRFToken: {'c' * 32}",
        ],
        "nobody": [],
    }


def known() -> dict[str, list[str]]:
    """Return, for each parameter of paths, what is there to be named."""
    rows: dict[str, Any] = {
        "job_id": Job,
        "case_id": Case,
        "plan_id": Plan,
        "attempt_id": Attempt,
        "effect_id": EffectSlot,
    }
    names = {"name": ["default", "mail"], "worker_id": ["w:1:a"]}
    for name, row in rows.items():
        names[name] = [str(pk) for pk in row.objects.order_by("pk").values_list("pk", flat=True)]
    return names
