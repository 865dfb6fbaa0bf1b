"""How the console says times, spans and names: age first, the instant below, always UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from django.utils.translation import get_language, pgettext
from django.utils.translation import gettext as _

from jobs.explain import Explanation
from jobs.models.audit import Source
from jobs.models.case import CaseKind, Verdict
from jobs.sentences import sentence
from jobs.status import AttemptStatus, EffectStatus, JobStatus

DAY = 86_400
P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Keep what a function says, for each language: a list has it said in each row, each refresh again."""
    kept = lru_cache(maxsize=512)(lambda _language, *args, **named: function(*args, **named))

    @wraps(function)
    def said(*args: P.args, **named: P.kwargs) -> R:
        return kept(get_language(), *args, **named)  # type: ignore[arg-type]

    return said


def age(seconds: float) -> str:
    """Return a length of time in one unit: what a list has room for. static/console/live.js agrees."""
    seconds = max(0, int(seconds))
    if seconds < 60:
        return _("%(n)s s") % {"n": seconds}
    if seconds < 3600:
        return _("%(n)s min") % {"n": seconds // 60}
    if seconds < 2 * DAY:
        return _("%(n)s h") % {"n": seconds // 3600}
    return _("%(n)s d") % {"n": seconds // DAY}


def span(length: timedelta | float) -> str:
    """Return a length of time in up to two units: 4 ms, 9.1 s, 1 min 31 s, 2 h 11 min, 3 d 4 h."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    seconds = max(0.0, seconds)
    if seconds < 1:
        return _("%(n)s ms") % {"n": round(seconds * 1000)}
    if seconds < 60:
        return _("%(n)s s") % {"n": f"{seconds:.1f}".removesuffix(".0")}
    whole = int(seconds)
    if whole < 3600:
        return _two(_("%(n)s min"), whole // 60, _("%(n)s s"), whole % 60)
    if whole < DAY:
        return _two(_("%(n)s h"), whole // 3600, _("%(n)s min"), whole % 3600 // 60)
    return _two(_("%(n)s d"), whole // DAY, _("%(n)s h"), whole % DAY // 3600)


def _two(first: str, whole: int, second: str, rest: int) -> str:
    text = first % {"n": whole}
    return f"{text} {second % {'n': rest}}" if rest else text


def stamp(moment: datetime, *, seconds: bool = True) -> str:
    """Return the instant in full: 2026-11-24 14:26:08 UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")


def both(moment: datetime, zone: str | None) -> str:
    """Return the instant in full, in UTC and in a zone: 2026-11-24 14:26:08 UTC, 15:26:08 Europe/Vienna."""
    if not zone or zone == "UTC":
        return stamp(moment)
    local = moment.astimezone(ZoneInfo(zone))
    here = "%H:%M:%S" if local.date() == moment.astimezone(UTC).date() else "%m-%d %H:%M:%S"
    return f"{stamp(moment)}, {local.strftime(here)} {zone}"


def utc(moment: datetime, now: datetime, zone: str | None) -> str:
    """Return the time of day in UTC, and in a zone where one was chosen: 19:43:43 UTC, 20:43 local."""
    text = f"{clock(moment, now)} UTC"
    if not zone or zone == "UTC":
        return text
    local = moment.astimezone(ZoneInfo(zone))
    here = "%H:%M" if local.date() == moment.astimezone(UTC).date() else "%m-%d %H:%M"
    return _("%(utc)s, %(here)s local") % {"utc": text, "here": local.strftime(here)}


def clock(moment: datetime, now: datetime) -> str:
    """Return the time of day, with the day where it is another one than now's."""
    moment = moment.astimezone(UTC)
    if moment.date() == now.astimezone(UTC).date():
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%m-%d %H:%M" if moment.year == now.year else "%Y-%m-%d")


def clip(text: str, most: int) -> str:
    """Return a text of at most so many characters, the last of which then says that there was more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_id(value: object) -> str:
    """Return an id as people know it: its start says when it was made, its end tells it from its like."""
    text = str(value)
    return text if len(text) <= 14 else f"{text[:6]}…{text[-4:]}"


def short_worker(worker_id: str) -> str:
    """Return `host:pid` of a worker's `host:pid:uuid`."""
    parts = worker_id.split(":")
    return ":".join(parts[:2]) if len(parts) >= 3 else worker_id[:40]


@remembered
def words() -> dict[str, str]:
    """Return every status in the reader's language."""
    return {
        JobStatus.PENDING: _("pending"),
        JobStatus.BLOCKED: _("blocked"),
        JobStatus.RUNNING: _("running"),
        JobStatus.WAITING: _("waiting"),
        JobStatus.UNCERTAIN: _("uncertain"),
        JobStatus.SUCCEEDED: _("succeeded"),
        JobStatus.FAILED: _("failed"),
        JobStatus.CANCELLED: _("cancelled"),
        JobStatus.SKIPPED: _("skipped"),
        AttemptStatus.COMMITTED: _("committed"),
        AttemptStatus.LOST: _("lost"),
        AttemptStatus.RELEASED: _("released"),
        EffectStatus.PREPARED: _("prepared"),
        EffectStatus.EXECUTING: _("executing"),
        EffectStatus.UNKNOWN: _("unknown"),
        EffectStatus.ABSENT: _("absent"),
        EffectStatus.ABANDONED: _("abandoned"),
    }


@remembered
def cases() -> dict[str, str]:
    """Return every kind of case in the reader's language."""
    return {
        CaseKind.UNKNOWN: _("outcome unknown"),
        CaseKind.CONFLICT: _("payload conflict"),
        CaseKind.APPROVAL: _("approval"),
        CaseKind.CONTRADICTION: _("contradiction"),
    }


@remembered
def doors() -> dict[str, str]:
    """Return every way that an operation comes in by, as the audit says it."""
    return {
        Source.CONSOLE: pgettext("door", "console"),
        Source.API: pgettext("door", "API"),
        Source.COMMAND: pgettext("door", "command line"),
        Source.AUTOMATIC: pgettext("door", "automatic"),
    }


@remembered
def verdicts() -> dict[str, str]:
    """Return every verdict as what a person says by it."""
    return {
        Verdict.HAPPENED: _("It happened"),
        Verdict.DID_NOT_HAPPEN: _("It did not happen"),
        Verdict.ABANDON: _("Close it, send nothing"),
        Verdict.USE_RECORDED: _("Use what is recorded"),
        Verdict.REBIND: _("Bind the new one instead"),
        Verdict.REVISE: _("Revise the job"),
        Verdict.SEND: _("Send it"),
        Verdict.ACKNOWLEDGE: _("I have read it"),
    }


@remembered
def reason_codes() -> dict[str, str]:
    """Return every reason that a verdict may have."""
    return {
        "provider_confirms": _("The provider confirms it"),
        "seen_in_statement": _("It stands in a statement"),
        "recipient_confirms": _("The recipient confirms it"),
        "provider_denies": _("The provider denies it"),
        "not_in_statement": _("It stands in no statement"),
        "recipient_denies": _("The recipient denies it"),
        "never_left": _("It never left us"),
        "not_needed": _("It is not needed any more"),
        "done_otherwise": _("It was done another way"),
        "too_late": _("It is too late for it"),
        "too_risky": _("It is too risky"),
        "recorded_is_right": _("What is recorded is right"),
        "same_in_substance": _("Both are the same in substance"),
        "new_is_right": _("The new one is right"),
        "recorded_is_wrong": _("What is recorded is wrong"),
        "input_was_wrong": _("The input was wrong"),
        "checked": _("I have checked it"),
        "asked_requester": _("I have asked who wants it"),
        "within_limits": _("It is within the limits"),
        "corrected_outside": _("It was corrected outside"),
        "compensated": _("It was made good"),
        "no_harm": _("It does no harm"),
        "other": _("Another reason"),
    }


def why(explanation: Explanation, now: datetime) -> str:
    """Return the sentence with its instants and workers as short as a row of a list has room for."""
    shown = {}
    for name, value in explanation.params.items():
        if isinstance(value, datetime):
            shown[name] = clock(value, now)
        elif name == "worker":
            shown[name] = short_worker(value)
        elif name in ("error_message", "reason"):
            first = str(value).strip().splitlines()[0] if str(value).strip() else ""
            shown[name] = clip(first, 120)
        else:
            shown[name] = value
    # A sentence that ends in a reason which nobody gave.
    return sentence(explanation.code, shown).rstrip(" :")


def refusal(code: str, params: Mapping[str, Any]) -> str:
    """Return a refusal's sentence with verdicts, reasons and statuses in the words that the pages use."""
    shown = dict(params)
    if "verdict" in shown:
        shown["verdict"] = f"“{verdicts().get(shown['verdict'], shown['verdict'])}”"
    if "status" in shown:
        shown["status"] = words().get(shown["status"], shown["status"])
    if code == "REASON_CODE":
        shown["known"] = ", ".join(
            f"“{reason_codes().get(known, known)}”" for known in shown["known"].split(", ")
        )
    return sentence(code, shown)


def plan(action: str) -> str:
    """Return what a mass action does, as a button says it."""
    words = {"retry": _("Retry"), "cancel": _("Cancel"), "hold": _("Hold"), "unhold": _("Lift the hold")}
    return words.get(action, action)
