"""The lease as a remote worker presents it, and what the fence answers, as HTTP.

A lease is plain: it proves nothing by itself. Its worker's name ends in the caller it was registered by, and
the fence compares that name with the row; so no token can touch what another one's workers hold.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.fields import Id, Shaped, Strict, Text, Whole, parse_uuid
from jobs.api.problems import Problem
from jobs.api.schema import Schema
from jobs.api.view import View
from jobs.models import Job
from jobs.outcomes import REASONS, Code, Lease, Outcome
from jobs.status import JobStatus

MOST = 500
"""Leases of one request: a longer transaction would keep others from the same rows for too long."""
NAME_CHARACTERS = 150
LARGEST = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9_.:-]+", re.ASCII)
_NAME_OR_NOTHING = re.compile(r"[A-Za-z0-9_.:-]*", re.ASCII)


class Name(Shaped):
    """A name of letters, digits and _.:- only."""

    def __init__(self, *, most: int, least: int = 1, **more: Any) -> None:
        shape = _NAME if least else _NAME_OR_NOTHING
        super().__init__(
            shape, gettext_lazy("Letters, digits and _.:- only."), least=least, most=most, **more
        )


class LeaseBody(Strict):
    """A lease, as its claim gave it."""

    job_id = Id()
    attempt_id = Id()
    claim_generation = Whole(least=0)
    scheduler_epoch = Whole(least=0)
    worker_id = Text(least=1, most=200)
    cancel_generation = Whole(least=0)
    revision = Whole(least=0, most=LARGEST)
    input_digest = Text(least=1, most=64)


class WorkerView(View):
    """A view of claim.v1: for the scope `worker`."""

    scopes: ClassVar[dict[str, str]] = {"POST": "worker"}


LEASE = LeaseBody.described()
OUTCOME: Schema = {
    "type": "object",
    "properties": {
        "code": schema.words(Code),
        "status": schema.words(JobStatus),
        "reason": schema.words(REASONS),
        "result_digest": schema.TEXT,
        "lease_expires_at": schema.INSTANT,
        "cancel_generation": schema.WHOLE,
        "replay": schema.FLAG,
    },
    "required": ["code"],
}
LANDED = {"POST": {200: OUTCOME}}
EACH = {"POST": {200: schema.listing(OUTCOME)}}


# -- whose it is ------------------------------------------------------------------------------------------


def suffix(caller: Caller) -> str:
    """Return what the names of a caller's workers end in."""
    return f"@token-{caller.token.pk}" if caller.token else f"@user-{caller.user.pk}"


def own(caller: Caller, worker_id: str, at: str) -> None:
    """Refuse a worker's name that was registered by another caller."""
    if not worker_id.endswith(suffix(caller)):
        detail = _("This worker was registered by another caller.")
        raise Problem("forbidden", errors=[{"pointer": f"{at}/worker_id", "detail": detail}])


def lease_of(caller: Caller, data: Mapping[str, Any], attempt_id: str, *, with_input: bool = False) -> Lease:
    """Return the lease in a body, which must be of the attempt that the address names."""
    if parse_uuid(attempt_id) != data["attempt_id"]:
        detail = _("This is another attempt than the address names.")
        raise Problem("invalid-body", errors=[{"pointer": "/lease/attempt_id", "detail": detail}])
    return leases_of(caller, [data], at="/lease", with_input=with_input)[0]


def leases_of(
    caller: Caller, bodies: Sequence[Mapping[str, Any]], *, at: str, with_input: bool = False
) -> list[Lease]:
    """Return leases as the verbs take them; what a lease does not say is read from its job.

    `at` is the JSON pointer of a lease, with `{}` for its number. Raises Problem for another caller's.
    """
    for number, body in enumerate(bodies):
        own(caller, body["worker_id"], at.format(number))
    names = [*FROM_JOB, *(["input"] if with_input else [])]
    found = {
        row["id"]: row for row in Job.objects.filter(pk__in={b["job_id"] for b in bodies}).values(*names)
    }
    return [_lease(body, found.get(body["job_id"])) for body in bodies]


FROM_JOB = (
    "id", "kind", "queue", "label", "priority", "lease_seconds", "deadline_at", "attempt_count",
    "attempts_excused", "max_attempts", "created_at", "started_at",
)  # fmt: skip


def _lease(body: Mapping[str, Any], row: dict[str, Any] | None) -> Lease:
    known = dict(row or {})
    known.pop("id", None)
    seconds = known.pop("lease_seconds", 1)  # of a job that is not there, which the fence will say
    return Lease(
        job_id=body["job_id"].hex,
        attempt_id=body["attempt_id"].hex,
        generation=body["claim_generation"],
        worker_id=body["worker_id"],
        epoch=body["scheduler_epoch"],
        lease_expires_at=None,
        ttl_seconds=seconds,
        cancel_generation=body["cancel_generation"],
        revision=body["revision"],
        input_digest=body["input_digest"],
        **known,
    )


def shown(lease: Lease) -> dict[str, Any]:
    """Return a lease as its worker has to present it."""
    return {
        "job_id": uuid.UUID(str(lease.job_id)),
        "attempt_id": uuid.UUID(str(lease.attempt_id)),
        "claim_generation": lease.generation,
        "scheduler_epoch": lease.epoch,
        "worker_id": lease.worker_id,
        "cancel_generation": lease.cancel_generation,
        "revision": lease.revision,
        "input_digest": lease.input_digest,
    }


# -- what the fence answers -------------------------------------------------------------------------------

_PROBLEMS = {Code.FENCED: "fenced", Code.CANCELLED: "cancelled", Code.STALE_INPUT: "stale-input"}


def told(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as one result of many; what says nothing is left out."""
    said: dict[str, Any] = {"code": outcome.code, "status": outcome.status}
    said |= {"reason": outcome.reason or None, "result_digest": outcome.result_digest or None}
    said |= {"lease_expires_at": outcome.lease_expires_at, "cancel_generation": outcome.cancel_generation}
    return {name: value for name, value in said.items() if value is not None} | (
        {"replay": True} if outcome.replay else {}
    )


def landed(outcome: Outcome) -> dict[str, Any]:
    """Return what landed; raises Problem with the reason for what was refused."""
    if outcome.landed:
        return told(outcome)
    said = told(outcome)
    said["job_status"] = said.pop("status", None)
    said.pop("code")
    raise Problem(_PROBLEMS[outcome.code], **said)
