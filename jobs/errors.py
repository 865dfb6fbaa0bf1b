"""Error codes: a registry, because a family is a decision and never a guess from the name (contract §7)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Who has to act on an error."""

    LEASE = "lease"
    INFRA = "infra"
    CONTENT = "content"
    CANCEL = "cancel"
    FENCE = "fence"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One registered code: its family, whether a retry may help, and one plain sentence."""

    code: str
    family: Family
    retryable: bool
    meaning: str


# A name that looks like another family than the registered one is a mistake; nothing is computed from it.
_LOOKS_LIKE = {
    Family.LEASE: r".*_LEASE_.*|LEASE_TIMEOUT_.*|.*_INTERRUPTED|.*_PROCESS_STOPPED",
    Family.INFRA: r".*_UNAVAILABLE|.*_TIMEOUT|RUNTIME_.*|RENDER_.*",
    Family.CONTENT: r".*_VALIDATION_.*|.*_FAILED|.*_STALE",
    Family.CANCEL: r".*_CANCELLED|.*_RUN_NOT_ACTIVE",
    Family.FENCE: r".*_LEASE_LOST|.*_LEASE_OWNER_.*|.*_STATE_INCONSISTENT",
    Family.LIMIT: r".*_QUEUE_FULL|.*_MAX_ATTEMPTS|.*_ADMISSION_.*|.*_EXCEEDED",
}
SHAPE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_registry: dict[str, ErrorCode] = {}


def register(code: str, family: Family, *, retryable: bool = False, meaning: str = "") -> ErrorCode:
    """Make `code` known, so that handlers may raise it.

    Raises ValueError for a badly formed code, for one registered before with another family, and
    for a name that belongs to another family only (contract §7 lists the naming patterns).
    """
    if not is_well_formed(code):
        raise ValueError(f"{code!r} is no error code: write it LIKE_THIS, at most 80 characters")
    families = [family_ for family_, pattern in _LOOKS_LIKE.items() if re.fullmatch(pattern, code)]
    if families and family not in families:
        raise ValueError(
            f"{code} reads as {families[0].value}, not {family.value}: rename it or change its family"
        )
    entry = ErrorCode(code, family, retryable, meaning)
    if _registry.setdefault(code, entry) != entry:
        raise ValueError(f"{code} is registered already, as {_registry[code].family.value}")
    return entry


def is_well_formed(code: str) -> bool:
    """Return whether `code` is written as codes are: LIKE_THIS, at most 80 characters."""
    return len(code) <= 80 and SHAPE.fullmatch(code) is not None


def lookup(code: str) -> ErrorCode | None:
    """Return the registered entry of `code`, or None; callers never derive one from the name."""
    return _registry.get(code)


def is_retryable(code: str) -> bool:
    """Return whether a retry may help. An unknown code is not retried: nobody promised that it is safe."""
    entry = _registry.get(code)
    return entry is not None and entry.retryable


def registered() -> tuple[ErrorCode, ...]:
    """Return every entry in alphabetical order, for the docs and the console."""
    return tuple(sorted(_registry.values(), key=lambda entry: entry.code))


def _declare(family: Family, retryable: bool, **codes: str) -> None:
    for code, meaning in codes.items():
        # Codes that 003 named against its own patterns keep 003's family; `register` would refuse them.
        _registry[code] = ErrorCode(code, family, retryable, meaning)


_declare(
    Family.LEASE,
    True,
    LEASE_TIMEOUT_RECOVERED="The lease ran out; the job was taken back and will run again.",
    WORKER_LEASE_RELEASED="The worker stopped in an orderly way and gave the job back.",
    HANDLER_INTERRUPTED="The handler was stopped before it finished.",
    AI_PAGE_MUTATION_INTERRUPTED="The process that changed the page stopped; the change runs again.",
    PAGE_SCREENSHOT_JOB_INTERRUPTED="The process that took the screenshot stopped; it is taken again.",
)
_declare(
    Family.LEASE,
    False,
    AI_RUN_PROCESS_STOPPED="The process that owned the run is gone; the run never resumes.",
)
_declare(
    Family.INFRA,
    True,
    RUNTIME_HANDLER_EXCEPTION="The handler raised an exception that it does not declare.",
    RUNTIME_HANDLER_TIMEOUT="The handler ran longer than its time limit.",
    RUNTIME_HANDLER_EXITED="The handler tried to end the worker process.",
    RUNTIME_RETRY_REQUESTED="The handler asked to be run again later.",
    RENDER_DEADLINE_EXCEEDED="Rendering passed its deadline.",
    EFFECT_PROVIDER_UNAVAILABLE="The provider could not be reached; nothing was sent.",
    RENDER_SERVICE_UNAVAILABLE="The rendering service could not be reached.",
    RUNTIME_VITE_QUEUE_FULL="The build runtime has no room.",
)
_declare(
    Family.CONTENT,
    False,
    RESULT_VALIDATION_FAILED="The handler's result cannot be stored as JSON within the limits.",
    ARGUMENTS_VALIDATION_FAILED="The stored arguments do not fit the handler's signature.",
    EFFECT_DECLINED_FAILED="The provider refused the effect for good; nothing was done.",
    EFFECT_ABANDON_FAILED="An effect that this run needs was abandoned by a ruling.",
    HANDLER_CONTENT_FAILED="The handler refused its input.",
    PAGE_VALIDATION_FAILED="The page's source does not pass its checks.",
    PAGE_SCREENSHOT_JOB_STALE="The page has changed since the screenshot was asked for.",
)
_declare(
    Family.CANCEL,
    False,
    JOB_CANCELLED="The job was cancelled on request.",
    JOB_PREDECESSOR_CANCELLED="A job that this one waited for ended without a result.",
    AI_RUN_CANCELLED="The run was cancelled on request.",
    AI_RUN_NOT_ACTIVE="The run that this work belonged to has ended.",
    RENDER_CANCELLED="The rendering was cancelled on request.",
)
_declare(
    Family.FENCE,
    False,
    JOB_STATE_INCONSISTENT="A token from the future was presented: writes were lost.",
    AI_PAGE_MUTATION_LEASE_LOST="Another worker holds the page's change by now.",
    BUILD_LEASE_OWNER_MISMATCH="The build belongs to another worker.",
    AI_EXTERNAL_STATE_INCONSISTENT="The external task and its job do not say the same.",
)
_declare(
    Family.LIMIT,
    False,
    JOB_DEADLINE_EXCEEDED="The job's deadline passed before it finished.",
    JOB_WAIT_EXCEEDED="The job waited longer in all than its kind allows.",
    LEASE_TIMEOUT_MAX_ATTEMPTS="The lease ran out on the last attempt: the job may kill its worker.",
    JOB_MAX_ATTEMPTS="The last permitted attempt failed.",
    RENDER_QUEUE_FULL="The rendering queue has no room.",
)
