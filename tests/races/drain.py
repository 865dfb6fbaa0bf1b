"""A worker process of the plainest kind, for tests: claims until nothing is left, and says what it got.

Run by test_processes.py as `python -m tests.races.drain QUEUE`; after "ready" each line it prints is one
claim.
It waits for a line of its own before the first claim and before the second, so that no process can have
drained the queue before the last has begun.
"""

from __future__ import annotations

import os
import sys
import uuid


def main(queue: str) -> None:
    """Claim and commit one job after the other until the queue gives none."""
    import django

    django.setup()
    from django.db import connection

    from jobs.models import Job
    from tests.build import KIND

    connection.ensure_connection()
    print("ready", flush=True)
    sys.stdin.readline()  # all start together
    going_on = False
    worker = f"host:{os.getpid()}:{uuid.uuid4().hex}"
    while leases := Job.objects.claim(worker_id=worker, queues=[queue], kinds=[KIND]):
        for lease in leases:
            outcome = Job.objects.commit(lease, {"pid": os.getpid()})
            print(lease.job_id, lease.generation, outcome.code, flush=True)
        if not going_on:
            going_on = True
            sys.stdin.readline()  # all have had one before any has a second


if __name__ == "__main__":
    main(sys.argv[1])
