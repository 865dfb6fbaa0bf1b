"""The rows of effects, cases and what is said and ruled there."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from bench.console.rows import DIGEST, Values, moment
from bench.console.story import Matter, Story, Tale, stamped
from jobs.hooks import effect_id
from jobs.models.case import CaseKind, ClosedAs, Verdict
from jobs.status import EffectStatus, JobStatus

CHARGE, MAIL = "payments.charge", "mail.send"
REFUND = "payments.refund"
"""A kind that nobody here knows any more, and of which there are few."""
EVERY = 8
"""One job in so many that succeeded without a case has left a record of what it did outside."""
OUTAGE = "ConnectTimeout"
PEOPLE = ("ada", "ben", "cleo", "dario")


def slot_of(tale: Tale) -> str:
    """Return the id of a job's effect."""
    return effect_id(tale.id, 1, "", "charge")


def case_of(tale: Tale) -> str:
    """Return the id of a job's case."""
    return stamped(opened(tale), tale.number, "c")


def opened(tale: Tale) -> datetime:
    """Return when it could not be known any more what a job had done outside."""
    return tale.ended(tale.attempts)


def kind_of(tale: Tale) -> str:
    """Return the kind of a job's effect."""
    if tale.matter and tale.matter.kind == CaseKind.APPROVAL:
        return MAIL
    rare = tale.matter and not tale.matter.outage and tale.number // 50 % 400 == 9
    return REFUND if rare else CHARGE


def amount(tale: Tale) -> str:
    """Return what is at stake, in EUR."""
    return f"{tale.mix % 90_000 / 100 + 1:.2f}"


def effects(story: Story) -> Iterator[Values]:
    """Yield a slot for each case, and the records of what went well."""
    for tale in story.tales():
        if tale.matter:
            yield _slot(tale, tale.matter)
        elif tale.status == JobStatus.SUCCEEDED and tale.mix % EVERY == 1:
            yield _slot(tale, None)


def _slot(tale: Tale, matter: Matter | None) -> Values:
    payload = json.dumps({"account": f"acct-{tale.mix % 5000}", "amount": amount(tale), "currency": "EUR"})
    sent = tale.started(tale.attempts) + timedelta(milliseconds=200)
    status = _status(matter)
    row: Values = {
        "id": slot_of(tale),
        "job_id": tale.id,
        "revision": 1,
        "slot": "charge",
        "kind": kind_of(tale),
        "replay": "queryable",
        "inquirable": 1,
        "status": status.value,
        "version": 3,
        "label": f"{tale.label} to acct-{tale.mix % 5000}",
        "target": f"acct-{tale.mix % 5000}",
        "amount": amount(tale),
        "currency": "EUR",
        "payload": payload,
        "payload_digest": DIGEST,
        "created_at": moment(tale.started(tale.attempts)),
        "changed_at": moment(opened(tale)),
        "inquiries": 2 if matter else 0,
    }
    if status != EffectStatus.PREPARED:
        row |= {
            "granted_attempt_id": tale.attempt_id(tale.attempts),
            "grant_id": uuid.UUID(int=tale.number + 1).hex,
            "grants": 1,
            "granted_at": moment(sent),
            "settle_seconds": 5,
            "sender_ended_at": moment(opened(tale)),
        }
    if status == EffectStatus.COMMITTED:
        row |= {
            "response": json.dumps({"charge": f"ch_{tale.number:024}"}),
            "reference": f"ch_{tale.number:024}",
        }
    if matter and matter.kind == CaseKind.CONFLICT:
        other = payload.replace('"EUR"', '"USD"')
        digest = hashlib.sha256(other.encode()).hexdigest()
        row |= {"in_conflict": 1, "conflict_payload": other, "conflict_digest": digest}
    return row


def _status(matter: Matter | None) -> EffectStatus:
    if matter is None or not matter.open or matter.kind == CaseKind.CONTRADICTION:
        return EffectStatus.COMMITTED
    return EffectStatus.UNKNOWN if matter.kind == CaseKind.UNKNOWN else EffectStatus.PREPARED


def cases(story: Story) -> Iterator[Values]:
    """Yield the cases: of the open ones some are taken, put aside, or past their time."""
    for tale, matter in _mattering(story):
        at = opened(tale)
        row: Values = {
            "id": case_of(tale),
            "kind": matter.kind.value,
            "job_id": tale.id,
            "effect_id": slot_of(tale),
            "effect_kind": kind_of(tale),
            "label": f"{tale.label} to acct-{tale.mix % 5000}",
            "amount": amount(tale) if tale.mix % 10 else None,
            "currency": "EUR" if tale.mix % 4 else "USD",
            "cause": OUTAGE if matter.outage else ("", "ReadTimeout", "ConnectionReset")[tale.mix % 3],
            "opened_at": moment(at),
            "sla_due_at": moment(at + timedelta(hours=4 if tale.mix % 20 == 0 else 96)),
            "version": 2,
        }
        if not matter.open:
            row |= {"closed_at": moment(at + timedelta(minutes=30)), "closed_as": _closed_as(tale).value}
        elif tale.mix % 12 == 1:
            row |= {"owner": PEOPLE[tale.mix % 4], "owned_until": moment(story.now + timedelta(minutes=20))}
        elif tale.mix % 12 == 2:
            row["parked_until"] = moment(story.now + timedelta(hours=3))
        yield row


def _closed_as(tale: Tale) -> ClosedAs:
    return ClosedAs.RULED if tale.mix % 2 else ClosedAs.RESOLVED


def evidence(story: Story) -> Iterator[Values]:
    """Yield what was learnt: the sender's report and two inquiries each; of one case two hundred."""
    number = 0
    for tale, matter in _mattering(story):
        said = [("report", "unknown", "ReadTimeout: nothing was heard after 10.0 s")]
        many = 200 if matter.open and tale.number // 50 == int(story.jobs * 0.9) // 50 else 2
        answer = json.dumps({"found": False, "asked": tale.label})
        said += [("inquiry", "committed" if not matter.open else "not_found", answer)] * many
        for turn, (source, outcome, body) in enumerate(said):
            number += 1
            yield {
                "id": number,
                "at": moment(opened(tale) + timedelta(seconds=30 * turn)),
                "effect_id": slot_of(tale),
                "source": source,
                "outcome": outcome,
                "decisive": int(not matter.open and turn == len(said) - 1),
                "body": body,
                "attempt_id": tale.attempt_id(tale.attempts),
            }


def rulings(story: Story) -> Iterator[Values]:
    """Yield a ruling for each case that was ruled on."""
    ruled = (
        tale for tale, matter in _mattering(story) if not matter.open and _closed_as(tale) == ClosedAs.RULED
    )
    for number, tale in enumerate(ruled, start=1):
        yield {
            "id": number,
            "at": moment(opened(tale) + timedelta(minutes=30)),
            "case_id": case_of(tale),
            "effect_id": slot_of(tale),
            "verdict": Verdict.HAPPENED.value,
            "by": PEOPLE[tale.mix % 4],
            "reason_code": "provider_record",
            "reason": "seen in the provider's own list",
            "reference": f"ch_{tale.number:024}",
            "snapshot": "0" * 64,
            "slot_version": 2,
        }


def comments(story: Story) -> Iterator[Values]:
    """Yield a word on every second case."""
    spoken = (tale for tale, _matter in _mattering(story) if tale.mix % 2)
    for number, tale in enumerate(spoken, start=1):
        yield {
            "id": number,
            "at": moment(opened(tale) + timedelta(minutes=9)),
            "case_id": case_of(tale),
            "by": PEOPLE[tale.mix % 4],
            "text": "The provider's support was asked; they look into it.",
        }


def proposals(story: Story) -> Iterator[Values]:
    """Yield what waits for a second person: each approval, and one unknown case in forty."""
    for tale, matter in _mattering(story):
        asks = matter.kind == CaseKind.APPROVAL
        if not matter.open or not (asks or (matter.kind == CaseKind.UNKNOWN and tale.number % 2000 == 3)):
            continue
        slot = _slot(tale, matter)
        yield {
            "id": stamped(opened(tale), tale.number, "d"),
            "case_id": case_of(tale),
            "effect_id": slot["id"],
            "verdict": (Verdict.SEND if asks else Verdict.HAPPENED).value,
            "by": "worker" if asks else "ben",
            "at": moment(opened(tale) + timedelta(minutes=10)),
            "expires_at": None if asks else moment(story.now + timedelta(hours=6)),
            "snapshot": "0" * 64,
            "slot_version": 3,
            "payload_digest": slot["payload_digest"],
        }


def _mattering(story: Story) -> Iterator[tuple[Tale, Any]]:
    return ((tale, tale.matter) for tale in story.mattering())
