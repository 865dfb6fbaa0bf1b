"""Cases to look at: a job that does not know what it did outside, as grant and report leave it behind."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from jobs.ledger import cases, inquiries
from jobs.models import Case, EffectSlot, Job, Proposal
from tests import build

KIND = "tests.effect"
PAYLOAD = {"amount": "42.00", "currency": "EUR", "to": "acme", "card": {"number": "4111"}}


def open_case(
    kind: str = "unknown",
    *,
    label: str = "to acme",
    amount: str | None = "42.00",
    opened: datetime = build.T0,
    sla: int | None = None,
    slot: str = "send",
    **columns: Any,
) -> Case:
    """Open a case of a job whose only effect is unknown (or in conflict), at an instant; `sla` in seconds."""
    lease = build.running(now=opened)
    values = dict.fromkeys(("conflict_digest", "etag"), "") | {
        "use_recorded": False,
        "ruled_abandon": False,
        "earlier_unresolved": False,
        "inquiries": 0,
        "label": label,
        "amount": None if amount is None else Decimal(amount),
        "currency": "EUR" if amount else "",
        "target": "acme",
        "payload": json.dumps(PAYLOAD),
        "payload_digest": "a" * 64,
        "changed_at": opened,
        "created_at": opened,
        "granted_at": opened,
    }
    if kind == "conflict":
        other = PAYLOAD | {"amount": "43.00", "memo": "late fee"}
        values |= {"in_conflict": True, "conflict_payload": json.dumps(other), "conflict_digest": "b" * 64}
    effect = build.effect(lease, slot=slot, **(values | columns))
    if columns.get("status", "unknown") == "unknown" or kind == "conflict":
        assert Job.objects.uncertain(lease, "no answer came", now=opened).landed
    found: Case | None = Case.objects.filter(effect_id=effect, kind=kind).first()
    if found is None:
        if kind == "approval":
            build.ledger(lambda s: cases.ask_approval(s, effect, build.id_of(lease)), now=opened)
        else:
            build.ledger(lambda s: cases.open_one(s, effect, kind), now=opened)
        found = Case.objects.get(effect_id=effect, kind=kind)
    if sla is not None:
        alter(found, sla_due_at=build.at((opened - build.T0).total_seconds() + sla))
    return Case.objects.get(pk=found.pk)


def alter(case: Case, **columns: Any) -> None:
    """Write columns of a case by hand."""
    _write(Case, "id", case, columns)


def stretch(case: Case, until: datetime) -> None:
    """Let what is asked of a second person last until then: tests ask at an instant of long ago."""
    _write(Proposal, "case_id", case, {"expires_at": until})


def _write(model: Any, key: str, case: Case, columns: dict[str, Any]) -> None:
    field = model._meta.get_field
    names = ", ".join(f"{name} = %s" for name in columns)
    values = [field(name).get_db_prep_save(value, connection) for name, value in columns.items()]
    values.append(Case._meta.pk.get_db_prep_save(case.pk, connection))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {model._meta.db_table} SET {names} WHERE {key} = %s", values)


def evidence(case: Case, *, now: datetime = build.T0, **columns: Any) -> None:
    """Add a piece of evidence."""
    values: dict[str, Any] = {"source": "inquiry", "outcome": "not_found", "decisive": False} | columns
    build.ledger(lambda s: inquiries.add_evidence(s, case.effect_id, **values), now=now)


def of(job: Job) -> uuid.UUID:
    """Return the id of an open case of this job, opened where there is none."""
    slot = EffectSlot.objects.filter(job=job).first()
    effect = slot.id if slot else _bare(job)
    found: Any = None

    def work(session: Any) -> None:
        nonlocal found
        found = cases.open_one(session, effect, "unknown")

    build.ledger(work, now=build.at(3))
    return uuid.UUID(str(found))


def _bare(job: Job) -> str:
    lease = build.nobodys(job.id)._replace(attempt_id=uuid.uuid4().hex)
    blank: dict[str, Any] = dict.fromkeys(("conflict_digest", "etag", "label", "target", "currency"), "")
    numbers: dict[str, Any] = {
        "use_recorded": False,
        "ruled_abandon": False,
        "earlier_unresolved": False,
        "inquiries": 0,
    }
    return build.effect(lease, revision=1, **blank, **numbers)
