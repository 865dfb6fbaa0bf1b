"""A real gunicorn before an installation, tokens for it, and remote workers that know only its URL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from interlock_client import Client
from jobs.models import ApiToken
from tests.processes import gunicorn
from tests.processes.installation import Installation, WorkerProcess
from tests.processes.warm import ROOT

PERMISSIONS = ("view_job", "enqueue_job", "cancel_job", "run_worker")
SCOPES = ["jobs:read", "jobs:enqueue", "jobs:cancel", "worker"]


class Web:
    """One web server and what talks to it."""

    def __init__(self, installation: Installation, url: str, media: Path) -> None:
        self.installation = installation
        self.url = url
        self.media = media
        self.workers: list[WorkerProcess] = []

    def token(self, name: str = "ci") -> str:
        """Return the secret of a new token that may do all that is asked for here."""
        alias = self.installation.alias
        user, _new = get_user_model().objects.db_manager(alias).get_or_create(username="robot")
        found = Permission.objects.using(alias).filter(codename__in=PERMISSIONS)
        user.user_permissions.set(found)
        tokens = ApiToken.objects.db_manager(alias)
        return str(tokens.issue(name, user=user, scopes=SCOPES, queues=[])[1])

    def client(self, token: str) -> Client:
        return Client(self.url, token)

    def start_worker(self, token: str, provider: str) -> WorkerProcess:
        """Start the example of a remote worker."""
        log = self.installation.folder / f"remote-{len(self.workers)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "client/examples/worker.py")],
                cwd=ROOT,
                env={
                    "PATH": os.defpath,
                    "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
                    "INTERLOCK_URL": self.url,
                    "INTERLOCK_TOKEN": token,
                    "DEMO_PROVIDER_URL": provider,
                    "MEDIA_ROOT": str(self.media),
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        worker = WorkerProcess(process, log)
        self.workers.append(worker)
        self.installation.workers.append(worker)
        return worker


@contextmanager
def serving(installation: Installation, **settings: str) -> Iterator[Web]:
    """Run gunicorn on a free port for the length of the block."""
    media = installation.folder / "media"
    media.mkdir()
    log = installation.folder / "web.log"
    own = {
        "DATABASE_URL": installation.url,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DEMO": "1",
        "MEDIA_ROOT": str(media),
        "STATIC_HASHED": "0",
    }
    process, root = gunicorn.start("config.wsgi:application", own | settings, log)
    web = WorkerProcess(process, log)
    installation.workers.append(web)
    try:
        yield Web(installation, f"{root}/api/v1", media)
    finally:
        process.terminate()
        web.wait()
