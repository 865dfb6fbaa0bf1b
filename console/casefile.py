"""What one case shows: what we did, what the provider says, whether the sender can still act, what differs.

Only reading, and only what is needed: payloads and answers are masked as they are made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from console import history as audited
from console import wording
from console.payload import Payload
from jobs import effect_kinds, runbooks
from jobs.models import Attempt, AuditEntry, Case, EffectSlot, FenceRefusal
from jobs.models.case import CaseKind, ClosedAs, Evidence, Proposal
from jobs.money import money
from jobs.operations.cases import View
from jobs.redact import mask, strike
from jobs.status import EffectStatus

EVIDENCE, WORDS, DIFFERENCES = 30, 50, 100
"""So many of each are shown, the newest ones."""
BODY = 4000
"""Characters shown of one answer."""
DEPTH = 20
"""Levels of a payload that are compared field by field; what lies below is one value."""
CUT = 200
"""Characters shown of one value that differs."""


@dataclass(frozen=True)
class Heard:
    """One piece of evidence, with its answer as people may see it."""

    row: Evidence
    body: Payload | None
    text: str
    proves: str

    @property
    def name(self) -> str:
        """Its own on the page."""
        return f"answer-{self.row.id}"


@dataclass(frozen=True)
class Step:
    """One thing that is known to have happened to the effect."""

    icon: str
    colour: str
    what: str
    more: str
    at: datetime | None


@dataclass(frozen=True)
class Difference:
    """One field of two payloads that is not the same."""

    path: str
    recorded: str | None
    brought: str | None


@dataclass(frozen=True)
class Happened:
    """One line of the case's history."""

    at: datetime
    icon: str
    colour: str
    who: str
    what: str
    words: str


def paths_of(view: View) -> tuple[str, ...]:
    """Return what of the effect's payload and answers is not for people's eyes."""
    return effect_kinds.hidden_paths(view.effect.kind, view.job.kind)


def heard(view: View, paths: Iterable[str], secrets: Iterable[str]) -> list[Heard]:
    """Return what was learnt, newest first, without what `paths` hide and `secrets` of the job's input."""
    return [_heard(row, view, paths, secrets) for row in view.evidence[:EVIDENCE]]


def _heard(row: Evidence, view: View, paths: Iterable[str], secrets: Iterable[str]) -> Heard:
    if row.body[:1] in ("{", "["):
        return Heard(row, Payload.of(row.body, paths, secrets), "", proves(row, view))
    return Heard(row, None, strike(row.body, secrets)[:BODY], proves(row, view))


DECISIONS = ("send", "use_recorded", "rebind", "revise")


def proves(row: Evidence, view: View) -> str:
    """Return what a piece of evidence proves: “not found” nothing before settle-by, and by how much."""
    if row.outcome == "unknown":
        return _("the sender itself does not know")
    if row.outcome in DECISIONS:
        return _("a decision, no proof")
    if row.decisive:
        return _("It settled the effect")
    if row.outcome == "not_found":
        if view.effect.settle_seconds is None:
            return _("nothing: the kind declares no settle-by")
        if view.settle_by is None:
            return _("nothing yet: the sender has not ended")
        if row.at < view.settle_by:
            left = wording.span(float(int((view.settle_by - row.at).total_seconds())))
            return _("nothing yet: %(length)s before settle-by") % {"length": left}
    return {
        "no_answer": _("nothing: the provider could not be asked"),
        "found_other": _("something is there, but not what we sent"),
        "sender_gone": _("from then on nothing was sent"),
    }.get(row.outcome, _("nothing by itself"))


def attempt_facts(view: View) -> tuple[int, int]:
    """Return which attempt the sender's was, counted from one, and how many of its writes were refused."""
    attempt = view.sender.attempt
    if attempt is None:
        return 0, 0
    until = Attempt.objects.filter(job_id=view.job.id, generation__lte=attempt.generation)
    refused = FenceRefusal.objects.filter(job_id=view.job.id, attempt_id=attempt.id)
    return until.count(), refused.count()


def steps(view: View, number: int) -> list[Step]:
    """Return what we know we did, in order."""
    slot, attempt = view.effect, view.sender.attempt
    bound = _("payload bound, digest %(d)s") % {"d": wording.short_id(slot.payload_digest)}
    found = [Step("prepared", "", _("Prepared"), bound, slot.created_at)]
    if slot.grants:
        to = ""
        if attempt is not None:
            to = _("to attempt %(n)s, generation %(g)s") % {"n": number, "g": attempt.generation}
        if slot.grants > 1:
            to = _("%(to)s; %(n)s grants in all, under the same key") % {"to": to, "n": slot.grants}
        found.append(Step("executing", "run", _("Permission to send granted"), to, slot.granted_at))
        met = next((e for e in view.evidence if e.source == "report"), None)
        if met is not None and met.outcome == EffectStatus.UNKNOWN:
            found.append(Step("warn", "warn", met.body.partition(":")[0][:80], said_by(met.body), met.at))
        elif met is None and slot.status == EffectStatus.UNKNOWN:
            more = _("its lease ran out: no proof that anything left us, nor that nothing did")
            found.append(Step("lost", "warn", _("The sender never said how it ended"), more, None))
        if slot.earlier_unresolved:
            more = _("so a refusal of the last sending proves little")
            found.append(Step("warn", "warn", _("An earlier sending was never resolved"), more, None))
    else:
        found.append(Step("absent", "", _("Sending was never permitted"), _("nothing left us"), None))
    if slot.sender_ended_at:
        more = _("from here on it can send no more")
        found.append(Step("fence", "ok", _("The sender ended"), more, slot.sender_ended_at))
    if slot.inquiries:
        asked_ = _("%(n)s in all") % {"n": slot.inquiries}
        found.append(Step("refresh", "", _("Last inquiry"), asked_, slot.inquired_at))
    return sorted(found, key=lambda step: step.at or slot.granted_at or slot.created_at)


NEVER_MADE = ("ConnectTimeout", "ConnectTimeoutError", "NewConnectionError", "ConnectError", "PoolTimeout")
BROKE = ("ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "RemoteDisconnected")
NO_ANSWER = ("ReadTimeout", "ReadTimeoutError", "TimeoutError", "timeout", "IncompleteRead")


def said_by(report: str) -> str:
    """Return what a sender's error says of the request: a time-out of connecting is not one of reading."""
    name = report.partition(":")[0].strip()
    if name in NEVER_MADE:
        return _("no connection was made in time: most likely nothing left us")
    if name in BROKE:
        return _("the connection broke on the way: it may have arrived")
    if name in NO_ANSWER or "timed out" in report:
        return _("it was sent, and no answer came in time: it may have arrived")
    return _("what came back could not be read: it may have arrived")


def evidence_class(case: Case, inquiry: str) -> str:
    """Return in a few words what there is to go by: what the sender met, and what the provider said last."""
    return _evidence_class(case.kind, case.cause, inquiry)


@wording.remembered
def _evidence_class(kind: str, cause: str, inquiry: str) -> str:
    if kind != CaseKind.UNKNOWN:
        return {
            CaseKind.CONFLICT: _("two payloads, one key"),
            CaseKind.APPROVAL: _("asked before it is sent"),
            CaseKind.CONTRADICTION: _("evidence against the record"),
        }[CaseKind(kind)]
    if cause in NEVER_MADE:
        met = _("no connection")
    elif cause in BROKE:
        met = _("connection broke")
    elif cause in NO_ANSWER:
        met = _("no answer in time")
    elif cause:
        met = _("unreadable answer")
    else:
        met = _("sender lost")
    heard_ = {
        "found": _("found"),
        "found_other": _("found, differs"),
        "not_found": _("not found"),
        "no_answer": _("provider silent"),
    }.get(inquiry, _("not asked"))
    return _("%(met)s; %(heard)s") % {"met": met, "heard": heard_}


MET = {"no_connection": NEVER_MADE, "broke": BROKE, "no_answer": NO_ANSWER, "lost": ("",)}
"""What a sender may have met, and the errors that say so; any other error is an answer nobody could read."""


def met(word: str) -> Q:
    """Cases with an unknown outcome of which the sender met this."""
    if word in MET:
        return Q(kind=CaseKind.UNKNOWN, cause__in=MET[word])
    return Q(kind=CaseKind.UNKNOWN) & ~Q(cause__in=[name for names in MET.values() for name in names])


def asked(proposal: Proposal) -> dict[str, Any]:
    """Return what the first person said, as far as it can be read."""
    try:
        given = json.loads(proposal.asked)
    except ValueError:
        return {}
    code = str(given.get("reason_code", ""))
    return {
        "reason": str(given.get("reason", "")),
        "code": wording.reason_codes().get(code, code),
        "attested": given.get("attested") is True,
    }


ACTS = ("take", "give_back", "park", "unpark", "inquire", "reveal")
"""What people did that is neither said nor ruled: of it the audit alone tells."""


def acts(case: Case) -> list[AuditEntry]:
    """Return what people did here beside ruling, newest first, by the audit's index of objects."""
    about = AuditEntry.objects.filter(object_type="case", object_id=str(case.id), action__in=ACTS)
    return list(about.only("at", "actor", "action", "reason", "after").order_by("-seq")[:WORDS])


def history(view: View, proposals: list[Proposal], done: Iterable[AuditEntry] = ()) -> list[Happened]:
    """Return what people said, did and decided here, newest first, down to the opening."""
    case, words = view.case, wording.verdicts()
    codes = wording.reason_codes()
    lines = [Happened(c.at, "comment", "", c.by, _("wrote"), c.text) for c in view.comments[:WORDS]]
    for ruling in view.rulings[:WORDS]:
        what = _("ruled “%(verdict)s” (%(code)s)") % {
            "verdict": words.get(ruling.verdict, ruling.verdict),
            "code": codes.get(ruling.reason_code, ruling.reason_code),
        }
        if ruling.reference:
            what = _("%(what)s, reference %(ref)s") % {"what": what, "ref": ruling.reference}
        if ruling.attested:
            what = _("%(what)s, vouching that the sender is dead") % {"what": what}
        if ruling.approved_by:
            what = _("%(what)s, approved by %(by)s") % {"what": what, "by": ruling.approved_by}
        lines.append(Happened(ruling.at, "user", "run", ruling.by, what, ruling.reason))
    for proposal in proposals:
        verdict = words.get(proposal.verdict, proposal.verdict)
        question = _("asked for “%(verdict)s”; it takes a second person") % {"verdict": verdict}
        lines.append(
            Happened(proposal.at, "approval", "", proposal.by, question, asked(proposal).get("reason", ""))
        )
        if proposal.decided_at:
            at, by = proposal.decided_at, proposal.decided_by
            lines.append(Happened(at, "approval", "", by, _decided(proposal), proposal.note))
    lines += [told(entry, view.now) for entry in done]
    opened = _("The case was opened")
    if case.sla_due_at:
        length = wording.span(case.sla_due_at - case.opened_at)
        opened = _("The case was opened, SLA %(length)s") % {"length": length}
    lines.append(Happened(case.opened_at, case.kind, "", "", opened, ""))
    if case.closed_at:
        closed = {
            ClosedAs.RULED: _("Closed by a ruling"),
            ClosedAs.RESOLVED: _("Closed by evidence"),
            ClosedAs.MOOT: _("Closed: nothing depends on it any more"),
        }.get(ClosedAs(case.closed_as), case.closed_as)
        lines.append(Happened(case.closed_at, "check", "ok", "", closed, ""))
    return sorted(lines, key=lambda line: line.at, reverse=True)


DONE_ICONS = {"take": "user", "give_back": "user", "inquire": "refresh", "reveal": "search"}


def told(entry: AuditEntry, now: datetime) -> Happened:
    """Return an act that the audit has as a line of a history."""
    after = json.loads(entry.after) or {}
    until = after.get("owned_until") or after.get("parked_until")
    at = {"at": wording.clock(datetime.fromisoformat(until), now) if until else "?"}
    what = {
        "take": _("took the case until %(at)s") % at,
        "park": _("parked it until %(at)s") % at,
        "unpark": _("brought it back"),
    }.get(entry.action) or audited.said(entry.action)
    return Happened(entry.at, DONE_ICONS.get(entry.action, "pause"), "", entry.actor, what, entry.reason)


def _decided(proposal: Proposal) -> str:
    return {
        "approved": _("approved it"),
        "rejected": _("rejected it"),
        "void": _("It was withdrawn: the effect moved"),
    }.get(proposal.decision, proposal.decision)


def differences(
    recorded: str, brought: str, paths: Iterable[str], secrets: Iterable[str] = ()
) -> tuple[list[Difference], int]:
    """Return the fields that differ, and how many are equal.

    They are compared as they are and shown as people may see them, so that two secrets are still told apart.
    """
    hidden = tuple(paths)
    return _differences(recorded, brought, lambda value: mask(value, hidden), secrets)


def revealed_differences(recorded: str, brought: str) -> tuple[list[Difference], int]:
    """Return the same with nothing masked: for what jobs.operations.reveal gave."""
    return _differences(recorded, brought, lambda value: value, ())


def _differences(
    recorded: str, brought: str, look: Callable[[Any], Any], secrets: Iterable[str]
) -> tuple[list[Difference], int]:
    left, right = _fields(recorded, look), _fields(brought, look)
    nothing: tuple[str, str | None] = ("", None)
    names = list(dict.fromkeys([*left, *right]))
    differing = [n for n in names if left.get(n, nothing) != right.get(n, nothing)]
    rows = [[n or "/", left.get(n, nothing)[1], right.get(n, nothing)[1]] for n in differing[:DIFFERENCES]]
    shown = [Difference(*map(_cut, row)) for row in strike(rows, secrets)]
    return shown, len(names) - len(differing)


def _cut(text: str | None) -> Any:
    return text[:CUT] + "…" if text is not None and len(text) > CUT else text


def _fields(text: str, look: Callable[[Any], Any]) -> dict[str, tuple[str, str | None]]:
    """Return each field's value, exact and as it may be shown; what is no JSON is one value."""
    try:
        value = json.loads(text)
        return {path: (plain, shown) for path, plain, shown in _leaves("", value, look(value), 0)}
    except (ValueError, RecursionError):
        return {"": (text, _("not readable"))}


def _leaves(path: str, value: Any, masked: Any, depth: int) -> Iterator[tuple[str, str, str]]:
    if isinstance(masked, dict) and masked and depth < DEPTH:
        for key, part in value.items():
            yield from _leaves(f"{path}/{key}", part, masked[key], depth + 1)
    elif isinstance(masked, list) and masked and depth < DEPTH:
        for index, part in enumerate(value):
            yield from _leaves(f"{path}/{index}", part, masked[index], depth + 1)
    else:
        shown = masked if isinstance(masked, str) else json.dumps(masked, ensure_ascii=False)
        shown = shown.encode(errors="replace").decode()
        exact = json.dumps(value, sort_keys=True)
        yield path.encode(errors="replace").decode(), exact, shown


def is_conflict(case: Case, slot: EffectSlot) -> bool:
    """Whether two payloads stand against each other here."""
    return case.kind == CaseKind.CONFLICT and slot.conflict_payload is not None


@dataclass(frozen=True)
class About:
    """What an effect kind says of itself. Never the kind: a template calls what it can, and would send."""

    owner: str
    provider: str
    inquirable: bool
    runbook: str
    """An address of the web, or empty."""
    steps: list[runbooks.Step]
    console: str
    """Where the provider shows this very effect; empty where the kind does not say."""

    @classmethod
    def of(cls, view: View) -> About | None:
        """Return what the case's effect kind declares; None where this process does not know it."""
        kind, slot = view.kind, view.effect
        if kind is None:
            return None
        amount = money(slot.amount, slot.currency)
        values = {"key": slot.id, "reference": slot.reference, "label": slot.label, "amount": amount}
        return cls(
            kind.owner,
            kind.provider,
            kind.inquirable,
            kind.runbook if runbooks.is_address(kind.runbook) else "",
            runbooks.steps(kind.runbook, values),
            runbooks.address(kind.console, values),
        )
