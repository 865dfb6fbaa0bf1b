"""What may come in: arguments, results and failures are checked here, before anything is written.

A refusal names the field and the limit (contract §1, Limits). Nothing is half-done.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from uuid_utils import uuid7

from jobs import canon, errors, handlers, redact, search, traceparent
from jobs.handlers import LEAST_PRIORITY, MOST_PRIORITY, Handler, Options
from jobs.outcomes import Ending, InvalidJob, Lease
from jobs.retry import Backoff
from jobs.status import JobStatus

LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Beyond this an instant overflows in one time zone or another."""
MOST_ATTEMPTS = 10_000
LONGEST_DELAY = 10 * 365 * 86400.0


def rows(
    calls: Sequence[tuple[str, Mapping[str, Any], Options | None]],
    unique_keys: Sequence[str | None] | None = None,
) -> list[dict[str, Any]]:
    """Return new jobs as row lists carry them, in order; raises InvalidJob naming a bad field and its limit.

    What calls with the very same kind and options have in common is judged once. A key that is not None
    stands for the one of the options.
    """
    limits = settings.INTERLOCK
    depth, most = limits["DEPTH"], limits["ARGUMENT_BYTES"]
    found: list[dict[str, Any]] = []
    common: dict[tuple[int, int], tuple[Handler | None, str | None, dict[str, Any]]] = {}
    keys = unique_keys or repeat(None, len(calls))
    for (kind, arguments_, options), unique_key in zip(calls, keys, strict=True):
        same = (id(kind), id(options))  # of objects that `calls` holds on to
        if same not in common:
            common[same] = _shared(kind, options or Options())
        handler, label, shared = common[same]
        text, digest = _arguments(handler, arguments_, depth, most)
        if label is None and handler is not None:
            label = handler.label_of(arguments_)
        made = {
            **shared,
            "id": uuid7().hex,
            "label": "" if label == "" else _text("label", label, 200) or "",
            "input": text,
            "input_digest": digest,
        }
        if handler is not None and handler.search:
            made["attributes"] = search.read(handler.search, arguments_)
        if unique_key is not None:
            made["unique_key"] = _key("unique_key", unique_key)
        found.append(made)
    return found


def _shared(kind: str, given: Options) -> tuple[Handler | None, str | None, dict[str, Any]]:
    """Return a kind's handler, the label unless the arguments make it, and what does not hang on them."""
    if not isinstance(kind, str) or not handlers.NAME.fullmatch(kind):
        raise InvalidJob("kind", _("letters, digits and ._:- only, 1 to %(most)s of them") % {"most": 120})
    handler = handlers.find(kind)
    name = given.queue or (handler.queue if handler else handlers.DEFAULT_QUEUE)
    priority = given.priority if given.priority is not None else handler.priority if handler else 0
    if type(priority) is not int or not LEAST_PRIORITY <= priority <= MOST_PRIORITY:
        raise InvalidJob("priority", _whole(LEAST_PRIORITY, MOST_PRIORITY))
    attempts = (
        given.max_attempts if given.max_attempts is not None else handler.max_attempts if handler else 20
    )
    if type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS:
        raise InvalidJob("max_attempts", _whole(1, MOST_ATTEMPTS))
    if given.unique_scope not in ("unfinished", "ever"):
        raise InvalidJob("unique_scope", _("unfinished or ever"))
    return (
        handler,
        given.label if given.label is not None or (handler and handler.label) else "",
        {
            "kind": handler.name if handler else kind,
            "queue": queue(name),
            "priority": priority,
            "unique_key": _key("unique_key", given.unique_key),
            "unique_scope": given.unique_scope,
            "concurrency_key": _key("concurrency_key", given.concurrency_key),
            "parent_id": _id("parent_id", given.parent_id),
            "enqueued_by": _text("enqueued_by", given.enqueued_by, 150) or "",
            "traceparent": _trace(given.traceparent),
            "delay": _seconds("delay", given.delay),
            "due_at": instant("due_at", given.due_at),
            "deadline": _seconds("deadline", given.deadline),
            "deadline_at": instant("deadline_at", given.deadline_at),
            "lease_seconds": (handler.lease if handler else None) or settings.INTERLOCK["LEASE_SECONDS"],
            "max_attempts": attempts,
            "tags": " ".join(_tags(handler, given)),
        },
    )


def _tags(handler: Handler | None, given: Options) -> tuple[str, ...]:
    """Return the kind's tags and those of the call."""
    own = search.tags(given.tags) if given.tags != () else ()
    return search.tags([*handler.tags, *own]) if handler and handler.tags else own


def arguments(kind: str, value: Mapping[str, Any]) -> tuple[str, str]:
    """Return canonical text and digest of a job's arguments; raises InvalidJob.

    Where this process knows the kind they must fit its signature; elsewhere only a worker can tell.
    """
    limits = settings.INTERLOCK
    return _arguments(handlers.find(kind), value, limits["DEPTH"], limits["ARGUMENT_BYTES"])


def _arguments(handler: Handler | None, value: Mapping[str, Any], depth: int, limit: int) -> tuple[str, str]:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidJob("arguments", _("an object of named arguments"))
    if handler is not None and not handler.takes(value.keys()):
        handler.bind(**{str(k): v for k, v in value.items()})
    try:
        text = canon.canonical(value if type(value) is dict else dict(value), depth=depth, limit=limit)
    except canon.NotCanonical as error:
        raise InvalidJob(f"arguments{error.path}", error.problem) from None
    return text, canon.digest(text)


_NULL = ("null", canon.digest("null"))


def result(value: Any) -> tuple[str, str]:
    """Return canonical text and digest of a result; raises NotCanonical with the path."""
    if value is None:
        return _NULL
    text = canon.canonical(value, depth=settings.INTERLOCK["DEPTH"], limit=settings.INTERLOCK["RESULT_BYTES"])
    return text, canon.digest(text)


def failure(
    lease: Lease,
    error_code: str,
    message: str,
    *,
    retry_after: float | None = None,
    traceback: str = "",
    log: str | None = None,
) -> Ending:
    """Return the ending of a failed attempt, its texts bounded and cleaned of the input's secrets.

    Without `retry_after` the code's registry entry says whether to try again, and the kind's back-off when.
    """
    handler = handlers.find(lease.kind)
    hidden = secrets_of(lease)
    if retry_after is None and errors.is_retryable(error_code):
        retry_after = (handler.backoff if handler else Backoff()).delay(lease.attempts_used)
    ending = Ending.fail(
        lease,
        error_code[:80],
        words(lease, message),
        retry_after=None if retry_after is None else min(max(0.0, retry_after), LONGEST_DELAY),
        traceback=redact.clean(traceback, limit=settings.INTERLOCK["TRACEBACK_BYTES"], secrets=hidden),
        log=log,
    )
    entry = errors.lookup(error_code)
    if retry_after is None and entry is not None and entry.family is errors.Family.CANCEL:
        # Whatever the work belonged to was cancelled: nothing is wrong with the job (contract §7).
        return replace(ending, wish=JobStatus.CANCELLED)
    return ending


def words(lease: Lease, text: str) -> str:
    """Return a message as it may be kept and shown: bounded, printable, without the input's secrets."""
    return redact.clean(text, limit=settings.INTERLOCK["ERROR_BYTES"], secrets=secrets_of(lease))


def secrets_of(lease: Lease) -> set[str]:
    """Return the texts of a job's input that no error or log line may show."""
    return handlers.secrets_of(lease.kind, lease.input)


def longest_wait(kind: str) -> float:
    """Return how long jobs of a kind may wait in all, in seconds."""
    handler = handlers.find(kind)
    return handler.max_wait_total if handler else 7 * 86400.0


def _text(field: str, value: str | None, limit: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidJob(field, _("text"))
    if len(value) > limit:
        raise InvalidJob(
            field, _("at most %(most)s characters, not %(n)s") % {"most": limit, "n": len(value)}
        )
    if "\0" in value or not _encodes(value):
        raise InvalidJob(field, _("no U+0000 and no lone surrogates"))
    return value


def _trace(value: str) -> str:
    if value and (not isinstance(value, str) or traceparent.parse(value) != value):
        raise InvalidJob("traceparent", _("as the W3C writes it: 00-, 32, 16 and 2 hex digits"))
    return value


def _id(field: str, value: uuid.UUID | str | None) -> str | None:
    """Return an id as rows carry it, whichever of its forms it is given in."""
    if value is None:
        return None
    try:
        return (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).hex
    except (ValueError, TypeError, AttributeError):
        raise InvalidJob(field, _("the id of a job")) from None


def _key(field: str, value: str | None) -> str | None:
    if value == "":
        # Whoever builds a key out of nothing would make one job of all his jobs.
        raise InvalidJob(field, _("at least 1 character, or none at all (None)"))
    return _text(field, value, settings.INTERLOCK["KEY_CHARACTERS"])


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(least: int, most: int) -> str:
    return _("a whole number from %(least)s to %(most)s") % {"least": least, "most": most}


def _seconds(field: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_DELAY:
        raise InvalidJob(field, _("seconds, from 0 to ten years"))
    return float(value)


def queue(name: Any) -> str:
    """Return the name of a queue, or raise InvalidJob."""
    if not isinstance(name, str) or not handlers.QUEUE.fullmatch(name):
        raise InvalidJob("queue", _("letters, digits and ._:- only, 1 to %(most)s of them") % {"most": 100})
    return name


def instant(field: str, value: datetime | None) -> datetime | None:
    """Return an instant in UTC, or raise InvalidJob naming `field`: no time zone, no instant."""
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidJob(field, _("an instant with its time zone"))
    try:
        moment = value.astimezone(UTC)
    except OverflowError:
        raise InvalidJob(field, _("an instant before the year 9000")) from None
    if not datetime(1970, 1, 1, tzinfo=UTC) <= moment <= LATEST:
        raise InvalidJob(field, _("an instant from 1970 to before the year 9000"))
    return moment
