"""What one case shows: what we did, what the provider says, whether the sender can still act, what differs.

Only reading, and only what is needed: payloads and answers are masked as they are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from console import wording
from console.payload import Payload
from jobs import effect_kinds
from jobs.explain import Surroundings
from jobs.models import Attempt, Case, EffectSlot, FenceRefusal, Job, Worker
from jobs.models.case import CaseKind, ClosedAs, Comment, Evidence, Proposal, Ruling
from jobs.redact import mask
from jobs.status import AttemptStatus, JobStatus

EVIDENCE, WORDS, DIFFERENCES = 30, 50, 100
"""So many of each are shown, the newest ones."""
BODY = 4000
"""Characters shown of one answer."""
CUT = 200
"""Characters shown of one value that differs."""


@dataclass(frozen=True)
class Heard:
    """One piece of evidence, with its answer as people may see it."""

    row: Evidence
    body: Payload | None
    text: str


@dataclass(frozen=True)
class Step:
    """One thing that is known to have happened to the effect."""

    icon: str
    colour: str
    what: str
    more: str
    at: datetime | None


@dataclass(frozen=True)
class Actor:
    """Whoever was last permitted to send, and what became of it."""

    attempt: Attempt
    number: int
    worker: Worker | None
    holds: bool
    """Whether it still holds the job."""
    lease_until: datetime | None
    beat_at: datetime | None
    refused: int


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


def kind_of(slot: EffectSlot) -> effect_kinds.EffectKind | None:
    """Return what the effect's kind declares, where this process knows it."""
    return effect_kinds.find(slot.kind)


def paths_of(slot: EffectSlot) -> tuple[str, ...]:
    """Return what of its payload the effect's kind keeps to itself."""
    kind = kind_of(slot)
    return kind.redact if kind else ()


def evidence(slot: EffectSlot) -> list[Heard]:
    """Return what was learnt, newest first."""
    rows = Evidence.objects.filter(effect=slot).order_by("-id")[:EVIDENCE]
    return [_heard(row, paths_of(slot)) for row in rows]


def _heard(row: Evidence, paths: Iterable[str]) -> Heard:
    if row.body[:1] in ("{", "["):
        return Heard(row, Payload.of(row.body, paths), "")
    return Heard(row, None, row.body[:BODY])


def steps(slot: EffectSlot, actor: Actor | None) -> list[Step]:
    """Return what we know we did, in order."""
    digest = wording.short_id(slot.payload_digest)
    found = [
        Step("prepared", "", _("Prepared"), _("payload bound, digest %(d)s") % {"d": digest}, slot.created_at)
    ]
    if slot.grants:
        to = (
            _("to attempt %(n)s, generation %(g)s") % {"n": actor.number, "g": actor.attempt.generation}
            if actor
            else ""
        )
        if slot.grants > 1:
            to = _("%(to)s; %(n)s grants in all, under the same key") % {"to": to, "n": slot.grants}
        found.append(Step("executing", "run", _("Permission to send granted"), to, slot.granted_at))
        if slot.earlier_unresolved:
            more = _("so a refusal of the last sending proves little")
            found.append(Step("warn", "warn", _("An earlier sending was never resolved"), more, None))
    else:
        found.append(
            Step("absent", "", _("Sending was never permitted"), _("certainly nothing left us"), None)
        )
    if slot.sender_ended_at:
        found.append(
            Step(
                "fence",
                "ok",
                _("The sender ended"),
                _("from here on it can send no more"),
                slot.sender_ended_at,
            )
        )
    if slot.inquiries:
        asked = _("%(n)s in all") % {"n": slot.inquiries}
        found.append(Step("refresh", "", _("Last inquiry"), asked, slot.inquired_at))
    return sorted(found, key=lambda step: step.at or slot.changed_at)


def actor(slot: EffectSlot, job: Job, around: Surroundings) -> Actor | None:
    """Return who was last permitted to send, in at most four queries."""
    if slot.granted_attempt_id is None:
        return None
    light = Attempt.objects.defer("result", "traceback", "log")
    attempt = light.filter(pk=slot.granted_attempt_id).first()
    if attempt is None:
        return None
    worker = Worker.objects.filter(pk=attempt.worker_id).first()
    holds = job.status == JobStatus.RUNNING and job.attempt_id == attempt.id
    return Actor(
        attempt,
        Attempt.objects.filter(job_id=job.id, generation__lte=attempt.generation).count(),
        worker,
        holds and attempt.status == AttemptStatus.RUNNING,
        job.lease_expires_at if holds else None,
        job.heartbeat_at if holds else None,
        FenceRefusal.objects.filter(job_id=job.id, attempt_id=attempt.id).count(),
    )


def history(
    case: Case, comments: list[Comment], rulings: list[Ruling], proposals: list[Proposal]
) -> list[Happened]:
    """Return what people said and decided here, newest first, down to the opening."""
    words = wording.verdicts()
    lines = [Happened(c.at, "comment", "", c.by, _("wrote"), c.text) for c in comments]
    for ruling in rulings:
        what = _("ruled “%(verdict)s” (%(code)s)") % {
            "verdict": words.get(ruling.verdict, ruling.verdict),
            "code": ruling.reason_code,
        }
        if ruling.approved_by:
            what = _("%(what)s, approved by %(by)s") % {"what": what, "by": ruling.approved_by}
        lines.append(Happened(ruling.at, "user", "run", ruling.by, what, ruling.reason))
    for proposal in proposals:
        verdict = words.get(proposal.verdict, proposal.verdict)
        asked = _("asked for “%(verdict)s”; it takes a second person") % {"verdict": verdict}
        lines.append(Happened(proposal.at, "approval", "", proposal.by, asked, ""))
        if proposal.decided_at:
            lines.append(
                Happened(
                    proposal.decided_at,
                    "approval",
                    "",
                    proposal.decided_by,
                    _decided(proposal),
                    proposal.note,
                )
            )
    lines.append(Happened(case.opened_at, case.kind, "", "", _("The case was opened"), ""))
    if case.closed_at:
        closed = {
            ClosedAs.RULED: _("Closed by a ruling"),
            ClosedAs.RESOLVED: _("Closed by evidence"),
            ClosedAs.MOOT: _("Closed: nothing depends on it any more"),
        }.get(ClosedAs(case.closed_as), case.closed_as)
        lines.append(Happened(case.closed_at, "check", "ok", "", closed, ""))
    return sorted(lines, key=lambda line: line.at, reverse=True)


def _decided(proposal: Proposal) -> str:
    return {
        "approved": _("approved it"),
        "rejected": _("rejected it"),
        "void": _("It was withdrawn: the effect moved"),
    }.get(proposal.decision, proposal.decision)


def differences(recorded: str, brought: str, paths: Iterable[str]) -> tuple[list[Difference], int]:
    """Return the fields that differ, masked, and how many are equal; what is no JSON differs as a whole."""
    paths = tuple(paths)
    left, right = _fields(recorded, paths), _fields(brought, paths)
    names = list(dict.fromkeys([*left, *right]))
    # Compared as they are, shown as people may see them: two secrets that differ are still told apart.
    plain_left, plain_right = _plain(recorded), _plain(brought)
    differing = [n for n in names if plain_left.get(n) != plain_right.get(n)]
    shown = [Difference(n or "/", left.get(n), right.get(n)) for n in differing[:DIFFERENCES]]
    return shown, len(names) - len(differing)


def _fields(text: str, paths: tuple[str, ...]) -> dict[str, str]:
    try:
        return dict(_leaves("", mask(json.loads(text), paths), 0))
    except (ValueError, RecursionError):
        return {"": _("not readable")}


def _plain(text: str) -> dict[str, str]:
    try:
        return dict(_leaves("", json.loads(text), 0, cut=False))
    except (ValueError, RecursionError):
        return {"": text}


def _leaves(path: str, value: Any, depth: int, cut: bool = True) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value and depth < 20:
        for key, part in value.items():
            yield from _leaves(f"{path}/{key}", part, depth + 1, cut)
    elif isinstance(value, list) and value and depth < 20:
        for index, part in enumerate(value):
            yield from _leaves(f"{path}/{index}", part, depth + 1, cut)
    else:
        text = (
            value if isinstance(value, str) and cut else json.dumps(value, ensure_ascii=False, sort_keys=True)
        )
        text = text.encode(errors="replace").decode()
        yield path, text[:CUT] + "…" if cut and len(text) > CUT else text


def is_conflict(case: Case, slot: EffectSlot) -> bool:
    """Whether two payloads stand against each other here."""
    return case.kind == CaseKind.CONFLICT and slot.conflict_payload is not None


@dataclass(frozen=True)
class About:
    """What an effect kind says of itself. Never the kind: a template calls what it can, and would send."""

    owner: str
    runbook: str
    inquirable: bool

    @classmethod
    def of(cls, kind: effect_kinds.EffectKind | None) -> About | None:
        """Return what `kind` declares; None where this process does not know it."""
        return cls(kind.owner, kind.runbook, kind.inquirable) if kind else None
