"""The product's side of a measure: what an application does that enqueues (see verbs.py)."""

import os
import signal
import threading
import time

import django
from django.core.management import call_command
from django.db import OperationalError, connection

from bench.procs import state_of
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


def requests(count: int) -> float:
    from bench.requests import one_by_one

    return one_by_one(count)


def batches(count: int) -> float:
    from bench.requests import batches as send

    return send(count)


def pickup(count: int) -> list[tuple[int, float]]:
    from bench.kinds import pickup as kind

    connection.ensure_connection()
    returned = []
    for number in numbers_with_pauses(count):
        kind.enqueue(seq=number)
        returned.append((number, time.monotonic()))
    return returned


def write(threads: int) -> None:
    """Claim and commit one job after the other in each of `threads` threads, until the process is ended.

    Told so by SIGUSR1, it stands still at the next commit, before its transaction ends.
    """
    from jobs import failpoints

    signal.signal(signal.SIGUSR1, lambda *_: failpoints.arm("commit.sent=stop"))
    ours = [
        threading.Thread(target=_write, args=(f"{os.getpid()}:{n}",), daemon=True) for n in range(threads)
    ]
    for thread in ours:
        thread.start()
    for thread in ours:
        thread.join()


def _write(name: str) -> None:
    from bench.kinds import noop
    from jobs.handlers import Options
    from jobs.models import Job

    verbs, epoch = Job.objects, 0
    while True:
        leases = verbs.claim(worker_id=name, queues=[name], kinds=[noop.name], epoch=epoch)
        if leases:
            verbs.commit(leases[0], None)
        elif (now := verbs.runtime.current_epoch()) != epoch:
            epoch = now
        else:
            verbs.enqueue_many([(noop.name, {"seq": 0}, Options(queue=name))] * REFILL)


def raises(count: int) -> list[float]:
    """Raise the epoch again and again and return how long each raise took, in seconds."""
    connection.ensure_connection()
    return [_raise() for _ in numbers_with_pauses(count)]


def raise_beside(writer: int) -> float:
    """Have a writer stand still in its transaction, raise the epoch at once and return how long that took."""
    connection.ensure_connection()
    os.kill(writer, signal.SIGUSR1)
    while state_of(writer) != "T":
        time.sleep(0.001)
    return _raise()


def _raise() -> float:
    """Raise the epoch, again where somebody holds it up for longer than a raise waits."""
    from jobs.models import Job

    verbs = Job.objects
    epoch, began = verbs.runtime.current_epoch(), time.monotonic()
    while True:
        try:
            verbs.raise_epoch(expected=epoch, actor="bench", reason="measured")
        except OperationalError:
            continue
        return time.monotonic() - began


def token() -> str:
    """Return the secret of a token for remote workers and for those who enqueue."""
    from django.contrib.auth import get_user_model

    from jobs.models import ApiToken

    user = get_user_model().objects.create_superuser("bench")
    return ApiToken.objects.issue(
        "bench", user=user, scopes=["worker", "jobs:read", "jobs:enqueue"], queues=[]
    )[1]


REFILL = 500

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.settings")
    django.setup()
    obey(
        {
            "prepare": prepare,
            "enqueue": enqueue,
            "bulk": bulk,
            "requests": requests,
            "batches": batches,
            "pickup": pickup,
            "write": write,
            "raises": raises,
            "raise_beside": raise_beside,
            "token": token,
        }
    )
