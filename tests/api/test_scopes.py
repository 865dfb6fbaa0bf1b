"""Every address, scope and queue limit: made from the URL table, so a new address needs a row."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from jobs.api import urls
from jobs.models import ApiToken, AuditEntry, Change
from jobs.permissions import NEEDS
from tests import build
from tests.api.caller import OPERATOR, ROOT, Api, operator, secret

pytestmark = pytest.mark.looks_alike

EITHER = ("jobs:cancel", "ops")
"""What the plan is for decides which of them."""
SCOPES: dict[str, dict[str, str | tuple[str, ...]]] = {
    "api-jobs": {"GET": "jobs:read", "POST": "jobs:enqueue"},
    "api-jobs-batch": {"POST": "jobs:enqueue"},
    "api-job": {"GET": "jobs:read"},
    "api-job-attempts": {"GET": "jobs:read"},
    "api-job-effects": {"GET": "jobs:read"},
    "api-job-events": {"GET": "jobs:read"},
    "api-job-lineage": {"GET": "jobs:read"},
    "api-job-explain": {"GET": "jobs:read"},
    "api-job-cancel": {"POST": "jobs:cancel"},
    "api-job-force-cancel": {"POST": "ops"},
    "api-job-retry": {"POST": "ops"},
    "api-job-revise": {"POST": "ops"},
    "api-job-hold": {"POST": "ops"},
    "api-job-unhold": {"POST": "ops"},
    "api-events": {"GET": "jobs:read"},
    "api-cases": {"GET": "cases:act"},
    "api-case": {"GET": "cases:act"},
    "api-case-take": {"POST": "cases:act"},
    "api-case-park": {"POST": "cases:act"},
    "api-case-comment": {"POST": "cases:act"},
    "api-case-inquire": {"POST": "cases:act"},
    "api-case-rulings": {"POST": "cases:act"},
    "api-case-approvals": {"POST": "cases:act"},
    "api-bulk-plans": {"POST": EITHER},
    "api-bulk-plan": {"GET": "jobs:read"},
    "api-bulk-plan-items": {"GET": "jobs:read"},
    "api-bulk-plan-execute": {"POST": EITHER},
    "api-bulk-plan-abort": {"POST": EITHER},
    "api-queues": {"GET": "ops"},
    "api-queue": {"GET": "ops", "PATCH": "ops"},
    "api-workers": {"GET": "ops"},
    "api-worker-fence": {"POST": "ops"},
    "api-epochs": {"GET": "ops", "POST": "ops"},
    "api-raise-approvals": {"POST": "ops"},
    "api-drain": {"GET": "ops"},
    "api-claims": {"POST": "worker"},
    "api-renew": {"POST": "worker"},
    "api-commits": {"POST": "worker"},
    "api-stage": {"POST": "worker"},
    "api-commit": {"POST": "worker"},
    "api-fail": {"POST": "worker"},
    "api-release": {"POST": "worker"},
    "api-wait": {"POST": "worker"},
    "api-skip": {"POST": "worker"},
    "api-uncertain": {"POST": "worker"},
    "api-acknowledge-cancel": {"POST": "worker"},
    "api-prepare": {"POST": "worker"},
    "api-artefacts": {"POST": "worker"},
    "api-grant": {"POST": "worker"},
    "api-report": {"POST": "worker"},
    "api-inquired": {"POST": "worker"},
}
WHOLE_CLUSTER = {"api-workers", "api-worker-fence", "api-epochs", "api-raise-approvals", "api-drain"}
"""Not for a token that is limited to queues, whichever they are."""
OPEN = {"api-docs"}
"""For everybody: they tell nothing of this installation."""
ABOUT_ONE = ("job_id", "case_id", "plan_id", "attempt_id", "effect_id")


def routes():
    named = {getattr(p, "name", None): str(p.pattern) for p in urls.urlpatterns}
    return {name: route for name, route in named.items() if name and name not in OPEN}


def address(route):
    """Return an address of the route: of a job in the queue `mail`, of nothing else that exists."""
    found = route.replace("<str:name>", "mail").replace("<str:worker_id>", "w")
    for name in ABOUT_ONE:
        found = found.replace(f"<str:{name}>", str(uuid.uuid4()))
    return f"{ROOT}/{found}"


def send(client, method, path):
    media = "application/octet-stream" if path.endswith("artefacts") else "application/json"
    return client.generic(method, path, b"{}", content_type=media)


def test_every_address_has_a_row_and_every_row_an_address():
    assert {name: routes()[name] for name in SCOPES} == routes()


@pytest.mark.parametrize("name", SCOPES)
def test_address_takes_its_scope_and_no_other(db, name):
    path, owner = address(routes()[name]), operator()
    for method in {"GET", "POST", "PATCH"} - {*SCOPES[name]}:
        assert send(Api(secret("ops", owner=owner)), method, path).status_code == 405, method
    before = Change.objects.count(), AuditEntry.objects.count()
    for method, needed in SCOPES[name].items():
        enough = {*needed} if isinstance(needed, tuple) else {needed}
        for scope in enough:
            answer = send(Api(secret(scope, owner=owner)), method, path)
            # Permitted: left to complain of is the empty body, or that nothing has the name.
            assert answer.status_code in (200, 400, 404), (method, scope, answer.content)
        answer = send(Api(secret(*{*ApiToken.SCOPES} - enough, owner=owner)), method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), method
        assert all(scope in answer.json()["detail"] for scope in enough)
    assert (Change.objects.count(), AuditEntry.objects.count()) == before


@pytest.mark.parametrize("name", [name for name, row in SCOPES.items() if "worker" not in row.values()])
def test_token_limited_to_queues_reaches_no_further(db, name):
    """Elsewhere nothing exists for it; the whole cluster is not its matter.

    What a worker's token may do besides is for its own leases: test_claims.py, test_leases.py.
    """
    job_id = build.enqueue(queue="default")
    route = routes()[name]
    path = f"{ROOT}/{route}".replace("<str:job_id>", str(job_id)).replace("<str:name>", "default")
    path = path.replace("<str:case_id>", str(uuid.uuid4())).replace("<str:worker_id>", "w")
    client = Api(secret(*ApiToken.SCOPES, owner=operator(), queues=("mail",)))
    for method in SCOPES[name]:
        answer = send(client, method, path)
        if name in WHOLE_CLUSTER:
            assert answer.status_code == 403, answer.content
        elif "<" in route:
            assert answer.status_code == 404, answer.content
        elif method == "GET":
            assert str(job_id) not in answer.content.decode(), answer.content
            assert job_id.hex not in answer.content.decode(), answer.content


@pytest.mark.parametrize(
    ("act", "permission"),
    [
        ("force-cancel", "force_cancel_job"),
        ("retry", "retry_job"),
        ("revise", "revise_job"),
        ("hold", "hold_job"),
        ("unhold", "hold_job"),
    ],
)
def test_scope_alone_is_not_the_operations_permission(db, act, permission):
    job_id = build.enqueue()
    lacking = operator("lacking", *[p for p in OPERATOR if p != permission])
    body: dict[str, Any] = {"reason": "r"} | ({"arguments": {}} if act == "revise" else {})
    answer = Api(secret("ops", owner=lacking)).act(f"/jobs/{job_id}/{act}", body, 1)
    assert (answer.status_code, answer.json()["refusal"]) == (403, "NOT_PERMITTED")
    assert permission in answer.json()["detail"]


def test_every_scope_that_tokens_know_has_a_permission_or_is_the_workers():
    assert {*ApiToken.SCOPES} - {"worker"} <= {*NEEDS}
