"""The roles, and what many tests here start from."""

from __future__ import annotations

import uuid
from typing import Any

from django.test import Client

from jobs.operations import proof
from tests import build

ROLES = ("viewer", "operator", "adjudicator", "approver", "admin")


def jobs(count: int, **options: Any) -> list[uuid.UUID]:
    """Enqueue so many jobs, one a second; returns their ids, oldest first."""
    return [build.enqueue(now=build.at(n), **options) for n in range(count)]


def log_in(client: Client, user: Any) -> None:
    """Log in as the log-in page does: the session keeps when."""
    client.force_login(user)
    session = client.session
    proof.note(session)
    session.save()
