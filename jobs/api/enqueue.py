"""Enqueue over HTTP: what the body may say, whose key it is, and what a second request with it gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework import serializers

from jobs import admission, explain, handlers
from jobs.api.auth import Caller
from jobs.api.fields import Choice, Id, Instant, Object, Seconds, Strict, Text, Whole
from jobs.api.problems import Problem, refused
from jobs.api.strictjson import pointer
from jobs.handlers import Options
from jobs.models import Job, Worker
from jobs.outcomes import KeyConflict

RESERVED = "idempotency:"
"""Keys made of an Idempotency-Key begin so; a body may not name one, or it could take another caller's."""
SILENT_AFTER = timedelta(seconds=90)
DIFFERENCES = 50


class EnqueueBody(Strict):
    """The body of POST /jobs."""

    kind = Text()
    arguments = Object(required=False)
    queue = Text(required=False)
    priority = Whole(required=False)
    delay = Seconds(required=False)
    due_at = Instant(required=False)
    deadline = Seconds(required=False)
    deadline_at = Instant(required=False)
    unique_key = Text(required=False)
    unique_scope = Choice(["unfinished", "ever"], required=False)
    label = Text(required=False)  # type: ignore[assignment]  # a field of ours that is named as one of its own
    parent_id = Id(required=False)
    max_attempts = Whole(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        errors = {
            one: [_("Give either %(one)s or %(other)s.") % {"one": one, "other": other}]
            for one, other in (("delay", "due_at"), ("deadline", "deadline_at"))
            if one in attrs and other in attrs
        }
        errors |= {name: [_("has no characters")] for name in ("kind", "queue") if attrs.get(name) == ""}
        key = attrs.get("unique_key")
        if key is not None and (not key or key.startswith(RESERVED)):
            errors["unique_key"] = [
                _("A key has at least one character and does not begin with %s") % RESERVED
            ]
        if key is None and "unique_scope" in attrs:
            errors["unique_scope"] = [_("A scope needs a unique_key.")]
        if errors:
            raise serializers.ValidationError(errors)
        return attrs


def enqueue(caller: Caller, data: Any, header: str | None) -> tuple[Job, bool]:
    """Add the job that `data` describes, or find the one of its key; returns it and whether it is new.

    Raises Problem naming every field that is wrong, `forbidden` for a queue that the token may not use, and
    `key-conflict` with the holder's id and the paths in which its input differs.
    """
    body = EnqueueBody(data=data)
    body.is_valid(raise_exception=True)
    given = dict(body.validated_data)
    kind, arguments = given.pop("kind"), given.pop("arguments", {})
    options = Options(**(given | _key(caller, header, given)), enqueued_by=caller.actor)
    row = admission.row(kind, arguments, options)
    if not caller.may_use(row["queue"]):
        raise Problem("forbidden", _("The token is not for the queue %s.") % row["queue"])
    if not is_known(row["kind"]):
        raise _field("kind", _("no handler and no live worker of this installation knows %s") % row["kind"])
    if options.parent_id and not caller.jobs().filter(pk=options.parent_id).exists():
        raise _field("parent_id", _("there is no job %s") % options.parent_id)
    try:
        answer = Job.objects.enqueue(kind, arguments, options=options)
    except KeyConflict as conflict:
        raise _conflict(caller, conflict, row["kind"], arguments) from None
    job = caller.jobs().filter(pk=answer.job_id).first()
    if job is None:  # the same key and input, in a queue that this token may not know of
        raise Problem("key-conflict")
    return job, answer.created


def is_known(kind: str) -> bool:
    """Return whether this process or a worker that is alive can run `kind`."""
    if handlers.find(kind) is not None:
        return True
    beating = Worker.objects.filter(beat_at__gt=explain.clock() - SILENT_AFTER, stopped_at=None)
    return any(kind in kinds for kinds in beating.values_list("kinds", flat=True))


def _key(caller: Caller, header: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the unique key that an Idempotency-Key stands for, unless the body names the same one itself."""
    if header is None:
        return {}
    if not (header.isascii() and header.isprintable() and header.strip() == header and header):
        raise _header(_("visible ASCII characters are needed"))
    if "unique_key" in given:
        if given["unique_key"] != header:
            raise _header(_("the body's unique_key is another one"))
        return {}
    key = caller.namespace + header
    most = settings.INTERLOCK["KEY_CHARACTERS"] - len(caller.namespace)
    if len(header) > most:
        raise _header(_("at most %(most)s characters are taken") % {"most": most})
    return {"unique_key": key, "unique_scope": "ever"}


def _conflict(caller: Caller, conflict: KeyConflict, kind: str, arguments: Any) -> Problem:
    held = caller.jobs().filter(pk=conflict.job_id).first()
    if held is None:
        return Problem("key-conflict")
    paths = [] if held.kind == kind else ["/kind"]
    differing(held.arguments, arguments, "/arguments", paths)
    problem = refused(conflict)
    problem.more = {"job_id": held.id, "job_status": held.status, "differing": paths[:DIFFERENCES]}
    return problem


def differing(one: Any, other: Any, at: str, found: list[str]) -> None:
    """Collect the JSON pointers at which two values differ, values themselves left out."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key in one and key in other:
                differing(one[key], other[key], pointer(at, key), found)
            else:
                found.append(pointer(at, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            differing(left, right, pointer(at, index), found)
    elif one != other or (type(one) is not type(other) and not (_is_number(one) and _is_number(other))):
        found.append(at)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _field(name: str, detail: str) -> Problem:
    return Problem("invalid-body", errors=[{"pointer": f"/{name}", "detail": detail}])


def _header(detail: str) -> Problem:
    return Problem("invalid-header", errors=[{"header": "Idempotency-Key", "detail": detail}])
