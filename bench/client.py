"""The product's side of a measure: what an application does that enqueues (see verbs.py)."""

import os
import time

import django
from django.core.management import call_command
from django.db import connection

from bench.verbs import BULK, numbers_with_pauses, obey


def prepare() -> None:
    call_command("migrate", verbosity=0)


def enqueue(count: int) -> float:
    from bench.kinds import noop

    connection.ensure_connection()
    began = time.monotonic()
    for number in range(count):
        noop.enqueue(seq=number)
    return time.monotonic() - began


def bulk(count: int) -> float:
    from bench.kinds import noop

    connection.ensure_connection()
    began = time.monotonic()
    for start in range(0, count, BULK):
        noop.enqueue_many({"seq": number} for number in range(start, min(count, start + BULK)))
    return time.monotonic() - began


def pickup(count: int) -> list[tuple[int, float]]:
    from bench.kinds import pickup as kind

    connection.ensure_connection()
    returned = []
    for number in numbers_with_pauses(count):
        kind.enqueue(seq=number)
        returned.append((number, time.monotonic()))
    return returned


def token() -> str:
    """Return the secret of a token for remote workers."""
    from django.contrib.auth import get_user_model

    from jobs.models import ApiToken

    user = get_user_model().objects.create_superuser("bench")
    return ApiToken.objects.issue("bench", user=user, scopes=["worker", "jobs:read"], queues=[])[1]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.settings")
    django.setup()
    obey({"prepare": prepare, "enqueue": enqueue, "bulk": bulk, "pickup": pickup, "token": token})
