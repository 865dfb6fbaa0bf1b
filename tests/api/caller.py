"""Callers of the API as tests need them: people with permissions, tokens with scopes, and what they send."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from jobs.models import ApiToken
from tests.api import described

ROOT = "/api/v1"
EVERY_PERMISSION = ("view_job", "enqueue_job", "cancel_job")
EVERY_SCOPE = ("jobs:read", "jobs:enqueue", "jobs:cancel")
OPERATOR = (
    *EVERY_PERMISSION,
    *(
        "force_cancel_job",
        "retry_job",
        "revise_job",
        "hold_job",
        "pause_queue",
        "raise_epoch",
        "fence_worker",
    ),
    *("view_case", "rule_effect", "approve_ruling", "run_worker"),
)


def person(name: str, *permissions: str) -> Any:
    """Return a user who has these permissions of jobs and no others."""
    user, _new = get_user_model().objects.get_or_create(username=name)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="jobs", codename__in=permissions)
    )
    return user


def anybody(name: str) -> Any:
    """Return a user who may do everything: written in one statement, where a permission each takes seven."""
    return get_user_model().objects.get_or_create(username=name, defaults={"is_superuser": True})[0]


def secret(*scopes: str, queues: tuple[str, ...] = (), owner: Any = None, **more: Any) -> str:
    """Return the secret of a new token; its owner may do everything unless one is given."""
    owner = owner or anybody("owner")
    return ApiToken.objects.issue("ci", user=owner, scopes=list(scopes), queues=list(queues), **more)[1]


def operator(name: str = "operator", *permissions: str) -> Any:
    """Return a person who may do everything, or has these permissions, and has just logged in."""
    found = person(name, *permissions) if permissions else anybody(name)
    get_user_model().objects.filter(pk=found.pk).update(last_login=timezone.now())
    return found


class Api(Client):
    """A client of the API that sends one token with every request, and takes described answers only."""

    def __init__(self, token: str) -> None:
        super().__init__(headers={"authorization": f"Bearer {token}"})

    def request(self, **request: Any) -> Any:
        answer = super().request(**request)
        asked = request["REQUEST_METHOD"], request["PATH_INFO"]
        assert not (wrong := described.violation(*asked, answer)), (*asked, wrong)
        return answer

    def send(self, body: Any, path: str = "/jobs", **more: Any) -> Any:
        """POST a value as JSON, or bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.post(ROOT + path, raw, content_type="application/json", **more)

    def act(self, address: str, body: Any, tag: Any = None, **more: Any) -> Any:
        """POST to what is about one thing; `tag` is the version that was seen of it."""
        headers = {} if tag is None else {"HTTP_IF_MATCH": tag if isinstance(tag, str) else f'"{tag}"'}
        return self.send(body, address, **headers, **more)

    def look(self, path: str, **more: Any) -> Any:
        """GET."""
        return self.get(ROOT + path, **more)
