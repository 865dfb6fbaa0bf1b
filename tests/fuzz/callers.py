"""Writes whoever asks in `make fuzz`, and something to ask about; prints a line for each of their headers."""

from __future__ import annotations

import os
import sys

import django

FEW = ["jobs:read", "jobs:enqueue", "worker"]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
    from django.contrib.sessions.backends.db import SessionStore
    from django.utils import timezone

    from jobs import handlers
    from jobs.models import ApiToken, Job
    from tests.build import KIND
    from tests.fuzz import site  # noqa: F401  # makes KIND known
    from tests.operations import scene

    root = get_user_model().objects.create_superuser("root", last_login=timezone.now())
    session = SessionStore()
    session[SESSION_KEY] = str(root.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = root.get_session_auth_hash()
    session.create()
    for queue in ("default", "mail"):
        options = handlers.Options(queue=queue)
        Job.objects.enqueue_many([(KIND, {"n": n, "hidden": "x"}, options) for n in range(50)])
    for _n in range(5):
        for matter in (scene.unknown, scene.conflict, scene.approval):
            matter()
    every = ApiToken.objects.issue("every", user=root, scopes=list(ApiToken.SCOPES), queues=[])[1]
    few = ApiToken.objects.issue("few", user=root, scopes=FEW, queues=["mail"])[1]
    lines = [
        f"every scope\tAuthorization: Bearer {every}",
        f"few scopes\tAuthorization: Bearer {few}",
        f"session\tCookie: sessionid={session.session_key}; csrftoken={'c' * 32}",
        f"session\tX-CSRFToken: {'c' * 32}",
        "nobody\t",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
