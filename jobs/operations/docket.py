"""Cases as documents and as lines for a terminal: what `manage.py effects` shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from jobs import effect_kinds, redact
from jobs.models import Case
from jobs.models.case import CaseKind
from jobs.money import money
from jobs.operations import approvals
from jobs.operations.approvals import Asked
from jobs.operations.cases import Offer, View
from jobs.operations.printed import plain
from jobs.sentences import sentence

SHOWN = 20
"""Newest rows shown of each part."""
_LIST = "{:<36}  {:<13}  {:<19}  {:<24}  {:>16}  {:<12}  {}"


def waiting(
    *, kinds: Iterable[str] = (), effect_kind: str = "", every: bool = False, limit: int
) -> QuerySet[Case]:
    """Return the cases that wait for a person, the oldest first; with `every` all cases, the newest first."""
    cases = approvals.with_questions(Case.objects.all())
    if kinds:
        cases = cases.filter(kind__in=list(kinds))
    if effect_kind:
        cases = cases.filter(effect_kind=effect_kind)
    if every:
        return cases.order_by("-id")[:limit]
    return cases.filter(closed_at=None).order_by("opened_at", "id")[:limit]


def entry(case: Case, now: datetime, asked: Asked | None) -> dict[str, Any]:
    """Return one line of the docket; `asked` is what waits for a second person there."""
    return {
        "id": str(case.id),
        "kind": case.kind,
        "opened_at": case.opened_at,
        "sla_due_at": case.sla_due_at,
        "effect_kind": case.effect_kind,
        "label": case.label,
        "amount": None if case.amount is None else str(case.amount),
        "currency": case.currency,
        "owner": case.owner_at(now),
        "parked_until": case.parked_until,
        "parked_why": case.parked_why,
        "asked": asked._asdict() if asked else None,
        "job_id": str(case.job_id),
        "effect_id": case.effect_id,
        "closed_at": case.closed_at,
        "closed_as": case.closed_as,
        "version": case.version,
    }


def document(view: View, offers: Iterable[Offer]) -> dict[str, Any]:
    """Return everything that is known of a case, secrets masked."""
    slot, sender = view.effect, view.sender
    masked, secrets = effect_kinds.hidden_paths(slot.kind, view.job.kind), view.secrets

    def payload(text: str) -> Any:
        return redact.strike(redact.mask(json.loads(text), masked), secrets)

    return entry(view.case, view.now, approvals.still(view.proposal, view.now)) | {
        "snapshot": view.snapshot,
        "now": view.now,
        "job_status": view.job.status,
        "effect": {
            "status": slot.status,
            "version": slot.version,
            "replay": slot.replay,
            "grants": slot.grants,
            "granted_at": slot.granted_at,
            "key_valid_until": slot.key_valid_until,
            "reference": slot.reference,
            "payload": payload(slot.payload),
            "conflict_payload": payload(slot.conflict_payload or "null"),
        },
        "kind_known": view.kind_known,
        "sender": {
            "attempt": str(sender.attempt.id) if sender.attempt else None,
            "worker": sender.worker.id if sender.worker else None,
            "beat_at": sender.beat_at,
            "running": sender.running,
            "lease_ends_at": sender.lease_ends_at,
            "fenced_at": sender.fenced_at,
            "ended_at": sender.ended_at,
            "proven_gone": sender.proven_gone,
        },
        "in_flight_until": view.in_flight_until,
        "settle_by": view.settle_by,
        "proposal": None
        if view.proposal is None
        else {
            "id": str(view.proposal.id),
            "verdict": view.proposal.verdict,
            "by": view.proposal.by,
            "at": view.proposal.at,
            "expires_at": view.proposal.expires_at,
            "asked": json.loads(view.proposal.asked),
        },
        "evidence": [
            {"at": e.at, "source": e.source, "outcome": e.outcome, "decisive": e.decisive, "actor": e.actor}
            | {
                "reference": e.reference,
                "body": redact.clean(_masked(e.body, masked), limit=2048, secrets=secrets),
            }
            for e in view.evidence[:SHOWN]
        ],
        "rulings": [
            {"at": r.at, "verdict": r.verdict, "by": r.by, "approved_by": r.approved_by}
            | {"reason_code": r.reason_code, "reason": r.reason}
            for r in view.rulings[:SHOWN]
        ],
        "comments": [{"at": c.at, "by": c.by, "text": c.text} for c in view.comments[:SHOWN]],
        "offers": [
            {
                "verdict": o.verdict.value,
                "allowed": o.allowed,
                "why": o.why_text,
                "why_code": o.why[0] if o.why else "",
                "opens_at": o.opens_at,
                "takes_second": o.takes_second,
                "consequence": o.consequence_text,
                "guards": [
                    {"code": g.code, "met": g.met, "at": g.at, "text": g.text, "why": g.why_text}
                    for g in o.guards
                ],
            }
            for o in offers
        ],
    }


def _masked(body: str, paths: Iterable[str]) -> str:
    """Return an answer without what is not for people's eyes; free text is left to `clean`."""
    try:
        return json.dumps(redact.mask(json.loads(body), paths), ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


def listed(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each case, under a head."""
    heads = (_("id"), _("case"), _("since"), _("effect"), _("amount"), _("owner"), _("label"))
    yield _LIST.format(*heads).rstrip()
    for e in entries:
        amount = money(e["amount"] and Decimal(e["amount"]), e["currency"])
        kind = e["kind"] + (f" ({e['closed_as']})" if e["closed_as"] else "")
        row = (e["id"], kind, e["opened_at"], e["effect_kind"], amount, e["owner"], e["label"])
        yield _LIST.format(*(plain(value) for value in row)).rstrip()


def shown(found: dict[str, Any]) -> Iterator[str]:
    """Yield all that is known of one case, the evidence before what can be decided."""
    effect, sender, proposal = found["effect"], found["sender"], found["proposal"]
    yield plain(f"{found['kind']}: {found['label'] or found['effect_kind']}")
    skipped = ("effect", "sender", "proposal", "evidence", "rulings", "comments", "offers")
    for title, part in (
        ("", found),
        (_("Effect"), effect),
        (_("Sender"), sender),
        (_("Asked"), proposal or {}),
    ):
        rows = [(k, v) for k, v in part.items() if v not in (None, "") and (title or k not in skipped)]
        if title and rows:
            yield ""
            yield title
        for name, value in rows:
            yield f"  {name:<20} {plain(json.dumps(value) if isinstance(value, dict | list) else value)}"
    yield from _part(
        _("Evidence"),
        [_joined(e, "at", "source", "outcome", "reference", "actor") for e in found["evidence"]],
    )
    yield from _part(
        _("Rulings"), [_joined(r, "at", "verdict", "by", "approved_by", "reason") for r in found["rulings"]]
    )
    yield from _part(_("Comments"), [_joined(c, "at", "by", "text") for c in found["comments"]])
    yield from _part(_("What may be ruled"), [line for o in found["offers"] for line in _offer(o)])
    if found["kind"] == CaseKind.UNKNOWN and not found["kind_known"]:
        yield sentence("EFFECT_KIND_UNKNOWN", {"kind": found["effect_kind"]})


def _part(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
        for line in lines:
            yield f"  {line}"


def _joined(row: dict[str, Any], *names: str) -> str:
    return "  ".join(plain(row[name]) for name in names if row[name])


def _offer(row: dict[str, Any]) -> Iterator[str]:
    second = _(" (takes a second person)") if row["takes_second"] else ""
    said = row["consequence"] if row["allowed"] else _("not now: %s") % row["why"]
    yield plain(f"{row['verdict']}{second}: {said}")
    for guard in row["guards"]:
        when = (_("since %s") if guard["met"] else _("at %s")) % plain(guard["at"]) if guard["at"] else ""
        yield plain(f"  [{'x' if guard['met'] else ' '}] {guard['text']}  {when}").rstrip()
