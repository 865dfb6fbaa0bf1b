"""People of every role, a browser for each, and a job that has been through something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from jobs.models import Job
from tests import build
from tests.console.people import ROLES, log_in


@pytest.fixture
def browse(db: None, django_user_model: Any) -> Callable[[str], Client]:
    """Return a client of a role: one of ROLES, `nobody` (staff without a group), `outsider`, `anonymous`."""

    def of(role: str) -> Client:
        client = Client()
        if role == "anonymous":
            return client
        user, _ = django_user_model.objects.get_or_create(username=f"{role}-1")
        user.is_staff = role != "outsider"
        user.save()
        if role in ROLES:
            user.groups.set([Group.objects.get(name=role)])
        log_in(client, user)
        return client

    return of


@pytest.fixture
def viewer(browse: Callable[[str], Client]) -> Client:
    """A person who may look at everything and do nothing."""
    return browse("viewer")


@pytest.fixture
def job(db: None) -> Job:
    """A job with an ended attempt, an open effect, a refused write and a person's request."""
    lease = build.running(label="a label", unique_key="a-key")
    assert Job.objects.uncertain(lease, "no answer came", now=build.at(1)).landed
    assert not Job.objects.commit(lease, {"late": True}, now=build.at(2)).landed
    Job.objects.cancel(build.id_of(lease), actor="someone", reason="not needed", now=build.at(3))
    found: Job = Job.objects.get(pk=build.id_of(lease))
    return found
