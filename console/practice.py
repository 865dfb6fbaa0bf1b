"""The practice inbox: six invented cases, judged by the rules of the real ones and never kept anywhere.

Each is made of rows that exist in memory only, seen at a moment of their own; what is offered, what stands
against it and what it would do is said by jobs.operations.cases, as for a real case. Nothing here writes.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from console.plots import PLOTS, Answer, Plot
from jobs import canon
from jobs.effect_kinds import EffectKind
from jobs.models import Attempt, Case, Comment, EffectSlot, Evidence, Job, Proposal, Worker
from jobs.models.case import CaseKind, Verdict
from jobs.operations.cases import Sender, View, later
from jobs.status import OPEN_EFFECT, AttemptStatus, EffectStatus, JobStatus

_STATUSES = {CaseKind.APPROVAL: JobStatus.WAITING, CaseKind.CONTRADICTION: JobStatus.SUCCEEDED}
"""Where a job stands that has a case of a kind; else it is uncertain."""


@dataclass(frozen=True)
class Scenario:
    """One case to practise on: what is known, and what is said of each choice."""

    name: str
    view: View
    told: str
    answers: dict[str, Answer]


def scenarios(now: datetime, epoch: int) -> list[Scenario]:
    """Return the cases as they stand at `now`, in the order in which they teach."""
    return [
        Scenario(name, _view(name, plot, now, epoch), told, answers)
        for name, (plot, told, answers) in {n: make() for n, make in PLOTS.items()}.items()
    ]


def _send(_request: Any) -> None:
    raise AssertionError("nothing is sent from the practice inbox")


def _view(name: str, plot: Plot, now: datetime, epoch: int) -> View:
    """Return the rows of a case; none of them is in a database, and saving one is refused anyway."""

    def ago(seconds: float) -> datetime:
        return now - timedelta(seconds=seconds)

    def made(what: str) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_OID, f"practice {name} {what}")

    sent_at = ago(plot.opened + 12)
    ended = ago(plot.opened)
    payload = json.dumps(plot.payload, sort_keys=True)
    brought = json.dumps(plot.brought, sort_keys=True) if plot.brought else None
    money: dict[str, Any] = {"amount": Decimal(plot.amount), "currency": "EUR", "label": plot.label}
    job = Job(
        id=made("job"),
        kind="invoices.settle",
        label=plot.label,
        status=_STATUSES.get(plot.kind, JobStatus.UNCERTAIN),
        revision=1,
        enqueued_by="billing",
        created_at=ago(plot.opened + 60),
        state_version=4,
        open_effects=int(plot.status in OPEN_EFFECT),
    )
    attempt = Attempt(
        id=made("attempt"),
        job=job,
        generation=1,
        scheduler_epoch=epoch,
        worker_id="pay-1:2214:8d0c41f2",
        status=AttemptStatus.WAITING if plot.kind == CaseKind.APPROVAL else AttemptStatus.UNCERTAIN,
        started_at=ago(plot.opened + 20),
        finished_at=ended,
    )
    slot = EffectSlot(
        id=made("key").hex,
        job=job,
        revision=1,
        slot="charge",
        kind=plot.effect,
        replay="queryable" if plot.inquirable else "idempotent",
        inquirable=plot.inquirable,
        status=plot.status,
        in_conflict=brought is not None,
        conflict_payload=brought,
        conflict_digest=canon.digest(brought) if brought else "",
        target=plot.target,
        payload=payload,
        payload_digest=canon.digest(payload),
        granted_attempt_id=attempt.id if plot.grants else None,
        grants=plot.grants,
        granted_at=sent_at if plot.grants else None,
        key_valid_until=later(sent_at, plot.key_valid) if plot.grants else None,
        settle_seconds=plot.settle,
        sender_ended_at=ended if plot.grants else None,
        inquiries=sum(source == "inquiry" for source, *_rest in plot.found),
        inquired_at=ago(90) if plot.inquirable else None,
        response="null" if plot.status == EffectStatus.COMMITTED else None,
        created_at=ago(plot.opened + 14),
        changed_at=ended,
        **money,
    )
    case = Case(
        id=made("case"),
        kind=plot.kind,
        job=job,
        effect=slot,
        effect_kind=plot.effect,
        cause=plot.report.partition(":")[0],
        opened_at=ended,
        sla_due_at=now + timedelta(minutes=46),
        **money,
    )
    told = [("report", "unknown", plot.report, plot.opened, "")] if plot.report else []
    evidence = [
        Evidence(
            id=n, effect=slot, source=source, outcome=outcome, body=body, at=ago(when), reference=reference
        )
        for n, (source, outcome, body, when, reference) in enumerate([*told, *plot.found], 1)
    ]
    proposal = Proposal(
        id=made("proposal"),
        case=case,
        verdict=Verdict.SEND,
        by="billing",
        at=ended,
        slot_version=slot.version,
        payload_digest=slot.payload_digest,
    )
    worker = Worker(id=attempt.worker_id, beat_at=ago(4))
    sender = Sender(
        attempt=attempt if plot.grants else None,
        worker=worker if plot.grants else None,
        lease_ends_at=None,
        running=False,
        ended_at=ended if plot.grants else None,
        proven_gone=plot.grants > 0,
    )
    kind = EffectKind(
        plot.effect,
        _send,
        slot.replay,
        provider="payments",
        settle_after=plot.settle,
        owner="billing",
        look=_send if plot.inquirable else None,
    )
    return View(
        now=now,
        case=case,
        effect=slot,
        job=job,
        kind=kind,
        evidence=evidence[::-1],
        rulings=[],
        comments=[
            Comment(case=case, by=by, text=text, at=ago(when)) for by, text, when in reversed(plot.words)
        ],
        proposal=proposal if plot.asked else None,
        approval=None,
        sender=sender,
        in_flight=kind.in_flight,
        in_flight_until=later(sender.ended_at, kind.in_flight),
        settle_by=later(sender.ended_at, plot.settle),
    )
