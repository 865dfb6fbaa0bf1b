"""Running a handler to its end, whatever that end is: nothing that user code does leaves this module."""

from __future__ import annotations

import inspect
import json
import math
import os
import traceback
from collections.abc import Coroutine
from typing import Any, NamedTuple, NoReturn

from django.conf import settings
from django.db import connections

from jobs import admission, canon, errors, redact, ruled, stops
from jobs.context import Cancelled, Context, Fail, LeaseLost, Retry, Skip, TimedOut, Wait, seconds_of
from jobs.failpoints import failpoint
from jobs.outcomes import Ending, InvalidJob
from jobs.status import WaitReason
from jobs.worker.held import Held

READ_ONLY = "25006"


class Finished(NamedTuple):
    """What came of an attempt: a result to commit (text and digest), or another ending."""

    held: Held
    text: str | None = None
    digest: str = ""
    ending: Ending | None = None


def run(held: Held) -> Finished | None:
    """Run a plain handler in this thread; None when the attempt is over and its result worth nothing."""
    held.began = held.clock()
    process = os.getpid()
    try:
        failpoint("run.before")
        word = ruled.result(held.lease, using=held.using) if _may_be_ruled(held) else None
        value = word.value if word else _call(held)
        if value is not None and inspect.isawaitable(value):
            _abandon(value)
            raise TypeError("a plain function returned an awaitable; write the handler with async def")
        finished = _returned(held, value)
        failpoint("run.after")
    except BaseException as error:  # noqa: BLE001  (SystemExit and worse end the attempt, never the worker)
        _leave_fork(process, error)
        finished = ending_of(held, error)
    _leave_fork(process)
    return _own(held, finished)


async def run_async(held: Held) -> Finished | None:
    """The same for a coroutine function, on the worker's event loop."""
    held.began = held.clock()
    process = os.getpid()
    try:
        failpoint("run.before")
        word = await ruled.result_async(held) if _may_be_ruled(held) else None
        finished = _returned(held, word.value if word else await _call(held))
        failpoint("run.after")
    except BaseException as error:  # noqa: BLE001
        _leave_fork(process, error)
        finished = ending_of(held, error)
    _leave_fork(process)
    return _own(held, finished)


def _leave_fork(process: int, error: BaseException | None = None) -> None:
    """End a child that the handler forked and that came back out of it; return in the worker itself.

    It has a copy of all that the worker holds: it would run the jobs that wait here a second time, over the
    worker's own connections, and stay for ever.
    """
    if os.getpid() != process:
        _exit(error)


def _exit(error: BaseException | None) -> NoReturn:
    """End this process at once, with the code that Python gives for what ended it."""
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    elif error is not None:
        traceback.print_exception(error)
    os._exit(code & 0xFF)


def _own(held: Held, finished: Finished | None) -> Finished | None:
    """Return what is to be sent, unless the attempt was ended without its handler (time limit, stop)."""
    return finished if held.close() else None


def _may_be_ruled(held: Held) -> bool:
    """Whether a person may have said that the whole run happened, and what came of it."""
    return held.lease.generation > held.lease.attempt_count


def _call(held: Held) -> Any:
    """Call the handler with the stored arguments; raises InvalidJob when they do not fit its signature."""
    lease = held.lease
    handler = held.handler
    text = lease.input
    arguments = {} if text == "{}" else json.loads(text)
    try:
        if handler.takes_context:
            return handler.function(Context(held), **arguments)
        return handler.function(**arguments)
    except TypeError:
        # By the call or inside the handler: the signature knows, and has the sentence for the former.
        handler.bind(**arguments)
        raise


def _returned(held: Held, value: Any) -> Finished | None:
    if isinstance(value, Wait):
        return _waits(held, value)
    try:
        text, digest = admission.result(value)
    except canon.NotCanonical as error:
        return failed(held, "RESULT_VALIDATION_FAILED", f"result{error}")
    except Exception as error:  # noqa: BLE001  (a value that breaks the serialiser is a bad result, not a crash)
        return failed(held, "RESULT_VALIDATION_FAILED", f"result: {describe(error)}")
    return Finished(held, text, digest)


def _waits(held: Held, wait: Wait) -> Finished:
    try:
        reason = WaitReason(wait.reason)
        seconds = seconds_of(wait, held)
        if reason != WaitReason.APPROVAL and (seconds is None or not math.isfinite(seconds) or seconds < 0):
            raise ValueError(f"Wait needs seconds of at least 0, or until, not {wait.seconds!r}")
        if seconds is not None:
            seconds = min(float(seconds), admission.LONGEST_DELAY)
    except (ValueError, TypeError, OverflowError) as error:
        return failed(held, "RESULT_VALIDATION_FAILED", describe(error))
    return _stops(held, reason, seconds)


def _stops(held: Held, reason: WaitReason, seconds: float | None, *, effect_id: str = "") -> Finished:
    ending = Ending.wait(
        held.lease,
        reason,
        seconds=seconds,
        total=held.handler.max_wait_total,
        log=held.log,
        effect_id=effect_id,
    )
    return Finished(held, ending=ending)


def ending_of(held: Held, error: BaseException) -> Finished | None:
    """Return the ending that an exception asks for; one that cannot be read has failed the attempt too.

    A handler's own exceptions may lack what ours have, and whatever it is, the attempt needs an ending.
    """
    try:
        return raised(held, error)
    except BaseException as second:  # noqa: BLE001
        return failed(held, "RUNTIME_HANDLER_EXCEPTION", describe(second), trace=trace(second))


def raised(held: Held, error: BaseException) -> Finished | None:
    """Return the ending that an exception asks for; None when the attempt has nothing left to say."""
    leave_standby(error)
    match error:
        case Cancelled():
            return Finished(held, ending=Ending.acknowledge_cancel(held.lease, log=held.log))
        case LeaseLost():
            held.lose(str(error))
            return None
        case TimedOut():
            return timed_out(held)
        case Retry():
            return _retry(held, error)
        case Skip():
            code, message = _coded(error.code, error.message)
            message = redact.clean(message, limit=settings.INTERLOCK["ERROR_BYTES"], secrets=_secrets(held))
            return Finished(held, ending=Ending.skip(held.lease, code, message, log=held.log))
        case stops.Unsettled():
            return _unsettled(held, error)
        case Fail() | stops.EffectProblem():
            return failed(held, *_coded(error.code, error.message))
        case InvalidJob() if error.field == "arguments":
            return failed(held, "ARGUMENTS_VALIDATION_FAILED", error.problem)
        case Exception():
            return failed(held, "RUNTIME_HANDLER_EXCEPTION", describe(error), trace=trace(error))
        case _:
            return failed(held, "RUNTIME_HANDLER_EXITED", describe(error), trace=trace(error))


def _unsettled(held: Held, error: stops.Unsettled) -> Finished:
    """Return the ending of an attempt that an effect stopped."""
    lease, log = held.lease, held.log
    match error:
        case stops.StaleInput():
            return Finished(held, ending=Ending.release(lease, log=log))
        case stops.InConflict():
            ending = Ending.payload_conflict(lease, error.effect_id, error.payload, error.digest, log=log)
            return Finished(held, ending=ending)
        case stops.NeedsApproval():
            return _stops(held, WaitReason.APPROVAL, None, effect_id=error.effect_id)
        case stops.AskLater():
            return _stops(held, WaitReason.PROVIDER, error.seconds)
        case _:
            return Finished(held, ending=Ending.uncertain(lease, admission.words(lease, str(error)), log=log))


def timed_out(held: Held) -> Finished:
    """Return the ending of an attempt that outlived its kind's time limit; its code may still be running."""
    held.timed_out = True
    return failed(held, "RUNTIME_HANDLER_TIMEOUT", f"still running after {held.handler.timeout:g} s")


def failed(
    held: Held, code: str, message: str, *, trace: str = "", retry_after: float | None = None
) -> Finished:
    """Return the ending of a failed attempt; the code's registry entry says whether there will be another."""
    return Finished(
        held,
        ending=admission.failure(
            held.lease, code, message, retry_after=retry_after, traceback=trace, log=held.log
        ),
    )


def leave_standby(error: BaseException) -> None:
    """Close this thread's connections when a write was refused as read-only.

    After a failover they may lead to the old server, which answers every look at its health.
    """
    if getattr(error.__cause__, "sqlstate", None) == READ_ONLY:
        for connection in connections.all(initialized_only=True):
            connection.close()


def _retry(held: Held, error: Retry) -> Finished:
    code, message = _coded(error.code, error.message)
    after = error.after
    usable = isinstance(after, int | float) and not isinstance(after, bool)
    if after is None or not usable or not 0 <= after < math.inf:  # no NaN either
        after = held.handler.backoff.delay(held.lease.attempts_used)
    return failed(held, code, message, retry_after=float(min(after, admission.LONGEST_DELAY)))


def _coded(code: Any, message: Any) -> tuple[str, str]:
    """Return a code that may stand in a column; one that is badly formed moves into the message."""
    if isinstance(code, str) and errors.is_well_formed(code):
        return code, message
    return "HANDLER_CONTENT_FAILED", f"{redact.clean(code, limit=200)}: {message}" if message else str(code)


def _secrets(held: Held) -> set[str]:
    return admission.secrets_of(held.lease)


def describe(error: BaseException) -> str:
    """Return `Type: text`, also for an exception that cannot be shown as text."""
    return redact.described(error, limit=settings.INTERLOCK["ERROR_BYTES"])


def trace(error: BaseException) -> str:
    """Return the traceback without this module's own frames; never raises."""
    try:
        inner = error.__traceback__
        while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
            inner = inner.tb_next
        return "".join(traceback.format_exception(type(error), error, inner, limit=100))
    except Exception as second:  # noqa: BLE001  (user code runs in __str__, and may do anything)
        return f"(a traceback that cannot be shown: {type(second).__name__})"


def _abandon(value: Any) -> None:
    if isinstance(value, Coroutine):
        value.close()
