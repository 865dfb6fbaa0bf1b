"""The ready-made groups and what each may do. What is not written here nobody may; no one needs a superuser.

They are laid after each migrate. What an installation added to a group stays; for less, make your own group.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.management import create_permissions

SEE = [
    "view_job",
    "view_attempt",
    "view_effectslot",
    "view_worker",
    "view_queue",
    "view_scheduler",
    "view_fencerefusal",
    "view_change",
    "view_minute",
    "view_case",
    "view_evidence",
    "view_ruling",
    "view_proposal",
    "view_comment",
    "view_auditentry",
    "view_drill",
]
RUN = [
    *SEE,
    *[
        "enqueue_job",
        "retry_job",
        "cancel_job",
        "force_cancel_job",
        "hold_job",
        "revise_job",
        "pause_queue",
        "fence_worker",
        "run_drill",
        "share_view",
    ],
]
DECIDE = [*SEE, "view_payload", "share_view"]

GROUPS: dict[str, list[str]] = {
    "viewer": SEE,
    "operator": RUN,
    "adjudicator": [*DECIDE, "rule_effect"],
    "approver": [*DECIDE, "approve_ruling"],
    # For the account of a remote worker: what it may do comes with its leases.
    "worker": ["run_worker"],
    "admin": [
        *RUN,
        "view_payload",
        "raise_epoch",
        "view_apitoken",
        "manage_token",
        "rule_effect",
        "approve_ruling",
        "run_worker",
    ],
}


def lay(using: str) -> None:
    """Make the groups and give them what they lack; safe to call again."""
    from django.contrib.auth.models import Group, Permission

    # Permissions are made by another receiver of the same signal, which may come after us.
    create_permissions(apps.get_app_config("jobs"), verbosity=0, using=using)
    found = Permission.objects.using(using).filter(content_type__app_label="jobs")
    by_name = {permission.codename: permission for permission in found}
    for name, codenames in GROUPS.items():
        group, _ = Group.objects.using(using).get_or_create(name=name)
        group.permissions.add(*(by_name[codename] for codename in codenames))


def lay_after_migrate(sender: AppConfig, *, using: str, **_more: Any) -> None:
    """Lay the groups, where both the tables of accounts and our own are there."""
    from django.db import connections

    tables = set(connections[using].introspection.table_names())
    if {"auth_group", "auth_permission", "jobs_job"} <= tables:
        lay(using)
