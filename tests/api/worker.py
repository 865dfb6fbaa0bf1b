"""A remote worker as tests need one: it claims over HTTP and presents what it got."""

from __future__ import annotations

import uuid
from typing import Any

from jobs.handlers import Options
from jobs.models import Job
from tests.api.caller import Api, anybody, secret
from tests.build import KIND


class Remote(Api):
    """A client whose token is for workers, and one worker's name."""

    def __init__(self, name: str = "far:1:a", **more: Any) -> None:
        super().__init__(secret("worker", owner=anybody("robot"), **more))
        self.name = name

    def claim(self, *, limit: int = 1, queues: tuple[str, ...] = ("default",), **more: Any) -> Any:
        """Ask for work; returns the whole answer."""
        body = {"worker": {"id": self.name}, "queues": list(queues), "kinds": [KIND], "limit": limit}
        return self.send(body | more, "/claims")

    def take(self, **more: Any) -> dict[str, Any]:
        """Claim one job that must be there."""
        (got,) = self.claim(**more).json()["leases"]
        return dict(got)

    def do(self, lease: dict[str, Any], verb: str, **body: Any) -> Any:
        """Use one lease."""
        return self.send({"lease": lease, **body}, f"/leases/{lease['attempt_id']}/{verb}")

    def effect(self, effect_id: str, verb: str, lease: dict[str, Any], **body: Any) -> Any:
        """Say something about an effect."""
        return self.send({"lease": lease, **body}, f"/effects/{effect_id}/{verb}")


def enqueued(count: int = 1, **options: Any) -> list[uuid.UUID]:
    """Add jobs and return their ids, in claim order."""
    calls = [(KIND, {"n": number}, Options(**options)) for number in range(count)]
    return [answer.job_id for answer in Job.objects.enqueue_many(calls)]


def status(job_id: uuid.UUID) -> str:
    return Job.objects.get(pk=job_id).status
