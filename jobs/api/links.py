"""What may follow an answer: OpenAPI's `links`, as one table of operations.

A link names an operation and what of this answer it is about, so that a client, or a test that reads the
description, can follow a job, a lease, a case or a plan through its life. It promises that the values belong
there, not that the state of things allows the operation.
"""

from __future__ import annotations

from typing import Any

Values = dict[str, Any]
Follow = tuple[str, Values, Values]
"""An operation, its parameters, and members of its body."""

BODY = "$response.body#"
TAG = {"If-Match": "$response.header.ETag"}


def version(at: str = "") -> Values:
    """Return the ETag of a job that stands in a body."""
    return {"If-Match": f'"{{{BODY}{at}/state_version}}"'}


def job(at: str = "/id") -> Values:
    return {"job_id": f"{BODY}{at}"}


def to(names: str, parameters: Values | None = None, body: Values | None = None) -> list[Follow]:
    """Return a link to each of the operations, with the same values."""
    return [(name, parameters or {}, body or {}) for name in names.split()]


def lease_verbs(lease: str, attempt: str, names: str) -> list[Follow]:
    """Return what a worker does with a lease that stands at one place."""
    return to(
        " ".join(f"post_leases_attempt_id_{name}" for name in names.split()),
        {"attempt_id": attempt},
        {"lease": lease},
    )


READ = (
    "get_jobs_job_id get_jobs_job_id_attempts get_jobs_job_id_effects get_jobs_job_id_events "
    "get_jobs_job_id_explain get_jobs_job_id_lineage"
)
OPERATE = (
    "post_jobs_job_id_cancel post_jobs_job_id_force_cancel post_jobs_job_id_hold post_jobs_job_id_retry "
    "post_jobs_job_id_revise post_jobs_job_id_unhold"
)
JOB_SEEN = to(OPERATE, job() | TAG)
FIRST = f"{BODY}/leases/0/lease"
ENDINGS = "acknowledge_cancel commit fail release skip stage uncertain wait"
SENT = "$request.body#/lease"
EFFECT = {"effect_id": f"{BODY}/effect/id"}
CASE = {"case_id": f"{BODY}/id"}
VERSION = {"version": f"{BODY}/version"}
CASE_SEEN = [
    *to("post_cases_case_id_take post_cases_case_id_park post_cases_case_id_comment", CASE, VERSION),
    *to("get_cases_case_id post_cases_case_id_inquire", CASE),
    *to(
        "post_cases_case_id_rulings",
        CASE,
        VERSION | {"snapshot": f"{BODY}/snapshot", "verdict": f"{BODY}/offers/0/verdict"},
    ),
    *to(
        "post_cases_case_id_approvals",
        CASE,
        {"snapshot": f"{BODY}/snapshot", "proposal_id": f"{BODY}/proposal/id"},
    ),
    *to("get_jobs_job_id_effects", job("/job_id")),
]
PLAN = {"plan_id": f"{BODY}/id"}
PLAN_SEEN = to(
    "get_bulk_plans_plan_id get_bulk_plans_plan_id_items post_bulk_plans_plan_id_abort "
    "post_bulk_plans_plan_id_execute",
    PLAN,
)
QUEUE = {"name": f"{BODY}/name"}

LINKS: dict[str, list[Follow]] = {
    # A job
    "post_jobs": [
        *to(READ, job()),
        *to(OPERATE, job() | version()),
        *to("post_jobs", {}, {"kind": f"{BODY}/kind", "parent_id": f"{BODY}/id"}),
        *to("post_claims", {}, {"queues": [f"{BODY}/queue"], "kinds": [f"{BODY}/kind"]}),
    ],
    "post_jobs_batch": to(f"{READ} post_jobs_job_id_cancel", job("/results/0/id")),
    "get_jobs": [
        *to(READ, job("/results/0/id")),
        *to(OPERATE, job("/results/0/id") | version("/results/0")),
        *to("post_jobs", {}, {"kind": f"{BODY}/results/0/kind"}),
        *to("post_jobs_batch", {}, {"jobs": [{"kind": f"{BODY}/results/0/kind"}]}),
        *to("post_claims", {}, {"queues": [f"{BODY}/results/0/queue"], "kinds": [f"{BODY}/results/0/kind"]}),
        *to("post_bulk_plans", {}, {"ids": [f"{BODY}/results/0/id"]}),
    ],
    "get_jobs_job_id": [
        *JOB_SEEN,
        *to("get_jobs_job_id", job() | {"If-None-Match": "$response.header.ETag"}),
        *to("post_workers_worker_id_fence", {"worker_id": f"{BODY}/worker_id"}),
    ],
    "post_jobs_job_id_cancel": [
        *to(READ, job()),
        *to("post_jobs_job_id_force_cancel post_jobs_job_id_retry", job() | TAG),
    ],
    "post_jobs_job_id_force_cancel": [*JOB_SEEN, *to(READ, job())],
    "post_jobs_job_id_hold": [*JOB_SEEN, *to(READ, job())],
    "post_jobs_job_id_retry": [*JOB_SEEN, *to(READ, job())],
    "post_jobs_job_id_revise": [*JOB_SEEN, *to(READ, job())],
    "post_jobs_job_id_unhold": [*JOB_SEEN, *to(READ, job())],
    "get_events": to("get_events", {"after": f"{BODY}/next"}),
    # A lease
    "post_claims": [
        *lease_verbs(FIRST, f"{FIRST}/attempt_id", f"{ENDINGS} effects"),
        *to("post_leases_attempt_id_artefacts", {"attempt_id": f"{FIRST}/attempt_id"}),
        *to("post_leases_renew", {}, {"worker": {"id": "$request.body#/worker/id"}, "leases": [FIRST]}),
        *to("post_leases_commit", {}, {"commits": [{"lease": FIRST}]}),
        *to(f"{READ} post_jobs_job_id_cancel", job("/leases/0/lease/job_id")),
        *to("post_workers_worker_id_fence", {"worker_id": f"{FIRST}/worker_id"}),
    ],
    "post_leases_renew": [
        *lease_verbs("$request.body#/leases/0", "$request.body#/leases/0/attempt_id", ENDINGS),
        *to("post_leases_commit", {}, {"commits": [{"lease": "$request.body#/leases/0"}]}),
    ],
    "post_leases_attempt_id_stage": lease_verbs(SENT, f"{SENT}/attempt_id", "commit fail"),
    "post_leases_attempt_id_commit": [
        *lease_verbs(SENT, f"{SENT}/attempt_id", "commit"),
        *to(READ, {"job_id": f"{SENT}/job_id"}),
    ],
    "post_leases_attempt_id_effects": [
        *to("post_effects_effect_id_grant", EFFECT, {"lease": SENT, "version": f"{BODY}/effect/version"}),
        *to("post_effects_effect_id_report", EFFECT, {"lease": SENT, "grant_id": "$request.body#/grant_id"}),
        *to(
            "post_effects_effect_id_inquired",
            EFFECT,
            {"lease": SENT, "version": f"{BODY}/next/version", "asked_at": f"{BODY}/next/asked_at"},
        ),
        *lease_verbs(SENT, f"{SENT}/attempt_id", ENDINGS),
        *to("get_jobs_job_id_effects", job("/effect/job_id")),
    ],
    "post_effects_effect_id_grant": [
        *to("post_effects_effect_id_report", EFFECT, {"lease": SENT, "grant_id": "$request.body#/grant_id"}),
        *lease_verbs(SENT, f"{SENT}/attempt_id", "commit uncertain"),
    ],
    "post_effects_effect_id_report": [
        *lease_verbs(SENT, f"{SENT}/attempt_id", "commit uncertain"),
        *to("get_jobs_job_id_effects", job("/effect/job_id")),
    ],
    "post_effects_effect_id_inquired": lease_verbs(SENT, f"{SENT}/attempt_id", "commit uncertain wait"),
    # A case
    "get_cases": [
        *to("get_cases_case_id post_cases_case_id_inquire", {"case_id": f"{BODY}/results/0/id"}),
        *to(
            "post_cases_case_id_take post_cases_case_id_comment",
            {"case_id": f"{BODY}/results/0/id"},
            {"version": f"{BODY}/results/0/version"},
        ),
    ],
    "get_cases_case_id": CASE_SEEN,
    "post_cases_case_id_take": CASE_SEEN,
    "post_cases_case_id_park": CASE_SEEN,
    "post_cases_case_id_comment": CASE_SEEN,
    "post_cases_case_id_inquire": CASE_SEEN,
    "post_cases_case_id_rulings": CASE_SEEN,
    "post_cases_case_id_approvals": CASE_SEEN,
    # A plan
    "post_bulk_plans": PLAN_SEEN,
    "get_bulk_plans_plan_id": [*PLAN_SEEN, *to("get_jobs_job_id", job("/job_id"))],
    "post_bulk_plans_plan_id_execute": PLAN_SEEN,
    "post_bulk_plans_plan_id_abort": PLAN_SEEN,
    "get_bulk_plans_plan_id_items": to(READ, job("/results/0/job_id")),
    # The cluster
    "get_queues": to("get_queues_name patch_queues_name", {"name": f"{BODY}/results/0/name"}),
    "get_queues_name": to("patch_queues_name", QUEUE),
    "patch_queues_name": [*to("get_queues_name", QUEUE), *to("patch_queues_name", QUEUE, {"paused": False})],
    "get_workers": to("post_workers_worker_id_fence", {"worker_id": f"{BODY}/results/0/id"}),
    "get_epochs": to("post_epochs", {}, {"expected": f"{BODY}/epoch"}),
    "post_epochs": [
        *to("post_epochs", {}, {"claims_open": True}),
        *to("post_epochs_approvals", {}, {"proposal_id": f"{BODY}/asked/id"}),
    ],
}


def add(document: dict[str, Any]) -> None:
    """Write the links into every success of their operations."""
    for methods in document["paths"].values():
        for operation in methods.values():
            links = {name: _told(name, *about) for name, *about in LINKS.get(operation["operationId"], ())}
            for status, answer in operation["responses"].items():
                if links and status.startswith("2"):
                    answer["links"] = links


def _told(operation: str, parameters: Values, body: Values) -> dict[str, Any]:
    told = {"operationId": operation, "parameters": parameters, "requestBody": body}
    return {name: value for name, value in told.items() if value}
