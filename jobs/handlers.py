"""Kinds of work: what `@job` declares, and how a call becomes a row.

    @job("documents.convert", queue="documents", lease=60, max_attempts=3, label="{source}")
    def convert(ctx, source, to="html"): ...

    convert.enqueue("letters/offer.md", to="text")

The decorated function stays callable as it was. A first parameter called `ctx` is filled by the worker.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from string import Formatter
from typing import Any

from jobs import redact
from jobs import search as searching
from jobs.outcomes import Enqueued, InvalidJob, KeyConflict
from jobs.retry import Backoff

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,119}")
QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
DEFAULT_QUEUE = "default"
LEAST_PRIORITY, MOST_PRIORITY = -100, 100
DRILL = "interlock.drill"
"""The kind and the queue of the canary jobs of a drill. Nobody may register it: no worker must run them."""
PLAN, PLANS = "interlock.plan", "interlock.plans"
"""The kind and the queue of mass actions; jobs/kinds.py registers it, and nobody else may."""
OWN = "jobs.kinds"


@dataclass(frozen=True, slots=True)
class Options:
    """What one enqueue may say besides the arguments. Delays and deadlines in seconds or as instants."""

    queue: str | None = None
    priority: int | None = None
    delay: float | None = None
    due_at: datetime | None = None
    deadline: float | None = None
    deadline_at: datetime | None = None
    unique_key: str | None = None
    unique_scope: str = "unfinished"
    concurrency_key: str | None = None
    parent_id: Any = None
    label: str | None = None
    max_attempts: int | None = None
    enqueued_by: str = ""
    traceparent: str = ""
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class Handler:
    """A registered kind: the function and what its runs may cost (all durations in seconds)."""

    name: str
    function: Callable[..., Any]
    queue: str = DEFAULT_QUEUE
    lease: int | None = None
    max_attempts: int = 20
    priority: int = 0
    timeout: float | None = None
    backoff: Backoff = field(default_factory=Backoff)
    max_wait_total: float = 7 * 86400.0
    label: str = ""
    redact: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    owner: str = ""
    runbook: str = ""
    options: Options = Options()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @cached_property
    def takes_context(self) -> bool:
        """Whether the function's first parameter is `ctx`."""
        return next(iter(inspect.signature(self.function).parameters), "") == "ctx"

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def with_options(self, **options: Any) -> Handler:
        """Return the same kind with other options for the enqueues made through it (see Options)."""
        return replace(self, options=replace(self.options, **options))

    def enqueue(self, /, *args: Any, **kwargs: Any) -> Enqueued:
        """Add one job in the caller's transaction; if that rolls back there is no job.

        Raises InvalidJob for arguments that do not fit the function's signature or no JSON, KeyConflict
        when the unique key is held by a job with another input.
        """
        from jobs.models import Job

        return Job.objects.enqueue(self.name, self.bind(*args, **kwargs), options=self.options)

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[Enqueued | KeyConflict]:
        """Add many jobs, one per mapping of arguments, in one statement per thousand; results in order."""
        from jobs.models import Job

        return Job.objects.enqueue_many([(self.name, self.bind(**call), self.options) for call in calls])

    @cached_property
    def _signature(self) -> inspect.Signature:
        """How it is called, without the context; read once, for a batch asks for it a thousand times."""
        signature = inspect.signature(self.function)
        parameters = list(signature.parameters.values())[1 if self.takes_context else 0 :]
        return signature.replace(parameters=parameters)

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """The names that it takes and those that it needs; None where names alone do not tell."""
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        parameters = self._signature.parameters.values()
        if any(parameter.kind not in plain for parameter in parameters):
            return None
        needed = (p.name for p in parameters if p.default is inspect.Parameter.empty)
        return frozenset(p.name for p in parameters), frozenset(needed)

    def takes(self, names: Set[str]) -> bool:
        """Whether arguments of these names fit, as far as that can be told quickly."""
        return self._names is not None and self._names[1] <= names <= self._names[0]

    def bind(self, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments by name, or raise InvalidJob naming the one that is missing or too many."""
        if not args and self.takes(kwargs.keys()):
            return kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidJob("arguments", f"{self.name}: {error}") from None
        return {
            name: value
            for part, value in bound.arguments.items()
            for name, value in (
                value.items()
                if self._signature.parameters[part].kind is inspect.Parameter.VAR_KEYWORD
                else [(part, value)]
            )
        }

    @cached_property
    def _labelled(self) -> frozenset[str]:
        """Names of the arguments that the label speaks of: only these are masked for it, at each enqueue."""
        fields = (field for _text, field, _spec, _conversion in Formatter().parse(self.label) if field)
        return frozenset(re.split(r"[.\[]", field, maxsplit=1)[0] for field in fields)

    def label_of(self, arguments: Mapping[str, Any]) -> str:
        """Return the one line that people know this job by, secrets masked: it stands in every list.

        One that cannot be made is no reason to fail.
        """
        if not self.label:
            return ""
        try:
            named = {name: arguments[name] for name in self._labelled if name in arguments}
            return " ".join(self.label.format_map(redact.mask(named, self.redact)).split())[:200]
        except (KeyError, IndexError, ValueError, AttributeError, TypeError):
            return ""


_handlers: dict[str, Handler] = {}


def job(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    lease: int | None = None,
    max_attempts: int = 20,
    priority: int = 0,
    timeout: float | None = None,
    backoff: Backoff | None = None,
    max_wait_total: float = 7 * 86400.0,
    label: str = "",
    redact: Sequence[str] = (),
    tags: Sequence[str] = (),
    search: Sequence[str] = (),
    aliases: Sequence[str] = (),
    owner: str = "",
    runbook: str = "",
) -> Callable[[Callable[..., Any]], Handler]:
    """Register a function, plain or async, as the kind `name`.

    `lease` and `timeout` in whole seconds and seconds; `redact` are dotted paths of arguments that people
    must not see; `label` is a format string over the arguments; `aliases` are former names still in rows.
    Lists find its jobs by `tags`, which all of them have, and by the arguments at the dotted paths `search`.
    Raises ValueError at import for what could not work at run time.
    """

    def register(function: Callable[..., Any]) -> Handler:
        handler = Handler(
            name=name,
            function=function,
            queue=queue,
            lease=lease,
            max_attempts=max_attempts,
            priority=priority,
            timeout=timeout,
            backoff=backoff or Backoff(),
            max_wait_total=max_wait_total,
            label=label,
            redact=tuple(redact),
            tags=_listed(name, "tags", tags),
            search=_listed(name, "search", search),
            aliases=tuple(aliases),
            owner=owner,
            runbook=runbook,
        )
        _check(handler)
        for known in (name, *handler.aliases):
            earlier = _handlers.get(known)
            # The same function again is a module that was reloaded.
            if earlier is not None and earlier.function.__qualname__ != function.__qualname__:
                raise ValueError(f"kind {known!r} is registered already, by {earlier.function.__qualname__}")
            _handlers[known] = handler
        return handler

    return register


def _check(handler: Handler) -> None:
    for name in (handler.name, *handler.aliases):
        if not NAME.fullmatch(name):
            raise ValueError(f"kind {name!r}: letters, digits and ._:- only, at most 120")
        if name == DRILL:
            raise ValueError(f"kind {name!r} is reserved for drills")
        if (name == PLAN or handler.queue == PLANS) and handler.function.__module__ != OWN:
            raise ValueError(f"kind {PLAN!r} and queue {PLANS!r} are reserved for mass actions")
    if not QUEUE.fullmatch(handler.queue):
        raise ValueError(
            f"kind {handler.name}: queue {handler.queue!r}: letters, digits and ._:- only, at most 100"
        )
    if handler.max_attempts < 1:
        raise ValueError(f"kind {handler.name}: max_attempts must be at least 1, not {handler.max_attempts}")
    if handler.lease is not None and (not isinstance(handler.lease, int) or handler.lease < 1):
        raise ValueError(
            f"kind {handler.name}: lease must be whole seconds, at least 1, not {handler.lease!r}"
        )
    if handler.timeout is not None and not handler.timeout > 0:
        raise ValueError(f"kind {handler.name}: timeout must be more than 0 seconds, not {handler.timeout!r}")
    if not LEAST_PRIORITY <= handler.priority <= MOST_PRIORITY:
        between = f"{LEAST_PRIORITY} and {MOST_PRIORITY}"
        raise ValueError(f"kind {handler.name}: priority must lie between {between}, not {handler.priority}")
    _check_search(handler)
    for parameter in inspect.signature(handler.function).parameters.values():
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            raise ValueError(
                f"kind {handler.name}: {parameter.name}: arguments are stored by name, so name them"
            )


def _listed(kind: str, field: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return what is to be a list of texts. One text is a list of its letters, which nobody means."""
    if isinstance(given, str):
        raise ValueError(f"kind {kind}: {field}: a list of texts, not {given!r}")
    return tuple(given)


def _check_search(handler: Handler) -> None:
    try:
        searching.tags(handler.tags)
        searching.check(handler.search, handler.redact)
    except ValueError as error:
        raise ValueError(f"kind {handler.name}: {error}") from None


def find(kind: str) -> Handler | None:
    """Return the handler of a kind or of its former name, or None when this process does not know it."""
    return _handlers.get(kind)


def hidden_paths(kind: str) -> tuple[str, ...]:
    """Return what a kind declares of its input as not for people's eyes; nothing where it is not known."""
    handler = find(kind)
    return handler.redact if handler else ()


def searchable() -> list[str]:
    """Return the paths of arguments that some kind of this process declares as searchable, sorted."""
    return sorted({path for handler in _handlers.values() for path in handler.search})


def secrets_of(kind: str, text: str) -> set[str]:
    """Return the texts of a job's input, given as JSON, that nothing which people read may repeat."""
    return redact.secrets_in(json.loads(text), hidden_paths(kind))


def known_kinds() -> list[str]:
    """Return every kind and alias that this process can run, sorted."""
    return sorted(_handlers)


def registered() -> list[Handler]:
    """Return each handler once, sorted by name."""
    return sorted({h.name: h for h in _handlers.values()}.values(), key=lambda h: h.name)


def forget(*names: str) -> None:
    """Take kinds out of the registry; tests clean up with it."""
    for name in names:
        _handlers.pop(name, None)
