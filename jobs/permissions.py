"""Scopes of tokens, and the Django permission that stands behind each."""

from __future__ import annotations

NEEDS: dict[str, str] = {
    "jobs:read": "jobs.view_job",
    "jobs:enqueue": "jobs.enqueue_job",
    "jobs:cancel": "jobs.cancel_job",
    "worker": "jobs.run_worker",
    # What is done with these asks for a permission of its own besides (jobs/operations/actor.py).
    "cases:act": "jobs.view_case",
    "ops": "jobs.view_job",
}
BY_ACTION = {"retry": "ops", "cancel": "jobs:cancel", "hold": "ops", "unhold": "ops"}
"""The scope that a mass action takes."""
