"""Enqueue over HTTP: what the body may say, whose key it is, and what a second request with it gets."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _
from rest_framework import serializers

from jobs import handlers, search
from jobs.admission import MOST_ATTEMPTS
from jobs.api.auth import Caller
from jobs.api.fields import Choice, Id, Instant, Object, Seconds, Several, Strict, Text, Whole
from jobs.api.problems import Problem, refused
from jobs.api.shape import RECEIPT
from jobs.api.strictjson import pointer
from jobs.handlers import LEAST_PRIORITY, MOST_PRIORITY, Options
from jobs.ledger.clock import clock
from jobs.models import Job, Worker
from jobs.outcomes import KeyConflict

RESERVED = "idempotency:"
"""Keys made of an Idempotency-Key begin so; a body may not name one, or it could take another caller's."""
SILENT_AFTER = timedelta(seconds=90)
DIFFERENCES = 50


class Tags(Several):
    """Texts; a tuple of them, because a batch looks up by what they hold which options are alike."""

    def __init__(self) -> None:
        super().__init__(Text(most=search.LONGEST_TAG), most=search.MOST_TAGS, least=0, required=False)

    def to_internal_value(self, data: Any) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(super().to_internal_value(data))


class EnqueueBody(Strict):
    """The body of POST /jobs."""

    kind = Text()
    arguments = Object(required=False)
    queue = Text(required=False)
    priority = Whole(least=LEAST_PRIORITY, most=MOST_PRIORITY, required=False)
    delay = Seconds(required=False)
    due_at = Instant(required=False)
    deadline = Seconds(required=False)
    deadline_at = Instant(required=False)
    unique_key = Text(required=False)
    unique_scope = Choice(["unfinished", "ever"], required=False)
    label = Text(required=False)  # type: ignore[assignment]  # a field of ours that is named as one of its own
    tags = Tags()
    parent_id = Id(required=False)
    max_attempts = Whole(least=1, most=MOST_ATTEMPTS, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        errors = {}
        for one, other in (("delay", "due_at"), ("deadline", "deadline_at")):
            if one in attrs and other in attrs:
                errors[one] = [_("Give either %(one)s or %(other)s.") % {"one": one, "other": other}]
        for name in ("kind", "queue"):
            if attrs.get(name) == "":
                errors[name] = [_("has no characters")]
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


class Wish(NamedTuple):
    """One job that a caller wants, judged as far as it can be without looking at the table of jobs."""

    kind: str
    arguments: dict[str, Any]
    options: Options
    unique_key: str | None = None
    """Where the options, which many wishes may share, do not hold it."""

    @classmethod
    def of(
        cls,
        caller: Caller,
        given: dict[str, Any],
        told: dict[str, Any],
        known: Known,
        key: str | None = None,
    ) -> Wish:
        """Judge a checked body; raises Problem or InvalidJob naming what is wrong.

        `told` are the options that the request's headers stand for; `key` is the unique key where neither
        they nor the body hold it.
        """
        more = dict(given)
        kind, arguments = more.pop("kind"), more.pop("arguments", {})
        options = Options(**(more | told), enqueued_by=caller.actor)
        handler = handlers.find(kind)
        queue = options.queue or (handler.queue if handler else handlers.DEFAULT_QUEUE)
        if not caller.may_use(queue):
            raise Problem("forbidden", _("The token is not for the queue %s.") % queue)
        if not known(kind, options.unique_key or key):
            raise field_problem(
                "kind", _("no handler and no live worker of this installation knows %s") % kind
            )
        if options.parent_id and not caller.jobs().filter(pk=options.parent_id).exists():
            raise field_problem("parent_id", _("there is no job %s") % options.parent_id)
        return cls(handler.name if handler else kind, arguments, options)


def enqueue(caller: Caller, given: dict[str, Any], header: str | None, trace: str) -> tuple[Job, bool]:
    """Add the job that a checked body describes, or find its key's; returns it and whether it is new.

    Raises Problem naming every field that is wrong, `forbidden` for a queue that the token may not use, and
    `key-conflict` with the holder's id and the paths in which its input differs.
    """
    wish = Wish.of(caller, given, key_of(caller, header, given) | {"traceparent": trace}, Known())
    try:
        answer = Job.objects.enqueue(wish.kind, wish.arguments, options=wish.options)
    except KeyConflict as conflict:
        raise _conflict(caller, conflict, wish) from None
    try:
        # Compiling a statement of all columns takes Django a tenth of the request.
        return caller.jobs().only(*RECEIPT).get(pk=answer.job_id), answer.created
    except Job.DoesNotExist:  # the same key and input, in a queue that this token may not know of
        raise Problem("key-conflict") from None


class Known:
    """The kinds that this process or a worker that is alive can run; the workers are looked up once."""

    def __call__(self, kind: str, key: str | None = None) -> bool:
        """Return whether a kind is known, or was when the job that holds `key` was added.

        Who sends a request again must hear of that job, and not that nothing was started.
        """
        if not handlers.NAME.fullmatch(kind):
            return True  # its form is refused where every caller's is
        if handlers.find(kind) is not None or kind in self._of_workers:
            return True
        holds = Q(unique_scope="ever") | Q(finished_at=None)
        return key is not None and Job.objects.filter(holds, unique_key=key, kind=kind).exists()

    @cached_property
    def _of_workers(self) -> set[str]:
        beating = Worker.objects.filter(beat_at__gt=clock() - SILENT_AFTER, stopped_at=None)
        return {kind for kinds in beating.values_list("kinds", flat=True) for kind in kinds}


def key_of(caller: Caller, header: str | None, given: dict[str, Any]) -> dict[str, Any]:
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


def _conflict(caller: Caller, conflict: KeyConflict, wish: Wish) -> Problem:
    problem = refused(conflict)
    problem.more = conflict_of(caller, conflict, wish)
    return problem if problem.more else Problem("key-conflict")


def conflict_of(caller: Caller, conflict: KeyConflict, wish: Wish) -> dict[str, Any]:
    """Return who holds the key and where its input differs; nothing where the caller may not know of it."""
    held = caller.jobs().filter(pk=conflict.job_id).first()
    if held is None:
        return {}
    paths = [] if held.kind == wish.kind else ["/kind"]
    differing(held.arguments, wish.arguments, "/arguments", paths)
    return {"job_id": held.id, "job_status": held.status, "differing": paths[:DIFFERENCES]}


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


def field_problem(name: str, detail: str) -> Problem:
    return Problem("invalid-body", errors=[{"pointer": f"/{name}", "detail": detail}])


def _header(detail: str) -> Problem:
    return Problem("invalid-header", errors=[{"header": "Idempotency-Key", "detail": detail}])
