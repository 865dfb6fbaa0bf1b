"""The audit chain under test: entries, what is found wrong with them, and what a forger would write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction

from jobs import audit, chain
from jobs.models.audit import AuditEntry, Source


def append(number: int = 1, **given: Any) -> None:
    for index in range(number):
        known: dict[str, Any] = {
            "action": "cancel",
            "actor": "ann",
            "object_type": "job",
            "object_id": f"j{index}",
            "reason": "because",
            "source": Source.COMMAND,
            "before": {"status": "pending"},
            "after": {"status": "cancelled"},
        }
        with transaction.atomic():
            audit.append("default", **known | given)


def sql(text: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)


def faults(anchors: Iterable[str] = ()) -> list[tuple[str, int]]:
    report = chain.verify("default", anchors)
    assert report.ok is not bool(report.findings)
    assert all(finding.sentence() for finding in report.findings)
    return [(finding.fault.value, finding.seq) for finding in report.findings]


def last() -> AuditEntry:
    entry = AuditEntry.objects.order_by("-seq").first()
    assert entry is not None
    return entry


def forge(seq: int, previous: str = "") -> str:
    """Return the text of an INSERT by somebody who knows everything but the key."""
    columns = ", ".join(f'"{name}"' for name in chain.FIELDS)
    picks = {"seq": str(seq), "actor": "'mallory'", "hash": f"'{'a' * 64}'"}
    if previous:
        picks["prev_hash"] = previous
    values = ", ".join(picks.get(name, f'"{name}"') for name in chain.FIELDS)
    return f"INSERT INTO jobs_auditentry ({columns}) SELECT {values} FROM jobs_auditentry WHERE seq = 2"


def hash_of(seq: int) -> str:
    return f"(SELECT e.hash FROM jobs_auditentry e WHERE e.seq = {seq})"


def renumber(old: int, new: int) -> str:
    return f"UPDATE jobs_auditentry SET seq = {new} WHERE seq = {old}"


def head_to(seq: int) -> str:
    return f"UPDATE jobs_audithead SET seq = {seq}, hash = {hash_of(seq)}"
