"""The audit chain: who changes it without the key is found out; an operation stands with its entry."""

from __future__ import annotations

import pytest
from django.db import transaction

from jobs import audit, chain
from jobs.models.audit import AuditEntry, AuditHead, Source

pytestmark = pytest.mark.django_db


def _append(number: int = 1, **given):
    for index in range(number):
        with transaction.atomic():
            known = {
                "action": "cancel",
                "actor": "ann",
                "object_type": "job",
                "object_id": f"j{index}",
                "reason": "because",
                "source": Source.COMMAND,
                "before": {"status": "pending"},
                "after": {"status": "cancelled"},
            }
            audit.append("default", **known | given)


def test_chain_is_whole():
    _append(7)
    report = chain.verify("default")
    assert report.ok, report.findings
    assert (report.entries, report.last) == (7, 7)
    assert AuditHead.objects.get().hash == AuditEntry.objects.get(seq=7).hash
