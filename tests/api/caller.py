"""Callers of the API as tests need them: people with permissions, tokens with scopes, and what they send."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from jobs.models import ApiToken

ROOT = "/api/v1"
EVERY_PERMISSION = ("view_job", "enqueue_job", "cancel_job")
EVERY_SCOPE = ("jobs:read", "jobs:enqueue", "jobs:cancel")


def person(name: str, *permissions: str) -> Any:
    """Return a user who has these permissions of jobs and no others."""
    user, _new = get_user_model().objects.get_or_create(username=name)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="jobs", codename__in=permissions)
    )
    return user


def secret(*scopes: str, queues: tuple[str, ...] = (), owner: Any = None, **more: Any) -> str:
    """Return the secret of a new token; its owner may do everything unless one is given."""
    owner = owner or person("owner", *EVERY_PERMISSION)
    return ApiToken.objects.issue("ci", user=owner, scopes=list(scopes), queues=list(queues), **more)[1]


class Api(Client):
    """A client of the API that sends one token with every request."""

    def __init__(self, token: str) -> None:
        super().__init__(headers={"authorization": f"Bearer {token}"})

    def send(self, body: Any, path: str = "/jobs", **more: Any) -> Any:
        """POST a value as JSON, or bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.post(ROOT + path, raw, content_type="application/json", **more)

    def look(self, path: str, **more: Any) -> Any:
        """GET."""
        return self.get(ROOT + path, **more)
